"""Training and prediction, by the engine: a process of its own with PyTorch's libraries."""

from __future__ import annotations

import csv
import json
import math
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ssn import _program, _ssn
from ssn._arrays import affine_of, floats, spacing_of
from ssn._distribution import Distribution, load
from ssn._files import ENDING

Row = dict[str, float]


class Run:
    """A trained network: the folder of a run, or a bundle that ``ssn export`` made."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not self.path.exists():
            raise FileNotFoundError(f"{self.path} does not exist; ssn.train or `ssn train` makes a run")

    def predict(
        self,
        image: Any,
        *,
        spacing: float | Sequence[float] | None = None,
        affine: Any = None,
        case: str = "case",
        device: str = "auto",
        checkpoint: str = "best",
    ) -> Distribution:
        """The distribution of one image: ``[h, w]``, or with an axis of channels ``[c, h, w]`` or ``[c, d, h, w]``.

        A volume of one channel is ``volume[None]``. ``spacing`` is in the order of the axes of space, ``affine`` as of
        :attr:`Distribution.affine`. Intensities are normalized as in training. Each call starts the engine anew, which takes
        a second or two: many images are predicted fastest by ``ssn predict``.
        """
        image = floats(image, "image")
        if image.ndim not in (2, 3, 4) or 0 in image.shape:
            raise ValueError(f"image has the shape {image.shape}, but [h, w], [c, h, w] or [c, d, h, w] is needed")
        if not np.isfinite(image).all():
            raise ValueError("image holds values that are not finite")
        if image.ndim == 2:
            image = image[None]
        volume = image if image.ndim == 4 else image[:, None]
        if not isinstance(case, str) or not case or "/" in case or case.startswith("."):
            raise ValueError(f"case is {case!r}, but it becomes the name of a file")
        matrix, distances = affine_of(affine, spacing), spacing_of(spacing, image.ndim - 1)
        with tempfile.TemporaryDirectory(prefix="ssn-") as folder:
            out = Path(folder) / "predictions"
            if distances is None and matrix is None:
                file = Path(folder) / f"{case}.npy"
                np.save(file, volume)
            else:
                file = Path(folder) / f"{case}.nii.gz"
                _ssn.write_image(file, np.ascontiguousarray(volume), distances, matrix)
            options: list[str | Path] = ["--out", out, "--device", device, "--checkpoint", checkpoint, "--precision", "single", "--quiet"]
            _program.run(["predict", self.path, file, *options])
            return load(next(out.glob(f"*{ENDING}")))

    def metrics(self) -> list[Row]:
        """The rows of ``metrics.csv``: means over some steps, or validations."""
        return _rows(self.path / "metrics.csv")

    def __repr__(self) -> str:
        return f"<ssn.Run {str(self.path)!r}>"


def open(path: str | os.PathLike[str]) -> Run:
    """A trained run; predicting with it needs PyTorch 2.11 in the same environment."""
    return Run(path)


def train(
    config: str | os.PathLike[str] | None = None,
    *,
    data: str | os.PathLike[str] | None = None,
    out: str | os.PathLike[str] = "run",
    preset: str | None = None,
    set: Mapping[str, Any] | None = None,
    seed: int | None = None,
    resume: bool = False,
    allow_changed_data: bool = False,
    device: str = "auto",
    on_step: Callable[[Row], None] | None = None,
) -> Run:
    """Trains a network as ``ssn train`` does, and gives the run.

    ``config`` is a file that ``ssn init`` wrote, ``data`` a dataset of any recognized layout; ``set`` changes settings, as
    ``{"training.steps": 1000}``. ``on_step`` is called with every new row of ``metrics.csv``, of steps or of a validation; what a row does not
    have is nan. Ctrl-C saves a checkpoint, and ``resume=True`` goes on from the last one in ``out``, with the settings that the run began with
    and, unless ``allow_changed_data``, only on the same images and labels.
    """
    out = Path(out)
    for name, place in {"config": config, "data": data}.items():
        if place is not None and not Path(place).exists():
            raise FileNotFoundError(f"{name}: {place} does not exist")
    if config is None and data is None and not resume:
        raise ValueError("there is nothing to train on; name a config, which `ssn init DATASET` writes, or data")
    if allow_changed_data and not resume:
        raise ValueError("allow_changed_data is given, but only a resumed run has data that may have changed")
    if resume:
        given = {"config": config, "preset": preset, "set": set, "seed": seed}
        named = [name for name, value in given.items() if value is not None]
        if named:
            raise ValueError(f"{named[0]} is given, but a resumed run has the settings that it began with")
        arguments: list[Any] = ["train", "--resume", out, *(["--allow-changed-data"] if allow_changed_data else [])]
    else:
        arguments = ["train", *([] if config is None else [config]), "--out", out]
        arguments += [] if preset is None else ["--preset", preset]
        arguments += [] if seed is None else ["--seed", str(seed)]
        if not isinstance(set or {}, Mapping):
            raise TypeError('set must name settings, as {"training.steps": 1000}')
        for key, value in (set or {}).items():
            arguments += ["--set", f"{key}={_toml(value)}"]
    arguments += [] if data is None else ["--data", data]
    arguments += ["--device", device, "--quiet"]
    seen = len(_rows(out / "metrics.csv"))

    def poll() -> None:
        nonlocal seen
        if on_step is None:
            return
        for row in _rows(out / "metrics.csv", seen):
            seen += 1
            on_step(row)

    _program.run(arguments, poll)
    return Run(out)


def _toml(value: Any) -> str:
    """A value as ``--set`` takes it."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {_toml_inside(item)}" for key, item in value.items()) + "}"
    if isinstance(value, np.generic):
        value = value.item()
    return json.dumps(value if not isinstance(value, tuple) else list(value))


def _toml_inside(value: Any) -> str:
    return json.dumps(value) if isinstance(value, str) else _toml(value)


def _rows(path: Path, first: int = 0) -> list[Row]:
    """Returns the rows of a file from index ``first`` on."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        return []
    complete = text[: text.rfind("\n") + 1]  # the last line may be half written
    rows = list(csv.DictReader(complete.splitlines()))
    return [{key: float(value) if value else math.nan for key, value in row.items() if key != "check"} for row in rows[first:]]
