"""A head that gives a low-rank normal distribution over the logits of whole images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

import ssn


@dataclass(frozen=True, repr=False)
class LowRankNormal:
    """Logits η ~ N(μ, P Pᵀ + diag(D)) for each image of a batch.

    ``mean`` and ``diagonal`` (variances) are ``[b, c, ...]``, ``factor`` is ``[b, r, c, ...]``, where ``...`` are the axes of space.
    """

    mean: Tensor
    diagonal: Tensor
    factor: Tensor

    def __post_init__(self) -> None:
        b, *rest = self.mean.shape
        if self.mean.ndim < 3:
            raise ValueError(f"mean has the shape {tuple(self.mean.shape)}, but [b, c, ...] with axes of space is needed")
        if self.diagonal.shape != self.mean.shape:
            raise ValueError(f"diagonal has the shape {tuple(self.diagonal.shape)}, but mean has {tuple(self.mean.shape)}")
        if self.factor.ndim != self.mean.ndim + 1 or [self.factor.shape[0], *self.factor.shape[2:]] != [b, *rest]:
            raise ValueError(f"factor has the shape {tuple(self.factor.shape)}, but [b, rank, c, ...] as of the mean is needed")

    def __repr__(self) -> str:
        return f"<ssn.torch.LowRankNormal of {len(self.mean)} images: mean {tuple(self.mean.shape)}, rank {self.rank}, {self.mean.device}>"

    @property
    def rank(self) -> int:
        return self.factor.shape[1]

    def noise(self, samples: int, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """Standard normal numbers for ``samples`` samples: ``[m, b, r]`` and ``[m, b, c, ...]``."""
        if samples < 1:
            raise ValueError(f"samples is {samples}, but at least one is needed")

        def normal(*shape: int) -> Tensor:
            return torch.randn(shape, generator=generator, device=self.mean.device, dtype=self.mean.dtype)

        return normal(samples, self.mean.shape[0], self.rank), normal(samples, *self.mean.shape)

    def rsample(
        self, samples: int = 1, *, generator: torch.Generator | None = None, noise: tuple[Tensor, Tensor] | None = None
    ) -> Tensor:
        """Logits of samples, ``[m, b, c, ...]``, with gradients: μ + Σ_q ε_q P_q + √D ε."""
        of_rank, of_voxels = self.noise(samples, generator) if noise is None else noise
        low_rank = torch.einsum("mbr,br...->mb...", of_rank, self.factor)
        return self.mean + low_rank + self.diagonal.sqrt() * of_voxels

    def to_ssn(self, image: int = 0, **about: Any) -> ssn.LowRankNormal:
        """The distribution of one image for samples, scores, files and the viewer; ``about`` as of ``ssn.LowRankNormal``."""
        parts = (self.mean[image].float(), self.diagonal[image].float(), self.factor[image].float())
        return ssn.LowRankNormal(*parts, **about)


class LowRankHead(nn.Module):
    """Three convolutions of 1 × 1 (× 1) that make the features of a backbone a :class:`LowRankNormal`.

    ``dims`` are the axes of space, 1 to 3. The variances are exp(a map) + ``epsilon``. Where a ``mask`` of voxels of interest is
    given, ``[b, ...]``, logits outside it have no spread.
    """

    def __init__(self, in_channels: int, classes: int, rank: int = 10, *, dims: int = 2, epsilon: float = 1e-5) -> None:
        super().__init__()
        if dims not in (1, 2, 3):
            raise ValueError(f"dims is {dims}, but there are 1 to 3 axes of space")
        if classes < 1 or rank < 0:
            raise ValueError(f"classes is {classes} and rank {rank}, but at least 1 and 0 are needed")
        conv = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[dims - 1]
        self.classes, self.rank, self.epsilon = classes, rank, epsilon
        self.mean = conv(in_channels, classes, 1)
        self.log_diagonal = conv(in_channels, classes, 1)
        self.factor = conv(in_channels, rank * classes, 1) if rank > 0 else None

    def forward(self, features: Tensor, mask: Tensor | None = None) -> LowRankNormal:
        mean = self.mean(features)
        diagonal = self.log_diagonal(features).exp() + self.epsilon
        b, _, *space = mean.shape
        if self.factor is None:
            factor = mean.new_zeros(b, 0, self.classes, *space)
        else:
            factor = self.factor(features).reshape(b, self.rank, self.classes, *space)
        if mask is not None:
            inside = mask.to(mean.dtype).unsqueeze(1)
            diagonal = diagonal * inside + self.epsilon
            factor = factor * inside.unsqueeze(1)
        return LowRankNormal(mean, diagonal, factor)
