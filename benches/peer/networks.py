"""The paper's networks with their Monte-Carlo loss and optimizers in PyTorch: what the peers of a training step share."""
import math
import torch
from torch import nn
from torch.nn import functional as F

RANK, SAMPLES = 10, 20


class Unit(nn.Sequential):
    def __init__(self, inputs, outputs, kernel):
        super().__init__(nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, bias=False),
                         nn.BatchNorm2d(outputs, eps=1e-3, momentum=0.01), nn.ReLU())


def units(inputs, outputs, kernel=3):
    return nn.Sequential(Unit(inputs, outputs, kernel), Unit(outputs, outputs, kernel), Unit(outputs, outputs, kernel))


class UNet(nn.Module):
    """The paper's network for LIDC."""
    features, conv = 32, nn.Conv2d

    def __init__(self):
        super().__init__()
        widths, up = [32, 64, 128, 192, 192, 192, 192], [192, 192, 192, 192, 128, 64]
        self.down = nn.ModuleList(units(i, o) for i, o in zip([1] + widths, widths))
        skips = widths[-2::-1]
        self.up = nn.ModuleList(units(i + s, o) for i, s, o in zip([192] + up, skips, up))
        self.last = units(64, 32, 1)

    def forward(self, x):
        skips = []
        for level, block in enumerate(self.down):
            if level:
                skips.append(x)
                x = F.avg_pool2d(x, 2)
            x = block(x)
        for block in self.up:
            x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
            x = block(torch.cat([x, skips.pop()], 1))
        return self.last(x)


class Block(nn.Module):
    def __init__(self, inputs, outputs, kernel, dropout=0.0, bare=False):
        super().__init__()
        self.norm, self.prelu = nn.BatchNorm3d(inputs), nn.PReLU()
        self.conv = nn.Conv3d(inputs, outputs, kernel, bias=False)
        self.dropout, self.bare, self.residual = dropout, bare, inputs == outputs

    def forward(self, x):
        if self.bare:
            return self.conv(x)
        y = self.norm(x)
        if self.dropout:
            y = F.dropout(y, self.dropout, self.training)
        y = self.conv(self.prelu(y))
        return y + crop(x, y.shape[2]) if self.residual else y


def crop(x, size):
    start = (x.shape[2] - size + 1) // 2
    return x[..., start:start + size, start:start + size, start:start + size]


