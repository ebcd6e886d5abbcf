"""Distributions of the logits of an image, and their samples."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ssn import _ssn
from ssn._arrays import affine_of, as_numpy, as_volume, finite, floats, spacing_of
from ssn._files import ENDING

if TYPE_CHECKING:
    from ssn._show import View


@dataclass(frozen=True)
class Modes:
    """Modes of variation: orthogonal directions of the logits, the strongest first."""

    directions: np.ndarray
    """float32 ``[k, c, h, w]`` or ``[k, c, d, h, w]``: adding one times a standard normal number to the mean varies it."""
    shares: np.ndarray
    """float64 ``[k]``: the share of each in the whole variance, diagonal included."""


class Distribution:
    """What a network said about one image: a distribution of logits, logits alone, or samples.

    Arrays are on the grid of the image, with axes ``[h, w]`` for a single slice and ``[d, h, w]`` otherwise. Sample ``i`` is
    sample ``i`` of ``ssn sample`` and of the viewer with the same seed and settings, voxel for voxel.
    """

    _native: _ssn.Distribution
    _back: Callable[[np.ndarray], Any] | None = None
    """Makes label maps images like the one that was predicted."""

    @classmethod
    def _of(cls, native: _ssn.Distribution) -> Distribution:
        kind = LowRankNormal if native.kind == "stochastic" else Distribution
        made = object.__new__(kind)
        made._native = native
        return made

    # What it is of.

    @property
    def case(self) -> str:
        """The id of the case; every case has noise of its own."""
        return self._native.case

    @property
    def classes(self) -> list[str]:
        """The names of the labels, the background first."""
        return self._native.classes

    @property
    def kind(self) -> str:
        """``stochastic`` (a distribution), ``deterministic`` (logits alone) or ``sampled`` (samples of a network that draws them)."""
        return self._native.kind

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of the image, ``(h, w)`` or ``(d, h, w)``."""
        return self._squeezed(self._native.size)

    @property
    def spacing(self) -> tuple[float, ...] | None:
        """The distances of voxels in millimeters along the axes of arrays; None where the image does not say."""
        spacing = self._native.spacing
        return None if spacing is None else tuple(spacing[3 - len(self.shape) :])

    @property
    def affine(self) -> np.ndarray:
        """float64 ``[4, 4]``: from the voxel (i, j, k), which is ``array[k, j, i]``, to RAS+ millimeters, as in NIfTI."""
        return np.array(self._native.affine)

    @property
    def region(self) -> tuple[slice, ...]:
        """Where the distribution lies on the grid of the network, which is the image's unless it was resampled; outside it everything is background."""
        start, size = self._native.region
        slices = [slice(first, first + count) for first, count in zip(start, size)]
        return tuple(slices[3 - len(self.shape) :])

    @property
    def rank(self) -> int:
        """The rank of the factor; 0 means independent logits."""
        return self._native.rank

    # Its parameters, on the region.

    @property
    def mean(self) -> np.ndarray:
        """float32 ``[c, h, w]`` or ``[c, d, h, w]``: the mean logits."""
        return self._values("mean", (self._native.channels,))

    @property
    def diagonal(self) -> np.ndarray:
        """float32, as the mean: the variances of the independent part."""
        return self._values("diagonal", (self._native.channels,))

    @property
    def factor(self) -> np.ndarray:
        """float32 ``[r, c, h, w]`` or ``[r, c, d, h, w]``: the covariance is the sum of the outer products of its rows, plus the diagonal."""
        return self._values("factor", (self.rank, self._native.channels))

    @property
    def mask(self) -> np.ndarray | None:
        """bool: the voxels of interest of the region; None means all."""
        if not self._native.has_mask:
            return None
        mask = np.empty(self._region_shape(), np.uint8)
        self._native.read_mask(mask)
        return mask.astype(bool)

    # What it says.

    def sample(
        self,
        n: int = 10,
        *,
        seed: int = 0,
        first: int = 0,
        temperature: float = 1.0,
        class_scale: Mapping[str, float] | Sequence[float] | None = None,
        mode_weights: Mapping[int, float] | Sequence[float] | None = None,
        diagonal_noise: bool = True,
    ) -> np.ndarray:
        """Label maps, uint8 ``[n, h, w]`` or ``[n, d, h, w]``: the samples ``first`` to ``first + n - 1`` of a seed.

        ``temperature`` scales all noise, ``class_scale`` that of single classes by name, ``mode_weights`` that of the
        columns of the factor, all of them or some by number; ``diagonal_noise=False`` leaves out the independent noise of voxels.
        """
        settings = self._settings(seed, first, temperature, class_scale, mode_weights, diagonal_noise)
        maps = self._empty(np.uint8, count(n, "n"))
        self._native.sample(maps, settings)
        return maps

    def sample_image(self, i: int = 0, *, seed: int = 0, **steering: Any) -> Any:
        """Sample ``i`` as the image that was predicted came: an array, or an image of nibabel, SimpleITK or Pillow with its geometry.

        Distributions that were read from a file, copied or pickled give arrays.
        """
        return self._as_image(self.sample(1, seed=seed, first=i, **steering)[0])

    def prediction_image(self, rule: str = "mean") -> Any:
        """The prediction, as :meth:`sample_image` returns samples."""
        return self._as_image(self.prediction(rule))

    def _as_image(self, labels: np.ndarray) -> Any:
        return labels if self._back is None else self._back(labels)

    def probabilities(
        self,
        n: int = 100,
        *,
        seed: int = 0,
        temperature: float = 1.0,
        class_scale: Mapping[str, float] | Sequence[float] | None = None,
        mode_weights: Mapping[int, float] | Sequence[float] | None = None,
        diagonal_noise: bool = True,
    ) -> np.ndarray:
        """Probabilities of every class, float32 ``[c, ...]``: the mean softmax of ``n`` samples."""
        settings = self._settings(seed, 0, temperature, class_scale, mode_weights, diagonal_noise)
        maps = self._empty(np.float32, len(self.classes))
        self._native.summarize(maps, count(n, "n"), settings, False)
        return maps

    def entropy(
        self,
        n: int = 100,
        *,
        seed: int = 0,
        temperature: float = 1.0,
        class_scale: Mapping[str, float] | Sequence[float] | None = None,
        mode_weights: Mapping[int, float] | Sequence[float] | None = None,
        diagonal_noise: bool = True,
    ) -> np.ndarray:
        """The entropy of these probabilities, float32, from 0 (certain) to 1 (all classes are as probable)."""
        settings = self._settings(seed, 0, temperature, class_scale, mode_weights, diagonal_noise)
        map_ = self._empty(np.float32)
        self._native.summarize(map_, count(n, "n"), settings, True)
        return map_

    def prediction(self, rule: str = "mean") -> np.ndarray:
        """The one segmentation that stands for all, uint8: the labels of the mean logits, or of ``marginal`` probabilities."""
        if rule not in ("mean", "marginal"):
            raise ValueError(f'rule is {rule!r}, but it must be "mean" or "marginal"')
        map_ = self._empty(np.uint8)
        self._native.prediction(map_, rule == "marginal")
        return map_

    def volumes(self, n: int = 100, *, seed: int = 0, **steering: Any) -> dict[str, np.ndarray]:
        """The volume of every class but the background in each of ``n`` samples, float64 ``[n]``: milliliters, or voxels without a spacing."""
        n = count(n, "n")
        voxel = 1.0 if self._native.spacing is None else float(np.prod(self._native.spacing)) / 1000.0
        classes = self.classes[1:]
        volumes = np.zeros((len(classes), n))
        at_once = 16
        for first in range(0, n, at_once):
            maps = self.sample(min(at_once, n - first), seed=seed, first=first, **steering)
            for index, map_ in enumerate(maps):
                volumes[:, first + index] = np.bincount(map_.ravel(), minlength=len(classes) + 1)[1:]
        return {name: volumes[index] * voxel for index, name in enumerate(classes)}

    def modes(self, k: int = 3) -> Modes:
        """The ``k`` strongest modes of variation of the low-rank part."""
        k = min(count(k, "k"), self.rank)
        everything = self._region_empty(self.rank, self._native.channels)
        shares = np.array(self._native.modes(everything)) if self.rank else np.zeros(0)
        return Modes(everything[:k], shares[:k])

    # Files and pictures.

    def save(self, path: str | os.PathLike[str], *, precision: str = "single") -> Path:
        """Writes a file for ``ssn sample``, ``ssn view`` and ``ssn.load``; ``precision`` as of ``ssn predict``, ``half-factor`` for half of the size."""
        path = Path(path)
        if not path.name.endswith(ENDING):
            raise ValueError(f"{path} must end with {ENDING}")
        self._native.save(path, precision)
        return path

    def view(self, path: str | os.PathLike[str] | None = None, *, height: int = 640) -> View:
        """The viewer with this distribution: inside a notebook, or as a page in the browser.

        Writes the page to ``path``. Without it, a notebook writes to the folder ``ssn-views`` and its cell holds a link.
        """
        from ssn._show import view

        return view(self, None if path is None else Path(path), height)

    def _repr_html_(self) -> str:
        from ssn._show import html

        return html(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return _of_bytes, (self._native.to_bytes(),)

    def __repr__(self) -> str:
        size = " × ".join(map(str, self.shape))
        about = {"stochastic": f"rank {self.rank}", "sampled": f"{self._native.stored_samples} samples"}
        return f"<ssn.{type(self).__name__} {self.case!r}: {size}, {', '.join(self.classes)}, {about.get(self.kind, 'logits')}>"

    # Helpers.

    def _squeezed(self, size: Sequence[int]) -> tuple[int, ...]:
        return tuple(size[1:] if self._native.size[0] == 1 else size)

    def _region_shape(self) -> tuple[int, ...]:
        return self._squeezed(self._native.region[1])

    def _region_empty(self, *leading: int) -> np.ndarray:
        return np.empty((*leading, *self._region_shape()), np.float32)

    def _values(self, name: str, leading: tuple[int, ...]) -> np.ndarray:
        values = self._region_empty(*leading)
        self._native.read_values(name, values)
        return values

    def _empty(self, dtype: Any, *leading: int) -> np.ndarray:
        return np.empty((*leading, *self.shape), dtype)

    def _settings(
        self,
        seed: int,
        first: int,
        temperature: float,
        class_scale: Mapping[str, float] | Sequence[float] | None,
        mode_weights: Mapping[int, float] | Sequence[float] | None,
        diagonal_noise: bool,
    ) -> _ssn.Settings:
        temperature = number(temperature, "temperature")
        if not temperature >= 0:
            raise ValueError(f"temperature is {temperature}, but it must be at least 0: it scales the noise")
        return (
            whole(seed, "seed"),
            whole(first, "first"),
            temperature,
            self._class_scales(class_scale),
            self._mode_weights(mode_weights),
            bool(diagonal_noise),
        )

    def _class_scales(self, scales: Mapping[str, float] | Sequence[float] | None) -> list[float]:
        if scales is None:
            return []
        if not isinstance(scales, Mapping):
            return numbers(scales, "class_scale")
        names, channels = self.classes, self._native.channels
        unknown = [name for name in scales if name not in names]
        if unknown:
            raise ValueError(f"class_scale names {unknown[0]!r}, but the classes are {', '.join(names)}")
        # A single channel is the foreground's.
        named = names[-channels:]
        if channels == 1 and names[0] in scales:
            raise ValueError(f"class_scale names {names[0]!r}, but the only logits are those of {names[1]!r}")
        return [number(scales.get(name, 1.0), "class_scale") for name in named]

    def _mode_weights(self, weights: Mapping[int, float] | Sequence[float] | None) -> list[float]:
        if weights is None:
            return []
        if not isinstance(weights, Mapping):
            return numbers(weights, "mode_weights")
        unknown = [mode for mode in weights if mode not in range(self.rank)]
        if unknown:
            raise ValueError(f"mode_weights names {unknown[0]!r}, but the columns of the factor are 0 to {self.rank - 1}")
        return [number(weights.get(mode, 1.0), "mode_weights") for mode in range(self.rank)]


class LowRankNormal(Distribution):
    """A normal distribution of logits with low-rank plus diagonal covariance, from the arrays of any network.

    ``mean`` is ``[c, h, w]`` or ``[c, d, h, w]``, ``diagonal`` (variances, at least 0) the same, and ``factor``
    ``[r, c, h, w]`` or ``[r, c, d, h, w]``; NumPy, PyTorch (of any device) and other arrays are taken. A single class is a
    Bernoulli distribution of foreground. ``mask`` marks the voxels of interest; outside it everything is background.
    ``spacing`` is in the order of the array's axes; ``affine`` as of :attr:`Distribution.affine`. The noise of samples
    depends on ``case``, as in files.
    """

    def __init__(
        self,
        mean: Any,
        diagonal: Any = None,
        factor: Any = None,
        *,
        mask: Any = None,
        classes: Sequence[str] | None = None,
        spacing: float | Sequence[float] | None = None,
        affine: Any = None,
        case: str = "case",
    ) -> None:
        mean = floats(mean, "mean")
        if mean.ndim not in (3, 4) or 0 in mean.shape:
            raise ValueError(f"mean has the shape {mean.shape}, but [c, h, w] or [c, d, h, w] is needed, with at least one of each")
        diagonal = np.zeros_like(mean) if diagonal is None else floats(diagonal, "diagonal")
        factor = np.zeros((0, *mean.shape), np.float32) if factor is None else floats(factor, "factor")
        if diagonal.shape != mean.shape:
            raise ValueError(f"diagonal has the shape {diagonal.shape}, but mean has {mean.shape}; the order is mean, diagonal, factor")
        if factor.ndim != mean.ndim + 1 or factor.shape[1:] != mean.shape:
            raise ValueError(f"factor has the shape {factor.shape}, but [rank, {', '.join(map(str, mean.shape))}] is needed")
        if mask is not None:
            mask = as_numpy(mask, "mask")
            if mask.shape != mean.shape[1:]:
                raise ValueError(f"mask has the shape {mask.shape}, but the image has {mean.shape[1:]}")
            mask = as_volume(np.ascontiguousarray(mask != 0).astype(np.uint8), 0)
        for name, array in (("mean", mean), ("diagonal", diagonal), ("factor", factor)):
            finite(array, name)
        if diagonal.min() < 0:
            place = [int(index) for index in np.argwhere(diagonal < 0)[0]]
            raise ValueError(f"diagonal is {diagonal[tuple(place)]} at {place}, but variances must be at least 0")
        labels = max(2, mean.shape[0])
        names = class_names(classes, labels)
        if len(names) > labels:
            raise ValueError(f"there are {len(names)} classes, {', '.join(names)}, but logits of {labels}")
        self._native = _ssn.Distribution(
            as_volume(mean, 1),
            as_volume(diagonal, 1),
            as_volume(factor, 2),
            mask,
            names,
            spacing_of(spacing, mean.ndim - 1),
            affine_of(affine, spacing),
            str(case),
        )


def load(path: str | os.PathLike[str]) -> Distribution:
    """Reads a distribution file, as ``ssn predict`` and :meth:`Distribution.save` write them."""
    path = Path(path)
    if path.is_dir():
        found = sorted(path.glob(f"*{ENDING}"))
        if len(found) != 1:
            raise ValueError(f"{path} holds {len(found)} distribution files; name one, or read all with ssn.load_all")
        path = found[0]
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    return Distribution._of(_ssn.Distribution.load(path))


def _of_bytes(content: bytes) -> Distribution:
    return Distribution._of(_ssn.Distribution.of_bytes(content))


def load_all(folder: str | os.PathLike[str]) -> dict[str, Distribution]:
    """Reads all distribution files of a folder, by the ids of their cases."""
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder} is no folder")
    paths = sorted(folder.glob(f"*{ENDING}"))
    if not paths:
        raise FileNotFoundError(f"{folder} holds no distribution files (*{ENDING}); `ssn predict` writes them")
    found = [load(path) for path in paths]
    return {distribution.case: distribution for distribution in found}


