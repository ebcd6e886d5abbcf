"""A mixture of K low-rank normal distributions (K means and weights, one factor and diagonal) in PyTorch, trained with the energy loss.

    python3 benches/peer/mixture.py K SEED LIDC_SIM

Likelihood for 5,000 steps, then the energy loss with a new optimizer for 9,000; prints the scores of the test set as JSON. K = 1 is
the low-rank normal distribution alone.
"""
import copy
import gzip
import json
import math
import pickle
import sys

import numpy as np
import torch
from networks import UNet
from scipy.optimize import linear_sum_assignment
from torch import nn

DEVICE, RANK, CLASSES, SAMPLES = "cuda", 10, 2, 32
STEPS, LIKELIHOOD_STEPS, BATCH, EMA = 14_000, 5_000, 12, 500


def load(folder, part):
    cases = pickle.load(gzip.open(f"{folder}/{part}.pickle.gz")).values()
    images = torch.tensor(np.stack([case["image"] for case in cases]))[:, None] - 0.5
    return images.to(DEVICE), torch.tensor(np.stack([np.stack(case["masks"]) for case in cases])).long().to(DEVICE)


class Network(nn.Module):
    def __init__(self, components):
        super().__init__()
        self.components, self.trunk = components, UNet()
        self.mean, self.diagonal = nn.Conv2d(32, CLASSES * components, 1), nn.Conv2d(32, CLASSES, 1)
        self.factor, self.weights = nn.Conv2d(32, CLASSES * RANK, 1), nn.Linear(32, components)
        nn.init.zeros_(self.weights.weight), nn.init.zeros_(self.weights.bias)

    def forward(self, images):
        with torch.autocast(DEVICE, torch.bfloat16):
            features = self.trunk(images.contiguous(memory_format=torch.channels_last))
        features, b = features.float().contiguous(), len(images)
        center = features[:, :, 48:80, 48:80].mean((2, 3))  # where nodules are
        mean = self.mean(features).view(b, self.components, CLASSES, -1)
        factor = self.factor(features).view(b, RANK, CLASSES, -1)
        return mean, self.diagonal(features).exp().view(b, CLASSES, -1) + 1e-5, factor, self.weights(center).log_softmax(1)


def spread(diagonal, factor, samples):
    """Noise of samples, [b, m, c, v]."""
    b, c, v = diagonal.shape
    low_rank = torch.randn(b, samples, RANK, device=DEVICE) @ factor.reshape(b, RANK, c * v)
    return low_rank.view(b, samples, c, v) + torch.randn(b, samples, c, v, device=DEVICE) * diagonal.sqrt()[:, None]


