"""The losses of stochastic segmentation networks: the paper's likelihood, and the energy distance to all raters."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ssn.torch.checks import require
from ssn.torch.head import LowRankNormal

Noise = tuple[Tensor, Tensor]


def monte_carlo_loss(
    distribution: LowRankNormal,
    target: Tensor,
    samples: int = 20,
    *,
    exponent: float = 1.0,
    ignore_index: int | None = None,
    present: Tensor | None = None,
    samples_at_once: int | None = None,
    generator: torch.Generator | None = None,
    noise: Noise | None = None,
) -> Tensor:
    """The paper's loss, the negative log-likelihood by Monte-Carlo integration: ``[b]``, a sum over voxels.

    −(1/β) log (1/M) Σ_m p(target | η_m)^β with the exponent β, 1 in the paper. ``target`` holds class numbers, ``[b, ...]``, or
    ``[b, n, ...]`` for the mean over n raters. With a single class, 0 and 1 are off and on. Voxels of ``ignore_index`` do not count, nor do
    raters that are not ``present`` ``[b, n]``. With ``samples_at_once``, samples are drawn in parts and again for the gradients, which needs
    less memory. Computed in single precision under autocast.
    """
    raters, counts = _raters(distribution, target, ignore_index)
    weights = _weights(raters, present)

    def log_probability(*parts: Tensor) -> Tensor:
        return _log_probability(LowRankNormal(*parts[:3]).rsample(noise=(parts[3], parts[4])), raters, counts)

    with torch.autocast(raters.device.type, enabled=False):
        log_p = torch.cat(_in_parts(log_probability, distribution.float(), samples, samples_at_once, generator, noise))  # [m, b, n]
        each = (math.log(len(log_p)) - torch.logsumexp(exponent * log_p, 0)) / exponent
        return (each * weights).sum(1)


def energy_loss(
    distribution: LowRankNormal,
    target: Tensor,
    samples: int = 20,
    *,
    similarity: str = "tanimoto",
    diversity_weight: float = 1.0,
    ignore_index: int | None = None,
    present: Tensor | None = None,
    samples_at_once: int | None = None,
    generator: torch.Generator | None = None,
    noise: Noise | None = None,
) -> Tensor:
    """The energy distance of the samples' soft maps to all raters, ``[b]``: what GED² measures.

    2/(MN) Σ_mn d(a_m, y_n) − λ/(M(M−1)) Σ_m≠m' d(a_m, a_m') − 1/N² Σ_nn' d(y_n, y_n') with a = softmax(η) of the foreground
    classes and λ = ``diversity_weight``; d = 1 − (a·b + 1) / (|a|² + |b|² − a·b + 1), or with ``similarity="dice"``
    d = 1 − (2 a·b + 1) / (|a|² + |b|² + 1), the mean over classes. ``target``, ``present`` and ``samples_at_once`` as of
    :func:`monte_carlo_loss`; all raters in one step are what the loss is made for. A voxel that one present rater leaves at ``ignore_index``
    counts for none. Pre-train with a cross-entropy or likelihood, and start the optimizer anew after it.
    """
    if similarity not in ("tanimoto", "dice"):
        raise ValueError(f'similarity is {similarity!r}, but it must be "tanimoto" or "dice"')
    m = samples if noise is None else len(noise[0])
    if m < 2:
        raise ValueError(f"samples is {m}, but at least 2 are needed: the energy loss compares independent samples")
    raters, counts = _raters(distribution, target, ignore_index)
    weights = _weights(raters, present)  # [b, n]
    c = distribution.mean.shape[1]
    classes = torch.arange(1, max(c, 2), device=raters.device)
    every = None
    if counts is not None:
        # An absent rater ignores nothing.
        every = (counts | (weights == 0).view(*weights.shape, *[1] * (raters.ndim - 2))).all(1).flatten(1)  # [b, v]

    def soft_maps(*parts: Tensor) -> Tensor:
        logits = LowRankNormal(*parts[:3]).rsample(noise=(parts[3], parts[4])).flatten(3)  # [m, b, c, v]
        soft = logits.sigmoid() if c == 1 else logits.softmax(2)[:, :, 1:]
        return soft if every is None else soft * every.view(1, len(raters), 1, -1)

    with torch.autocast(raters.device.type, enabled=False):
        parts = _in_parts(soft_maps, distribution.float(), samples, samples_at_once, generator, noise)
        soft = torch.cat(parts).permute(1, 2, 0, 3)  # [b, k, m, v]
        truth = (raters.unsqueeze(1) == classes.view(1, -1, 1, *[1] * (raters.ndim - 2))).flatten(3)  # [b, k, n, v]
        truth = (truth if every is None else truth & every.view(len(raters), 1, 1, -1)).to(soft.dtype)

        def distances(a: Tensor, b: Tensor, squares_a: Tensor, squares_b: Tensor) -> Tensor:
            """The distances ``[b, i, j]`` of maps ``[b, k, i, v]`` and ``[b, k, j, v]``."""
            products = (a @ b.transpose(2, 3)).double()
            sums = squares_a.unsqueeze(3) + squares_b.unsqueeze(2)
            shares = (products + 1) / (sums - products + 1) if similarity == "tanimoto" else (2 * products + 1) / (sums + 1)
            return (1 - shares).mean(1)

        squares, squares_truth = soft.square().sum(3).double(), truth.sum(3).double()
        off_diagonal = 1 - torch.eye(m, dtype=torch.float64, device=soft.device)
        to_raters = (distances(soft, truth, squares, squares_truth) * weights.unsqueeze(1)).sum((1, 2)) / m
        between_samples = (distances(soft, soft, squares, squares) * off_diagonal).sum((1, 2)) / (m * (m - 1))
        pairs = weights.unsqueeze(1) * weights.unsqueeze(2)
        between_raters = (distances(truth, truth, squares_truth, squares_truth) * pairs).sum((1, 2))
        # An image without raters teaches nothing, and no diversity either.
        has_raters = weights.sum(1) > 0
        return (2 * to_raters - diversity_weight * between_samples - between_raters) * has_raters


class SSNLoss(nn.Module):
    """The losses for frameworks that pass tensors: ``loss(rows, target)`` is their mean over the batch.

    ``rows`` are those of :class:`StochasticNetwork`; ``target`` is ``[b, ...]``, ``[b, raters, ...]``, or MONAI's ``[b, 1, ...]``. ``kind`` is
    ``"likelihood"`` (divided by the voxels of an image, so that learning rates for a cross-entropy do), ``"energy"`` or ``"mean"``, the
    cross-entropy of the mean, for the first steps. ``options`` are those of the functions.
    """

    def __init__(self, classes: int, kind: str = "energy", samples: int = 20, **options: Any) -> None:
        super().__init__()
        if kind not in ("likelihood", "energy", "mean"):
            raise ValueError(f'kind is {kind!r}, but it must be "likelihood", "energy" or "mean"')
        self.classes, self.kind, self.samples, self.options = classes, kind, samples, options

    def forward(self, rows: Tensor, target: Tensor) -> Tensor:
        distribution = LowRankNormal.from_rows(rows, self.classes)
        if self.kind == "energy":
            return energy_loss(distribution, target, self.samples, **self.options).mean()
        if self.kind == "mean":
            ignore_index, present = self.options.get("ignore_index"), self.options.get("present")
            certain = LowRankNormal(distribution.mean, torch.zeros_like(distribution.mean), distribution.factor[:, :0])
            each = monte_carlo_loss(certain, target, 1, ignore_index=ignore_index, present=present)
        else:
            each = monte_carlo_loss(distribution, target, self.samples, **self.options)
        return each.mean() / distribution.mean[0, 0].numel()


def _in_parts(
    compute: Callable[..., Tensor],
    distribution: LowRankNormal,
    samples: int,
    at_once: int | None,
    generator: torch.Generator | None,
    noise: Noise | None,
) -> list[Tensor]:
    """Computes something of ``at_once`` samples at a time, and again in the backward pass: one part at a time is in memory."""
    parts = (distribution.mean, distribution.diagonal, distribution.factor)
    count = samples if noise is None else len(noise[0])
    if count < 1:
        raise ValueError(f"samples is {count}, but at least one is needed")
    if at_once is None or at_once >= count:
        return [compute(*parts, *(distribution.noise(samples, generator) if noise is None else noise))]
    if at_once < 1:
        raise ValueError(f"samples_at_once is {at_once}, but at least one is needed")
    if noise is None and generator is not None:
        # Its state is not kept for the second time.
        noise = distribution.noise(samples, generator)

    def of_part(first: int) -> Tensor:
        last = min(first + at_once, count)
        if noise is not None:
            found: Tensor = checkpoint(compute, *parts, *(of[first:last] for of in noise), use_reentrant=False)
            return found

        def drawn(*parts: Tensor) -> Tensor:
            return compute(*parts, *LowRankNormal(*parts).noise(last - first))

        found = checkpoint(drawn, *parts, use_reentrant=False)
        return found

    return [of_part(first) for first in range(0, count, at_once)]


def _raters(distribution: LowRankNormal, target: Tensor, ignore_index: int | None) -> tuple[Tensor, Tensor | None]:
    """Class numbers ``[b, n, ...]``, and where they count, unless that is everywhere."""
    b, c, *space = distribution.mean.shape
    if not isinstance(target, Tensor):
        raise TypeError(f"target is a {type(target).__name__}, but a tensor of class numbers is needed")
    if not torch.compiler.is_compiling():
        target = target.as_subclass(Tensor)  # such as the tensors of MONAI, with metadata
    target = target.to(distribution.mean.device)
    if target.shape == (b, *space):
        target = target.unsqueeze(1)
    if target.ndim != len(space) + 2 or (target.shape[0], *target.shape[2:]) != (b, *space):
        shape = ", ".join(map(str, space))
        raise ValueError(f"target has the shape {tuple(target.shape)}, but [{b}, {shape}] or [{b}, raters, {shape}] is needed")
    if target.dtype.is_complex:
        raise TypeError(f"target holds {target.dtype}, but class numbers are whole")
    if target.shape[1] == 0:
        raise ValueError("target has no rater, but at least one is needed")
    labels = target.long()
    if target.dtype.is_floating_point:
        require(labels == target, "target holds numbers that are not whole, but class numbers are")
    counts = None
    if ignore_index is not None:
        counts = labels != ignore_index
        labels = labels * counts
    most = max(c, 2) - 1
    hint = "" if ignore_index is not None else "; other values need ignore_index"
    require((labels >= 0) & (labels <= most), f"target holds other values than the classes, which are 0 to {most}{hint}")
    return labels, counts


def _weights(raters: Tensor, present: Tensor | None) -> Tensor:
    """The weights of raters, ``[b, n]``, with a sum of 1; 0 for a case without any."""
    if present is None:
        return torch.full(raters.shape[:2], 1 / raters.shape[1], dtype=torch.float64, device=raters.device)
    if present.shape != raters.shape[:2]:
        raise ValueError(f"present has the shape {tuple(present.shape)}, but [b, raters] is {tuple(raters.shape[:2])}")
    weights = present.to(raters.device).bool().double()
    return weights / weights.sum(1, keepdim=True).clamp_min(1)


def _log_probability(logits: Tensor, raters: Tensor, counts: Tensor | None) -> Tensor:
    """log p(rater | logits), summed over the voxels in double precision: ``[m, b, n]``."""
    m, _, c = logits.shape[:3]
    labels = raters.flatten(2)  # [b, n, v]
    logits = logits.flatten(3)  # [m, b, c, v]
    if c == 1:
        signs = (2 * labels - 1).to(logits.dtype)
        per_voxel = torch.nn.functional.logsigmoid(logits * signs)
    else:
        per_voxel = logits.log_softmax(2).gather(2, labels.expand(m, *labels.shape))
    if counts is not None:
        per_voxel = per_voxel * counts.flatten(2)
    return per_voxel.sum(3, dtype=torch.float64)
