"""Arrays of any library as NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def as_numpy(array: Any, name: str) -> np.ndarray:
    """An array of NumPy, PyTorch or any library with DLPack or the array protocol, without a copy where that is possible."""
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array, whose mask would be lost; fill it first")
    if hasattr(array, "detach"):  # a tensor of PyTorch, which may need a gradient, lie on a GPU, or be bfloat16
        array = array.detach().cpu()
        if str(array.dtype) == "torch.bfloat16":
            array = array.float()
    elif not hasattr(array, "__array__") and hasattr(array, "__dlpack__"):
        return np.from_dlpack(array)
    try:
        found = np.asarray(array)
    except (ValueError, TypeError, RuntimeError) as error:
        raise ValueError(f"{name} is no array: {error}") from None
    if found.dtype.kind not in "biufc":
        raise TypeError(f"{name} is a {type(array).__name__} of {found.dtype}, but an array of numbers is needed")
    return found


def floats(array: Any, name: str) -> np.ndarray:
    """An array of single precision, contiguous."""
    found = as_numpy(array, name)
    if found.dtype.kind not in "fiub":
        raise TypeError(f"{name} holds {found.dtype}, but real numbers are needed")
    with np.errstate(over="ignore"):  # what becomes infinite is refused by name
        return np.asarray(found, dtype=np.float32, order="C")


def finite(array: np.ndarray, name: str) -> None:
    """Refuses values that are not finite, and names the first."""
    # A sum is finite only if all are, and needs no array of its own.
    if array.size and not np.isfinite(np.sum(array, dtype=np.float64)) and not np.isfinite(array).all():
        place = [int(index) for index in np.argwhere(~np.isfinite(array))[0]]
        raise ValueError(f"{name} is {array[tuple(place)]} at {place}, but all values must be finite")


def labels(array: Any, name: str) -> np.ndarray:
    """An array of labels 0 to 255, contiguous."""
    found = as_numpy(array, name)
    if found.dtype == np.uint8:
        return np.ascontiguousarray(found)
    if found.dtype.kind not in "biuf":
        raise TypeError(f"{name} holds {found.dtype}, but labels are whole numbers")
    narrow = found.astype(np.uint8, order="C") if _fits(found) else None
    if narrow is None or (found.dtype.kind == "f" and not np.array_equal(narrow, found)):
        raise ValueError(f"{name} holds values that are no labels; those are whole numbers from 0 to 255")
    return narrow


def _fits(array: np.ndarray) -> bool:
    return array.size == 0 or bool(array.min() >= 0 and array.max() <= 255)


def maps(array: Any, name: str) -> np.ndarray:
    """Label maps ``[n, d, h, w]`` from an array ``[n, h, w]`` or ``[n, d, h, w]``, or a list of maps."""
    if isinstance(array, Sequence) and not isinstance(array, (str, bytes)):
        if not array:
            raise ValueError(f"{name} is empty, but at least one is needed")
        parts = [labels(part, f"{name}[{index}]") for index, part in enumerate(array)]
        shapes = {part.shape for part in parts}
        if len(shapes) > 1:
            listed = ", ".join(map(str, sorted(shapes)))
            raise ValueError(f"{name} differ in shape: {listed}; bring them to one grid first")
        found = np.stack(parts)
    else:
        found = labels(array, name)
    if found.ndim not in (3, 4):
        raise ValueError(
            f"{name} has the shape {found.shape}, but [n, h, w] or [n, d, h, w] is needed; "
            f"put a single map into a list"
        )
    if found.shape[0] == 0:
        raise ValueError(f"{name} is empty, but at least one is needed")
    if 0 in found.shape:
        raise ValueError(f"{name} has the shape {found.shape}, without a single voxel")
    return as_volume(found, 1)


def as_volume(array: np.ndarray, leading: int) -> np.ndarray:
    """An array whose axes behind the first ``leading`` ones are d, h, w, where h and w alone are a single slice."""
    if array.ndim == leading + 2:
        return array.reshape(*array.shape[:leading], 1, *array.shape[leading:])
    return array


def spacing_of(spacing: Any, axes: int) -> list[float] | None:
    """The distances of voxels along d, h, w from one number, or from as many as there are axes, 2 or 3."""
    if spacing is None:
        return None
    try:
        values = [float(value) for value in np.atleast_1d(spacing)]
    except (TypeError, ValueError):
        values = []
    if len(values) == 1:
        values *= axes
    if len(values) != axes or not np.isfinite(values).all() or min(values) <= 0:
        raise ValueError(f"spacing is {spacing!r}, but {axes} positive numbers are needed, in the order of the axes")
    return [1.0] * (3 - axes) + values


def affine_of(affine: Any, spacing: Any) -> list[list[float]] | None:
    """The rows of a matrix ``[4, 4]``; it says the spacing, too."""
    if affine is None:
        return None
    if spacing is not None:
        raise ValueError("affine and spacing are both given, but affine says the spacing, too")
    matrix = np.asarray(affine)
    if matrix.shape != (4, 4) or matrix.dtype.kind not in "fiu" or not np.isfinite(matrix).all():
        raise ValueError("affine must be a matrix [4, 4] of finite numbers")
    rows: list[list[float]] = matrix.astype(float).tolist()
    return rows
