"""Images of NumPy and of other libraries: their values and geometry, and label maps of the same kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ssn._arrays import affine_of, as_numpy, finite, floats, spacing_of

Back = Callable[[np.ndarray], Any]


@dataclass(frozen=True)
class Image:
    """An image as the worker takes it."""

    values: np.ndarray
    """float32 ``[c, d, h, w]``."""
    spacing: list[float] | None
    """Along d, h, w."""
    affine: list[list[float]] | None
    back: Back
    """Makes a label map, ``[h, w]`` or ``[d, h, w]``, an image of the same kind and geometry."""


def read(image: Any, spacing: float | Sequence[float] | None, affine: Any) -> Image:
    """Takes an array or an image of nibabel, SimpleITK or Pillow; only arrays and pictures take ``spacing`` or ``affine``."""
    library = type(image).__module__.partition(".")[0]
    given = spacing is not None or affine is not None
    if given and library in ("nibabel", "SimpleITK"):
        raise ValueError(f"the image of {library} has a geometry of its own; leave out spacing and affine, or give its array")
    if library == "nibabel" and hasattr(image, "affine"):
        array, own, back = _nibabel(image)
    elif library == "SimpleITK" and hasattr(image, "GetDirection"):
        array, own, back = _simple_itk(image)
    elif library == "PIL" and hasattr(image, "getbands"):
        array, own, back = _pillow(image)
    elif isinstance(image, (str, bytes)) or hasattr(image, "__fspath__"):
        raise TypeError(f"image is the path {str(image)!r}, but an array or an image is needed; ssn.predict takes files")
    else:
        array, own, back = as_numpy(image, "image"), None, _as_array
    values = floats(array, "image")
    if values.ndim not in (2, 3, 4) or 0 in values.shape:
        raise ValueError(f"image has the shape {values.shape}, but [h, w], [c, h, w] or [c, d, h, w] is needed")
    if values.ndim == 3 and spacing is not None and np.size(spacing) == 3:
        raise ValueError("spacing has 3 numbers, but the image has axes [c, h, w]; a volume of one channel is volume[None]")
    finite(values, "image")
    axes = 2 if values.ndim < 4 else 3
    if given:
        matrix, distances = affine_of(affine, spacing), spacing_of(spacing, axes)
    else:
        matrix, distances = own, None
    if values.ndim == 2:
        values = values[None]
    if values.ndim == 3:
        values = values[:, None]
    return Image(np.ascontiguousarray(values), distances, matrix, back)


def mask_of(mask: Any, image: Image) -> np.ndarray:
    """Takes a mask of the image, as an array or as an image of its kind: uint8 ``[d, h, w]``."""
    library = type(mask).__module__.partition(".")[0]
    if library in ("nibabel", "SimpleITK", "PIL"):
        given = read(mask, None, None)
        found = given.values[0]
        if given.affine is not None and image.affine is not None and not np.allclose(given.affine, image.affine, rtol=1e-3, atol=1e-2):
            raise ValueError("mask has another affine than the image; bring it to the grid of the image first")
    else:
        found = as_numpy(mask, "mask")
    size = image.values.shape[1:]
    if found.shape not in (size, size[1:] if size[0] == 1 else size):
        raise ValueError(f"mask has the shape {found.shape}, but the image has {size[1:] if size[0] == 1 else size}")
    return np.ascontiguousarray(found != 0).astype(np.uint8).reshape(size)


ORIENTATION = 274
"""The tag of EXIF."""


def _as_array(labels: np.ndarray) -> np.ndarray:
    return labels


Parts = tuple[np.ndarray, "list[list[float]] | None", Back]


def _nibabel(image: Any) -> Parts:
    # Axes are i, j, k and then channels.
    array = np.asanyarray(image.dataobj)
    array = array.reshape(*array.shape[:3], *(n for n in array.shape[3:] if n > 1))
    if array.ndim not in (2, 3, 4):
        raise ValueError(f"image has the shape {array.shape}, but [i, j, k] or [i, j, k, c] is needed")
    array = array.T
    volume = array[None, None] if array.ndim == 2 else array[None] if array.ndim == 3 else array

    def back(labels: np.ndarray) -> Any:
        header = image.header.copy()
        header.set_data_dtype(np.uint8)
        values = labels.reshape(volume.shape[1:]).T
        return type(image)(values.reshape(image.shape[:3]), image.affine, header)

    return volume, np.asarray(image.affine, float).tolist(), back


def _simple_itk(image: Any) -> Parts:
    import SimpleITK  # type: ignore[import-untyped, import-not-found, unused-ignore]

    array = SimpleITK.GetArrayFromImage(image)  # d, h, w and then components
    axes = image.GetDimension()
    if axes not in (2, 3):
        raise ValueError(f"image has {axes} axes of space, but 2 or 3 are needed; channels are components of voxels, by SimpleITK.Compose")
    if image.GetNumberOfComponentsPerPixel() > 1:
        array = np.moveaxis(array, -1, 0)
    else:
        array = array[None]
    # From LPS to RAS.
    direction = np.eye(3)
    direction[:axes, :axes] = np.reshape(image.GetDirection(), (axes, axes))
    affine = np.eye(4)
    affine[:3, :3] = direction * [*image.GetSpacing(), 1.0][:3]
    affine[:axes, 3] = image.GetOrigin()
    affine[:2] *= -1.0

    def back(labels: np.ndarray) -> Any:
        made = SimpleITK.GetImageFromArray(np.ascontiguousarray(labels).reshape(image.GetSize()[::-1]))
        made.CopyInformation(image)  # type: ignore[no-untyped-call, unused-ignore]
        return made

    return array[:, None] if axes == 2 else array, affine.tolist(), back


def _pillow(image: Any) -> Parts:
    if image.mode in ("P", "1", "PA", "CMYK", "YCbCr", "LAB", "HSV"):
        raise ValueError(f'image has the mode {image.mode!r}; convert it as the network has learned, such as image.convert("L")')
    if image.getexif().get(ORIENTATION, 1) != 1:
        raise ValueError("image is to be turned or mirrored by its EXIF orientation; do that with PIL.ImageOps.exif_transpose")
    array = np.asarray(image)
    array = array if array.ndim == 2 else np.moveaxis(array, -1, 0)

    def back(labels: np.ndarray) -> Any:
        from PIL import Image as Pillow  # type: ignore[import-not-found, unused-ignore]

        return Pillow.fromarray(labels)

    return array, None, back
