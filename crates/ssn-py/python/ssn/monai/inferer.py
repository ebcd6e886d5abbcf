"""Distributions of whole images by windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from monai.inferers import SlidingWindowInferer  # type: ignore[attr-defined, unused-ignore]


class SSNInferer(SlidingWindowInferer):  # type: ignore[misc, unused-ignore]
    """A sliding window in single precision whose overlaps are weighted means of rows, weighted by a Gaussian.

    Means of mean, variances and factor are what overlapping windows of one network agree on; do not average over flips or networks: the columns
    of their factors do not correspond.
    """

    def __init__(self, roi_size: Sequence[int] | int, sw_batch_size: int = 1, overlap: Sequence[float] | float = 0.5, **options: Any) -> None:
        super().__init__(roi_size, sw_batch_size, overlap, **{"mode": "gaussian", **options})

    def __call__(self, inputs: torch.Tensor, network: Any, *args: Any, **kwargs: Any) -> Any:
        """Rows ``[b, (2 + r)·c, ...]`` of images ``[b, channels, ...]``."""
        return super().__call__(inputs.float(), network, *args, **kwargs)