def stratified(output, least):
    """As many samples of each component, [b, m, c, v], and the logarithm of each sample's weight, [b, m]."""
    mean, diagonal, factor, log_weights = output
    each = max(SAMPLES // mean.shape[1], least)
    logits = mean.repeat_interleave(each, 1) + spread(diagonal, factor, each * mean.shape[1])
    return logits, log_weights.repeat_interleave(each, 1) - math.log(each), each


def likelihood_loss(output, raters):
    logits, log_weights, _ = stratified(output, 1)
    log_p, on = logits.log_softmax(2), raters.flatten(2).float().transpose(1, 2)
    of_samples = (log_p[:, :, 1] @ on + log_p[:, :, 0] @ (1 - on)).double()
    return -(of_samples + log_weights[:, :, None]).logsumexp(1).mean(1)


def energy_loss(output, raters):
    logits, log_weights, each = stratified(output, 2)
    maps = torch.cat([logits.softmax(2)[:, :, 1], raters.flatten(2).float()], 1)
    products = (maps @ maps.transpose(1, 2)).double()
    squares = products.diagonal(dim1=1, dim2=2)
    distances = 1 - (products + 1) / (squares[:, :, None] + squares[:, None] - products + 1)
    m, weights = logits.shape[1], log_weights.double().exp()
    component = torch.arange(m, device=DEVICE) // each
    same = (component[:, None] == component).double()
    independent = same * (1 - torch.eye(m, device=DEVICE)) * each / (each - 1) + (1 - same)
    to_raters = (distances[:, :m, m:].mean(2) * weights).sum(1)
    between = (distances[:, :m, :m] * weights[:, :, None] * weights[:, None] * independent).sum((1, 2))
    return 2 * to_raters - between - distances[:, m:, m:].mean((1, 2))


def train(network, images, raters):
    average = copy.deepcopy(network)
    order, at = torch.randperm(len(images), device=DEVICE), 0
    for step in range(STEPS):
        if step in (0, LIKELIHOOD_STEPS):
            optimizer = torch.optim.Adam(network.parameters(), 1e-3, fused=True)
        if step == STEPS * 3 // 4:
            optimizer.param_groups[0]["lr"] = 2e-4
        if at + BATCH > len(order):
            order, at = torch.randperm(len(images), device=DEVICE), 0
        chosen, at = order[at : at + BATCH], at + BATCH
        x, y = images[chosen], raters[chosen]
        for axis in (2, 3):
            if torch.rand(()) < 0.5:
                x, y = x.flip(axis), y.flip(axis)
        turns = int(torch.randint(4, ()))
        x, y = x.rot90(turns, (2, 3)), y.rot90(turns, (2, 3))
        optimizer.zero_grad()
        (likelihood_loss if step < LIKELIHOOD_STEPS else energy_loss)(network(x), y).mean().backward()
        optimizer.step()
        if step % 5 == 0:
            with torch.no_grad():
                torch._foreach_lerp_(list(average.parameters()), list(network.parameters()), 5 / EMA)
                for kept, now in zip(average.buffers(), network.buffers()):
                    kept.copy_(now)
    return average


@torch.no_grad()
def evaluate(network, images, raters, samples=100):
    network.eval()
    scores = {name: [] for name in ("ged2", "diversity", "hm_iou_16", "dsc", "dsc_nod", "largest_weight")}
    for start in range(0, len(images), BATCH):
        mean, diagonal, factor, log_weights = network(images[start : start + BATCH])
        b, truth = len(mean), raters[start : start + BATCH].flatten(2).float()
        component = torch.multinomial(log_weights.exp(), samples, True)
        chosen = mean.gather(1, component[:, :, None, None].expand(b, samples, *mean.shape[2:]))
        logits = chosen + spread(diagonal, factor, samples)
        marginal = logits.softmax(2)[:, :, 1].mean(1) > 0.5
        maps = torch.cat([(logits[:, :, 1] > logits[:, :, 0]).float(), truth], 1)
        overlap = maps @ maps.transpose(1, 2)
        sizes = overlap.diagonal(dim1=1, dim2=2)
        union = sizes[:, :, None] + sizes[:, None] - overlap
        distances = 1 - torch.where(union > 0, overlap / union.clamp(min=1), 1.0)
        m = samples
        own = distances[:, :m, :m].mean((1, 2))
        scores["ged2"] += (2 * distances[:, :m, m:].mean((1, 2)) - own - distances[:, m:, m:].mean((1, 2))).tolist()
        scores["diversity"] += own.tolist()
        scores["largest_weight"] += log_weights.exp().max(1).values.tolist()
        for image in range(b):
            costs = np.repeat(distances[image, :16, m:].cpu().numpy(), 4, 1)
            scores["hm_iou_16"].append(1 - costs[linear_sum_assignment(costs)].mean())
            for rater in truth[image] > 0:
                total = int(marginal[image].sum() + rater.sum())
                dice = 200 * int((marginal[image] & rater).sum()) / max(total, 1)
                scores["dsc"] += [dice] if total else []
                scores["dsc_nod"] += [dice] if rater.any() else []
    return {name: float(np.mean(values)) for name, values in scores.items()}


if __name__ == "__main__":
    components, seed, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    torch.manual_seed(seed)
    torch.backends.cudnn.benchmark = True
    network = Network(components).to(DEVICE).to(memory_format=torch.channels_last)
    average = train(network, *load(folder, "train"))
    print(json.dumps({"components": components, "seed": seed, **evaluate(average, *load(folder, "test"))}))
