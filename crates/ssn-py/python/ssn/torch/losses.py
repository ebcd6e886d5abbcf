"""The losses of stochastic segmentation networks: the paper's likelihood, and the energy distance to all raters."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ssn.torch.head import LowRankNormal


def monte_carlo_loss(
    distribution: LowRankNormal,
    target: Tensor,
    samples: int = 20,
    *,
    exponent: float = 1.0,
    generator: torch.Generator | None = None,
    noise: tuple[Tensor, Tensor] | None = None,
) -> Tensor:
    """The paper's loss, the negative log-likelihood by Monte-Carlo integration: ``[b]``, a sum over voxels.

    −(1/β) log (1/M) Σ_m p(target | η_m)^β with the exponent β, 1 in the paper. ``target`` holds class numbers, ``[b, ...]``, or
    ``[b, n, ...]`` for the mean over n raters. With a single class, 0 and 1 are off and on.
    """
    logits = distribution.rsample(samples, generator=generator, noise=noise)
    log_p = _log_probability(logits, _raters(distribution, target))  # [m, b, n]
    each = (math.log(len(log_p)) - torch.logsumexp(exponent * log_p, 0)) / exponent
    return each.mean(1)


def energy_loss(
    distribution: LowRankNormal,
    target: Tensor,
    samples: int = 20,
    *,
    similarity: str = "tanimoto",
    diversity_weight: float = 1.0,
    generator: torch.Generator | None = None,
    noise: tuple[Tensor, Tensor] | None = None,
) -> Tensor:
    """The energy distance of the samples' soft maps to all raters, ``[b]``: what GED² measures.

    2/(MN) Σ_mn d(a_m, y_n) − λ/(M(M−1)) Σ_m≠m' d(a_m, a_m') − 1/N² Σ_nn' d(y_n, y_n') with a = softmax(η) of the foreground
    classes and λ = ``diversity_weight``; d = 1 − (a·b + 1) / (|a|² + |b|² − a·b + 1), or with ``similarity="dice"``
    d = 1 − (2 a·b + 1) / (|a|² + |b|² + 1), the mean over classes. ``target`` as of :func:`monte_carlo_loss`; all raters in one
    step are what the loss is made for. Pre-train with a cross-entropy or likelihood, and start the optimizer anew after it.
    """
    if similarity not in ("tanimoto", "dice"):
        raise ValueError(f'similarity is {similarity!r}, but it must be "tanimoto" or "dice"')
    logits = distribution.rsample(samples, generator=generator, noise=noise)
    raters = _raters(distribution, target)
    m, _, c = logits.shape[:3]
    if m < 2:
        raise ValueError(f"samples is {m}, but at least 2 are needed: the energy loss compares independent samples")
    if c == 1:
        soft, classes = logits.sigmoid(), torch.ones(1, device=raters.device)
    else:
        soft, classes = logits.softmax(2)[:, :, 1:], torch.arange(1, c, device=raters.device)
    truth = raters.unsqueeze(1) == classes.view(1, -1, 1, *[1] * (raters.ndim - 2))  # [b, k, n, ...]
    maps = torch.cat([soft.flatten(3).permute(1, 2, 0, 3), truth.flatten(3).to(soft.dtype)], 2)  # [b, k, m + n, v]
    products = (maps @ maps.transpose(2, 3)).double()
    squares = products.diagonal(dim1=2, dim2=3)
    sums = squares.unsqueeze(2) + squares.unsqueeze(3)
    if similarity == "tanimoto":
        distances = 1 - (products + 1) / (sums - products + 1)
    else:
        distances = 1 - (2 * products + 1) / (sums + 1)
    distances = distances.mean(1)  # [b, m + n, m + n]
    off_diagonal = 1 - torch.eye(m, dtype=distances.dtype, device=distances.device)
    to_raters = distances[:, :m, m:].mean((1, 2))
    between_samples = (distances[:, :m, :m] * off_diagonal).sum((1, 2)) / (m * (m - 1))
    between_raters = distances[:, m:, m:].mean((1, 2))
    return 2 * to_raters - diversity_weight * between_samples - between_raters


def _raters(distribution: LowRankNormal, target: Tensor) -> Tensor:
    """Class numbers ``[b, n, ...]``."""
    b, c, *space = distribution.mean.shape
    if not isinstance(target, Tensor):
        raise TypeError(f"target is a {type(target).__name__}, but a tensor of class numbers is needed")
    target = target.to(distribution.mean.device)
    if target.shape == (b, *space):
        target = target.unsqueeze(1)
    if target.ndim != len(space) + 2 or (target.shape[0], *target.shape[2:]) != (b, *space):
        shape = ", ".join(map(str, space))
        raise ValueError(f"target has the shape {tuple(target.shape)}, but [{b}, {shape}] or [{b}, raters, {shape}] is needed")
    if target.dtype.is_floating_point or target.dtype.is_complex:
        raise TypeError(f"target holds {target.dtype}, but class numbers are whole")
    if target.shape[1] == 0:
        raise ValueError("target has no rater, but at least one is needed")
    target = target.long()
    if target.numel() and (int(target.min()) < 0 or int(target.max()) >= max(c, 2)):
        raise ValueError(f"target holds {int(target.min())} to {int(target.max())}, but the classes are 0 to {max(c, 2) - 1}")
    return target


def _log_probability(logits: Tensor, raters: Tensor) -> Tensor:
    """log p(rater | logits), summed over the voxels in double precision: ``[m, b, n]``."""
    m, _, c = logits.shape[:3]
    labels = raters.flatten(2)  # [b, n, v]
    logits = logits.flatten(3)  # [m, b, c, v]
    if c == 1:
        signs = (2 * labels - 1).to(logits.dtype)
        per_voxel = torch.nn.functional.logsigmoid(logits * signs)
    else:
        per_voxel = logits.log_softmax(2).gather(2, labels.expand(m, *labels.shape))
    return per_voxel.sum(3, dtype=torch.float64)