def class_names(classes: Sequence[str] | None, count: int) -> list[str]:
    """The given names of at least ``count`` labels, or plain ones."""
    if classes is None:
        return ["background", "foreground"] if count == 2 else ["background", *(f"class {i}" for i in range(1, count))]
    names = [] if isinstance(classes, str) or not isinstance(classes, Sequence) else [str(name) for name in classes]
    if len(names) < count or len(set(names)) < len(names) or "" in names:
        raise ValueError(f"classes is {classes!r}, but {count} different names are needed, the background's first")
    return names


def whole(value: Any, name: str) -> int:
    """A whole number of 64 bits."""
    try:
        found = int(value)
    except (TypeError, ValueError, OverflowError):
        raise TypeError(f"{name} is {value!r}, but a whole number is needed") from None
    if found != value or not 0 <= found < 1 << 64:
        raise ValueError(f"{name} is {value!r}, but it must be a whole number, at least 0 and below 2⁶⁴")
    return found


def count(value: Any, name: str) -> int:
    """A number of things, at least one."""
    found = whole(value, name)
    if found == 0:
        raise ValueError(f"{name} is 0, but at least one is needed")
    return found


def number(value: Any, name: str) -> float:
    """A real number."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{name} is {value!r}, but a number is needed") from None


def numbers(values: Any, name: str) -> list[float]:
    """A list of real numbers."""
    try:
        return [float(value) for value in values]
    except (TypeError, ValueError):
        raise TypeError(f"{name} is {values!r}, but a list of numbers is needed") from None
