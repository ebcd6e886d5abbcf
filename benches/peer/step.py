"""The peer of `cargo xtask bench step`: the same networks, losses and optimisers in PyTorch, eager.

step.py NETWORK PRECISION STEPS: NETWORK is unet or deepmedic, PRECISION f32 or bf16 (autocast); prints JSON.
"""
import json, math, sys, time
import torch
from torch import nn
from torch.nn import functional as F

network, precision, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
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

    def forward(self, image):
        output = image.shape[2] // 5 * 5 - 80
        maps = []
        for scale, path in zip(self.scales, self.paths):
            size = (math.ceil(output / scale) + 16) * scale
            x = crop(image, size)[..., scale // 2::scale, scale // 2::scale, scale // 2::scale]
            x = path(x)
            if scale > 1:
                x = F.interpolate(x, scale_factor=scale, mode="nearest")
            maps.append(crop(x, output))
        return F.relu(self.dense(torch.cat(maps, 1)))


class Stochastic(nn.Module):
    def __init__(self, trunk, classes):
        super().__init__()
        self.trunk, self.classes = trunk, classes
        self.mean, self.log_diagonal = trunk.conv(trunk.features, classes, 1), trunk.conv(trunk.features, classes, 1)
        self.factor = trunk.conv(trunk.features, classes * RANK, 1)

    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
            features = self.trunk(x)
        features = features.float()
        mean, diagonal = self.mean(features), self.log_diagonal(features).exp() + 1e-5
        return mean.flatten(2), diagonal.flatten(2), self.factor(features).flatten(2)


def loss(mean, diagonal, factor, target, antithetic):
    b, c, v = mean.shape
    draws = SAMPLES // 2 if antithetic else SAMPLES
    low_rank = torch.randn(b, draws, RANK) @ factor.view(b, RANK, c * v)
    spread = low_rank.view(b, draws, c, v).transpose(0, 1) + torch.randn(draws, b, c, v) * diagonal.sqrt()
    logits = torch.cat([mean + spread, mean - spread]) if antithetic else mean + spread
    index = target[None, :, None].expand(SAMPLES, b, 1, v)
    log_p = logits.log_softmax(2).gather(2, index).sum((2, 3))
    return (math.log(SAMPLES) - log_p.logsumexp(0)).mean()


torch.manual_seed(0)
if network == "unet":
    model, image, target = Stochastic(UNet(), 2), torch.randn(4, 1, 128, 128), torch.randint(2, (4, 128 * 128))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    assert sum(p.numel() for p in model.parameters()) == 10_320_568
else:
    model, image, target = Stochastic(DeepMedic(), 4), torch.randn(1, 4, 110, 110, 110), torch.randint(4, (1, 27_000))
    optimizer = torch.optim.RMSprop(model.parameters(), 1e-3, alpha=0.9, momentum=0.6, eps=1e-8, weight_decay=1e-4)
    assert sum(p.numel() for p in model.parameters()) == 1_051_039
model.train()
seconds = []
for step in range(steps + 2):
    start = time.perf_counter()
    optimizer.zero_grad()
    mean, diagonal, factor = model(image)
    if network == "deepmedic":  # a mask of ones, as the benchmark's other side has
        mask = torch.ones(1, 1, 27_000)
        diagonal, factor = diagonal * mask + 1e-5, factor * mask
    value = loss(mean, diagonal, factor, target, network == "deepmedic")
    value.backward()
    optimizer.step()
    assert math.isfinite(value.item())
    if step >= 2:
        seconds.append(time.perf_counter() - start)
seconds.sort()
print(json.dumps({"seconds": seconds[len(seconds) // 2], "steps": steps, "torch": torch.__version__,
                  "threads": torch.get_num_threads()}))
