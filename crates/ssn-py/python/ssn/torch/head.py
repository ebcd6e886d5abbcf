"""A head that gives a low-rank normal distribution over the logits of whole images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

import ssn
from ssn.torch.checks import require

LOG_MOST_VARIANCE = 46.0
"""The logarithm of the largest variance that files hold, 1e20."""


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

    @classmethod
    def from_rows(cls, rows: Tensor, classes: int) -> LowRankNormal:
        """Takes apart ``[b, (2 + r)·c, ...]``: the rows of the mean, of the variances, and of each column of the factor.

        With two classes of which only the foreground has logits, ``classes`` is 1.
        """
        count = rows.shape[1]
        if rows.ndim < 3 or classes < 1 or count % classes or count < 2 * classes:
            raise ValueError(f"rows have the shape {tuple(rows.shape)}, but [b, (2 + rank)·{classes}, ...] is needed")
        mean, diagonal, factor = torch.split(rows, [classes, classes, count - 2 * classes], 1)
        return cls(mean, diagonal, factor.reshape(len(rows), count // classes - 2, classes, *rows.shape[2:]))

    @property
    def rows(self) -> Tensor:
        """One tensor ``[b, (2 + r)·c, ...]``: mean, variances and factor, as :meth:`from_rows` takes it."""
        return torch.cat([self.mean, self.diagonal, self.factor.flatten(1, 2)], 1)

    @property
    def rank(self) -> int:
        """The number of columns of the factor."""
        return self.factor.shape[1]

    def __len__(self) -> int:
        return len(self.mean)

    def __getitem__(self, images: int | slice | Tensor) -> LowRankNormal:
        """The distributions of some images; a single one stays a batch."""
        if isinstance(images, int):
            images = slice(images, images + 1 or None)
        return LowRankNormal(self.mean[images], self.diagonal[images], self.factor[images])

    def detach(self) -> LowRankNormal:
        """The same without gradients."""
        return LowRankNormal(self.mean.detach(), self.diagonal.detach(), self.factor.detach())

    def to(self, *arguments: Any, **options: Any) -> LowRankNormal:
        """The same on another device or of another type, as ``Tensor.to``."""
        return LowRankNormal(*(part.to(*arguments, **options) for part in (self.mean, self.diagonal, self.factor)))

    def float(self) -> LowRankNormal:
        """The same in single precision, unless it is in double."""
        return self if self.mean.dtype == self.factor.dtype == torch.float64 else self.to(torch.float32)

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
        require(self.diagonal >= 0, "the diagonal holds negative or undefined variances")
        low_rank = torch.einsum("mbr,br...->mb...", of_rank, self.factor)
        return self.mean + low_rank + self.diagonal.sqrt() * of_voxels

    def to_ssn(self, image: int = 0, **about: Any) -> ssn.LowRankNormal:
        """The distribution of one image for samples, scores, files and the viewer; ``about`` as of ``ssn.LowRankNormal``."""
        parts = (self.mean[image].float(), self.diagonal[image].float(), self.factor[image].float())
        return ssn.LowRankNormal(*parts, **about)


class LowRankHead(nn.Module):
    """Three convolutions of 1 × 1 (× 1) that make the features of a backbone a :class:`LowRankNormal`.

    ``dims`` are the axes of space, 1 to 3. The variances are exp(a map) + ``epsilon``, at most 1e20; with ``log_diagonal_limit`` L the map
    is L·tanh(map / L). ``initial_scale`` scales the first weights of the factor, and the first standard deviation: 0.1 begins nearly certain.
    Where a ``mask`` of voxels of interest is given, ``[b, ...]``, logits outside it have no spread. Runs in single precision under autocast.
    """

    def __init__(
        self,
        in_channels: int,
        classes: int,
        rank: int = 10,
        *,
        dims: int = 2,
        epsilon: float = 1e-5,
        log_diagonal_limit: float | None = None,
        initial_scale: float = 1.0,
    ) -> None:
        super().__init__()
        if dims not in (1, 2, 3):
            raise ValueError(f"dims is {dims}, but there are 1 to 3 axes of space")
        if classes < 1 or rank < 0:
            raise ValueError(f"classes is {classes} and rank {rank}, but at least 1 and 0 are needed")
        if not initial_scale > 0 or not (log_diagonal_limit is None or log_diagonal_limit > 0):
            raise ValueError(f"initial_scale is {initial_scale} and log_diagonal_limit {log_diagonal_limit}, but they must be above 0")
        conv = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[dims - 1]
        self.classes, self.rank, self.epsilon, self.log_diagonal_limit = classes, rank, epsilon, log_diagonal_limit
        self.mean = conv(in_channels, classes, 1)
        self.log_diagonal = conv(in_channels, classes, 1)
        self.factor = conv(in_channels, rank * classes, 1) if rank > 0 else None
        if initial_scale != 1.0:
            with torch.no_grad():
                bias = self.log_diagonal.bias
                assert bias is not None
                bias += 2 * torch.log(torch.tensor(initial_scale))
                if self.factor is not None:
                    for parameter in self.factor.parameters():
                        parameter.mul_(initial_scale)

    def forward(self, features: Tensor, mask: Tensor | None = None) -> LowRankNormal:
        # Half precision cannot hold variances.
        with torch.autocast(features.device.type, enabled=False):
            return self._distribution(features if features.dtype == torch.float64 else features.float(), mask)

    def _distribution(self, features: Tensor, mask: Tensor | None) -> LowRankNormal:
        mean = self.mean(features)
        log_diagonal = self.log_diagonal(features)
        if self.log_diagonal_limit is not None:
            log_diagonal = (log_diagonal / self.log_diagonal_limit).tanh() * self.log_diagonal_limit
        diagonal = log_diagonal.clamp_max(LOG_MOST_VARIANCE).exp() + self.epsilon
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


class StochasticNetwork(nn.Module):
    """A backbone and a head, whose output is one tensor of rows ``[b, (2 + r)·c, ...]``: for frameworks that pass tensors."""

    def __init__(self, backbone: nn.Module, head: LowRankHead) -> None:
        super().__init__()
        self.backbone, self.head = backbone, head

    @property
    def classes(self) -> int:
        """The classes of the rows."""
        return self.head.classes

    def forward(self, image: Tensor) -> Tensor:
        distribution: LowRankNormal = self.head(self.backbone(image))
        return distribution.rows