class DeepMedic(nn.Module):
    """The paper's network for BraTS."""
    features, conv = 50, nn.Conv3d

    def __init__(self):
        super().__init__()
        maps = [30, 30, 40, 40, 40, 40, 50, 50]
        self.scales = [5, 3, 1]
        self.paths = nn.ModuleList(nn.Sequential(*(Block(i, o, 3, bare=k == 0) for k, (i, o) in enumerate(zip([4] + maps, maps))))
                                   for _ in self.scales)
        self.dense = nn.Sequential(Block(150, 250, 1), Block(250, 250, 1, 0.5), Block(250, 50, 1, 0.5))

    def inputs(self, image):
        """What each path sees of an image, the one of the finest scale last."""
        output = image.shape[2] // 5 * 5 - 80
        sizes = [(math.ceil(output / scale) + 16) * scale for scale in self.scales]
        return [crop(image, size)[..., scale // 2::scale, scale // 2::scale, scale // 2::scale].clone()
                for scale, size in zip(self.scales, sizes)]

    def forward(self, inputs):
        output = inputs[-1].shape[2] - 16
        maps = []
        for scale, path, x in zip(self.scales, self.paths, inputs):
            x = path(x)
            if scale > 1:
                x = F.interpolate(x, scale_factor=scale, mode="nearest")
            maps.append(crop(x, output))
        return F.relu(self.dense(torch.cat(maps, 1)))


class Stochastic(nn.Module):
    """A trunk, in single precision or autocast to bfloat16, with heads in single precision for the distribution."""

    def __init__(self, trunk, classes, bfloat16):
        super().__init__()
        self.trunk, self.bfloat16 = trunk, bfloat16
        self.mean, self.log_diagonal = trunk.conv(trunk.features, classes, 1), trunk.conv(trunk.features, classes, 1)
        self.factor = trunk.conv(trunk.features, classes * RANK, 1)

    def forward(self, x):
        with torch.autocast(self.mean.weight.device.type, torch.bfloat16, enabled=self.bfloat16):
            features = self.trunk(x)
        features = features.float()
        mean, diagonal, factor = self.mean(features), self.log_diagonal(features).exp() + 1e-5, self.factor(features)
        # The loss is written for channels that come first, whatever the order in the trunk.
        return mean.contiguous().flatten(2), diagonal.contiguous().flatten(2), factor.contiguous().flatten(2)


def loss(mean, diagonal, factor, target, antithetic):
    b, c, v = mean.shape
    draws = SAMPLES // 2 if antithetic else SAMPLES
    low_rank = torch.randn(b, draws, RANK, device=mean.device) @ factor.view(b, RANK, c * v)
    noise = torch.randn(draws, b, c, v, device=mean.device)
    spread = low_rank.view(b, draws, c, v).transpose(0, 1) + noise * diagonal.sqrt()
    logits = torch.cat([mean + spread, mean - spread]) if antithetic else mean + spread
    index = target[None, :, None].expand(SAMPLES, b, 1, v)
    log_p = logits.log_softmax(2).gather(2, index).sum((2, 3))
    return (math.log(SAMPLES) - log_p.logsumexp(0)).mean()


class Learner:
    """A network of the paper with random images of its experiment and its optimizer, which takes further options.

    Images of DeepMedic are cut to what its paths see beforehand, as ours are. With `compile`, a mode of torch.compile,
    forward pass, loss and backward pass are compiled."""

    def __init__(self, network, batch, device="cpu", bfloat16=False, channels_last=False, compile=None, **options):
        torch.manual_seed(0)
        if network == "unet":
            model, parameters, order = Stochastic(UNet(), 2, bfloat16), 10_320_568, torch.channels_last
            image, target, mask = torch.randn(batch, 1, 128, 128), torch.randint(2, (batch, 128 * 128)), None
        else:
            model, parameters, order = Stochastic(DeepMedic(), 4, bfloat16), 1_051_039, torch.channels_last_3d
            image, target = torch.randn(batch, 4, 110, 110, 110), torch.randint(4, (batch, 27_000))
            mask = torch.ones(batch, 1, 27_000, device=device)  # as the benchmark's other side has
        assert sum(p.numel() for p in model.parameters()) == parameters
        order = order if channels_last else torch.contiguous_format
        self.model = model.to(device).to(memory_format=order).train()
        to_device = lambda image: image.to(device).contiguous(memory_format=order)
        self.image = to_device(image) if network == "unet" else [to_device(x) for x in model.trunk.inputs(image)]
        self.target, self.mask = target.to(device), mask
        self.loss = torch.compile(self.loss_of_batch, mode=compile, fullgraph=True) if compile else self.loss_of_batch
        if network == "unet":
            self.optimizer = torch.optim.Adam(model.parameters(), 1e-3, **options)
        else:
            self.optimizer = torch.optim.RMSprop(model.parameters(), 1e-3, alpha=0.9, momentum=0.6, eps=1e-8,
                                                 weight_decay=1e-4, **options)

    def loss_of_batch(self, image, target):
        mean, diagonal, factor = self.model(image)
        if self.mask is not None:
            diagonal, factor = diagonal * self.mask + 1e-5, factor * self.mask
        return loss(mean, diagonal, factor, target, antithetic=self.mask is not None)

    def step(self):
        """Forward, loss, backward and update; gives the loss."""
        self.optimizer.zero_grad()
        value = self.loss(self.image, self.target)
        value.backward()
        self.optimizer.step()
        return value.detach()
