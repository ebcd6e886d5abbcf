"""Predictions by a network that stays on its device."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from ssn import _ssn
from ssn._distribution import Distribution, count
from ssn._images import Image, mask_of, read
from ssn._progress import OnProgress, Phases
from ssn._verbs import options
from ssn._worker import Worker


class Predictor:
    """A trained network that predicts images in memory.

        with ssn.Predictor("run") as p:
            d = p(image, spacing=(0.7, 0.7))
            for d in p.map(images):
                ...

    It opens the folder of a run, or a bundle that ``ssn export`` made, in a process of its own, which keeps the network on its ``device``:
    ``auto`` (a GPU if there is one), ``cpu``, ``cuda`` or ``cuda:1``. ``ensemble`` names further runs that predict together with
    the first; ``tile`` is the size ``(d, h, w)`` of tiles for images that are too large to be computed at once; ``samples`` counts for networks
    that draw samples themselves (prob-unet, phiseg).
    """

    def __init__(
        self,
        model: str | os.PathLike[str],
        *,
        device: str = "auto",
        checkpoint: str = "best",
        ensemble: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
        tile: Sequence[int] | None = None,
        voxels_at_once: int | None = None,
        samples: int = 100,
    ) -> None:
        members = members_of(ensemble)
        for path in [model, *members]:
            if not Path(path).exists():
                raise FileNotFoundError(f"{path} does not exist; ssn.train makes a run")
        self.path = Path(model).absolute()
        voxels_at_once = None if voxels_at_once is None else count(voxels_at_once, "voxels_at_once")
        self._options = {
            "device": str(device),
            "checkpoint": checkpoint,
            "ensemble": [os.path.abspath(member) for member in members],
            "tile": tile,
            "voxels_at_once": voxels_at_once,
            "samples": count(samples, "samples"),
        }
        words = [os.fspath(self.path), *options(**{**self._options, "tile": tile_of(tile)}, precision="single")]
        self._worker = Worker({"open": words})
        self.network_seconds = 0.0
        """What the network itself took for the last image."""

    def __call__(
        self,
        image: Any,
        *,
        spacing: float | Sequence[float] | None = None,
        affine: Any = None,
        case: str = "case",
        mask: Any = None,
        on_progress: OnProgress | None = None,
    ) -> Distribution:
        """The distribution over segmentations of an image.

        ``image`` is an array ``[h, w]``, or with an axis of channels ``[c, h, w]`` or ``[c, d, h, w]`` (a volume of one channel is
        ``volume[None]``), or an image of nibabel, SimpleITK or Pillow, which has its own geometry. ``spacing`` is in the order of
        the axes of space, ``affine`` as of :attr:`Distribution.affine`. Intensities are normalized as in training. ``case`` names
        the image, and is part of the seed of its samples. ``mask`` marks the region of interest: only the box around it is predicted.
        """
        prepared = read(image, spacing, affine)
        request, blobs = _request(prepared, case, mask)
        phases = Phases(False, on_progress)
        return self._distribution(self._worker.ask(request, blobs, lambda frame: phases(frame["progress"])), prepared)

    def map(self, images: Iterable[Any], **about: Any) -> Iterator[Distribution]:
        """The distributions of images in their order; while one is computed, the next is taken from ``images``.

        ``about`` is as of a single image. Case names are ``case0``, ``case1``, … unless ``images`` has pairs of name and image, or is a
        dictionary.
        """
        case = str(about.pop("case", "case"))
        waiting: tuple[int, Image] | None = None
        broken: Exception | None = None
        if isinstance(images, Mapping):
            images = images.items()

        def numbered() -> Iterator[tuple[int, Any]]:
            nonlocal broken
            try:
                yield from enumerate(images)
            except Exception as error:
                # After the image that is being computed.
                broken = error

        try:
            for number, item in numbered():
                name, image = item if isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str) else (f"{case}{number}", item)
                prepared = read(image, about.get("spacing"), about.get("affine"))
                request, blobs = _request(prepared, name, about.get("mask"))
                sent = (self._worker.submit(request, blobs), prepared)
                before, waiting = waiting, sent
                if before is not None:
                    yield self._distribution(self._worker.result(before[0], _warn), before[1])
            if waiting is not None:
                last, waiting = waiting, None
                yield self._distribution(self._worker.result(last[0], _warn), last[1])
            if broken is not None:
                raise broken
        finally:
            if waiting is not None:
                self._worker.forget(waiting[0])

    def _distribution(self, reply: tuple[dict[str, Any], bytearray | None], image: Image) -> Distribution:
        about, blob = reply
        self.network_seconds = about["network"]
        made = Distribution._of(_ssn.Distribution.of_bytes(bytes(blob or b"")))
        made._back = image.back
        return made

    def open(self) -> Predictor:
        """Starts the process and loads the network now rather than with the first image."""
        self._worker.open()
        return self

    @property
    def about(self) -> dict[str, Any]:
        """The model, its channels and classes, its device, and the seconds that loading it took."""
        self.open()
        return dict(self._worker.opened)

    def close(self) -> None:
        """Ends the process; the next image starts it again."""
        self._worker.close()

    def __enter__(self) -> Predictor:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopened, (self.path, self._options)

    def __repr__(self) -> str:
        return f"<ssn.Predictor {str(self.path)!r}>"


def _reopened(path: Path, chosen: dict[str, Any]) -> Predictor:
    return Predictor(path, **chosen)


def members_of(ensemble: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    """The paths of further runs, of which there may be one or none."""
    several = [ensemble] if isinstance(ensemble, (str, os.PathLike)) else list(ensemble)
    return [os.fspath(path) for path in several]


def tile_of(tile: Sequence[int] | None) -> str | None:
    """The size of a tile as an option."""
    if tile is None:
        return None
    if not isinstance(tile, Sequence) or len(tile) != 3:
        raise ValueError(f"tile is {tile!r}, but three lengths (d, h, w) are needed; d is 1 for pictures")
    return ",".join(str(count(length, "tile")) for length in tile)


def _warn(frame: dict[str, Any]) -> None:
    Phases(False)(frame["progress"])


def _request(image: Image, case: str, mask: Any) -> tuple[dict[str, Any], list[memoryview]]:
    if not isinstance(case, str) or not case:
        raise ValueError(f"case is {case!r}, but it must be a name")
    about: dict[str, Any] = {"case": case, "shape": list(image.values.shape), "spacing": image.spacing}
    about["affine"] = None if image.affine is None else image.affine[:3]
    blobs = [image.values.reshape(-1).data.cast("B")]
    if mask is not None:
        blobs.append(mask_of(mask, image).reshape(-1).data)
    return {"predict": about}, blobs
