"""Rows as distribution files.

The axes of MONAI are i, j, k; those of our arrays are k, j, i. This is the only place that turns one into the other.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from monai.config import KeysCollection  # type: ignore[attr-defined, unused-ignore]
from monai.transforms import MapTransform  # type: ignore[attr-defined, unused-ignore]
from torch import Tensor

import ssn
from ssn.torch import LowRankNormal


def distribution_of(
    rows: Tensor, classes: Sequence[str] | int, *, case: str | None = None, affine: Any = None
) -> ssn.LowRankNormal:
    """The distribution of one image of rows ``[(2 + r)·c, i, j]`` or ``[…, i, j, k]``, with the affine and the file name of a ``MetaTensor``.

    ``classes`` are the names of all labels, or the number of classes of the rows.
    """
    names = None if isinstance(classes, int) else list(classes)
    count = classes if isinstance(classes, int) else len(classes)
    if affine is None and hasattr(rows, "affine"):
        affine = _four(np.asarray(rows.affine.cpu(), float))
    if case is None:
        case = _name(getattr(rows, "meta", {}).get("filename_or_obj")) or "case"
    parts = LowRankNormal.from_rows(rows.as_subclass(Tensor).detach().cpu().float()[None], count)
    reverse = [part.permute(*range(part.ndim - rows.ndim + 1), *reversed(range(part.ndim - rows.ndim + 1, part.ndim)))
               for part in (parts.mean[0], parts.diagonal[0], parts.factor[0])]
    return ssn.LowRankNormal(*(part.contiguous() for part in reverse), classes=names, case=case, affine=affine)


class SaveSSNd(MapTransform):  # type: ignore[misc, unused-ignore]
    """Writes rows of single images as distribution files for ``ssn sample``, ``ssn evaluate`` and ``ssn view``.

    A file has the name of the image: ``case`` of the data, or the file name in the metadata of the rows. Put it after ``Invertd`` with
    ``nearest_interp=False``, which brings rows back to the grid of the image.
    """

    def __init__(
        self,
        keys: KeysCollection,
        folder: str | os.PathLike[str],
        classes: Sequence[str] | int = 2,
        *,
        precision: str = "half-factor",
        allow_missing_keys: bool = False,
    ) -> None:
        super().__init__(keys, allow_missing_keys)
        self.folder, self.classes, self.precision = Path(folder), classes, precision

    def __call__(self, data: Mapping[Hashable, Any]) -> dict[Hashable, Any]:
        """Writes the files; the data stays as it is."""
        found = dict(data)
        self.folder.mkdir(parents=True, exist_ok=True)
        for key in self.key_iterator(found):
            d = distribution_of(found[key], self.classes, case=found.get("case"))
            d.save(self.folder / f"{d.case}.ssn.safetensors", precision=self.precision)
        return found


def _four(affine: np.ndarray) -> np.ndarray:
    """An affine of 2 or 3 axes as one of 3."""
    if affine.shape == (4, 4):
        return affine
    full = np.eye(4)
    full[:2, :2], full[:2, 3] = affine[:2, :2], affine[:2, -1]
    return full


def _name(path: Any) -> str | None:
    """The name of an image file without its ending."""
    if isinstance(path, (list, tuple)):
        path = path[0] if path else None
    if not isinstance(path, (str, os.PathLike)):
        return None
    name = Path(path).name
    for ending in (".nii.gz", ".nii", ".nrrd", ".mha", ".mhd", ".png", ".npy"):
        if name.endswith(ending):
            return name.removesuffix(ending)
    return name
