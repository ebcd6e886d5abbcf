"""Networks as ONNX files, for onnxruntime and other programs."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ssn.torch.head import LowRankNormal


def found_classes(found: Tensor | LowRankNormal) -> int:
    """The classes of a distribution."""
    return 1 if isinstance(found, Tensor) else found.mean.shape[1]


class _Parts(nn.Module):
    """A network whose rows are taken apart."""

    def __init__(self, network: nn.Module, classes: int) -> None:
        super().__init__()
        self.network, self.classes = network, classes

    def forward(self, image: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        found = self.network(image)
        if isinstance(found, Tensor):
            found = LowRankNormal.from_rows(found, self.classes)
        return found.mean, found.diagonal, found.factor


def export_onnx(
    network: nn.Module,
    path: str | os.PathLike[str],
    example: Tensor,
    *,
    classes: int | None = None,
    names: Sequence[str] | None = None,
    spacing: Sequence[float] | None = None,
    normalization: str | None = None,
    dynamic_size: bool = False,
) -> Path:
    """Writes a network whose output is rows or a :class:`LowRankNormal` as ONNX, and returns the path.

    Its input is ``image``, as ``example`` ``[b, c, ...]``, with any number of images, and any size with ``dynamic_size``; its outputs are ``mean``,
    ``diagonal`` and ``factor``, which ``ssn.LowRankNormal`` takes. ``classes`` is the number of classes of the rows (known of
    :class:`StochasticNetwork`). ``names`` of the labels, ``spacing`` and ``normalization`` (in words) are kept in the file under ``ssn``.
    Needs the extra ``onnx``.
    """
    count = classes if classes is not None else getattr(network, "classes", None)
    was_training = network.training
    network.eval()
    try:
        with torch.no_grad():
            found = network(example)
        if isinstance(found, Tensor) and count is None:
            raise ValueError("classes is not given, but the network returns rows, which do not say how many there are")
        rank = (LowRankNormal.from_rows(found, int(count or 1)) if isinstance(found, Tensor) else found).rank
        labels = max(int(count or found_classes(found)), 2)
        if names is not None and len(names) != labels:
            raise ValueError(f"names are {', '.join(names)}, but the network has {labels} labels")
        parts = _Parts(network, int(count or 1)).eval()
        shape: dict[int, Any] = {0: torch.export.Dim("batch")}
        if dynamic_size:
            shape |= {axis: torch.export.Dim.AUTO for axis in range(2, example.ndim)}
        # A batch of one would be taken for a constant.
        sample = example if len(example) > 1 else example.repeat(2, *[1] * (example.ndim - 1))
        program = torch.onnx.export(
            parts,
            (sample,),
            dynamo=True,
            verbose=False,
            input_names=["image"],
            output_names=["mean", "diagonal", "factor"],
            dynamic_shapes={"image": shape},
        )
    finally:
        network.train(was_training)
    if program is None:
        raise RuntimeError("the network cannot be exported")
    about = {
        "version": 1,
        "rank": rank,
        "classes": list(names or []),
        "spacing": list(spacing or []),
        "normalization": normalization or "",
    }
    program.model.metadata_props["ssn"] = json.dumps(about)
    program.save(os.fspath(path))
    return Path(path)
