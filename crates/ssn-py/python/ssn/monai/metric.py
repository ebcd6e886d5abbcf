"""Scores of samples against raters, as a metric."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from monai.metrics import CumulativeIterationMetric  # type: ignore[attr-defined, unused-ignore]
from torch import Tensor

import ssn
from ssn.torch import LowRankNormal


class SSNMetric(CumulativeIterationMetric):  # type: ignore[misc, unused-ignore]
    """A score of ``samples`` samples of each image against its raters: any name of ``ssn.score``, such as ``ged2`` or ``hm_iou``.

    ``metric(rows, raters)`` takes rows ``[b, (2 + r)·c, ...]`` and label maps ``[b, raters, ...]``; ``aggregate()`` returns the mean over images
    that have a value. Sample numbers and seed are those of files, so that the score is that of ``ssn evaluate``.
    """

    def __init__(self, score: str = "ged2", classes: int = 2, samples: int = 16, names: Sequence[str] | None = None, **options: Any) -> None:
        super().__init__()
        self.score, self.classes, self.samples, self.names, self.options = score, classes, samples, names, options

    def _compute_tensor(self, y_pred: Tensor, y: Tensor | None = None, **_: Any) -> Tensor:
        if y is None:
            raise ValueError("raters are missing")
        rows, raters = y_pred.as_subclass(Tensor).detach(), y.as_subclass(Tensor).detach()
        distributions = LowRankNormal.from_rows(rows.float().cpu(), self.classes)
        return torch.tensor([[self._score(distributions, image, maps)] for image, maps in enumerate(raters.cpu())], dtype=torch.float64)

    def _score(self, distributions: LowRankNormal, image: int, raters: Tensor) -> float:
        d = distributions.to_ssn(image, classes=self.names, case=f"image {len(self)}-{image}")
        scores = ssn.score(
            d.sample(self.samples), raters.numpy(), prediction=d.prediction(), classes=d.classes, **self.options
        )
        return float(scores[self.score])

    def __len__(self) -> int:
        buffer = self.get_buffer()  # type: ignore[no-untyped-call, unused-ignore]
        return 0 if buffer is None else len(buffer)

    def aggregate(self) -> Tensor:
        """The mean over images; nan if none has a value."""
        values = self.get_buffer()  # type: ignore[no-untyped-call, unused-ignore]
        if values is None or len(values) == 0:
            raise ValueError("nothing was scored yet")
        found = values[~torch.isnan(values)]
        return found.mean() if len(found) else torch.tensor(math.nan)
