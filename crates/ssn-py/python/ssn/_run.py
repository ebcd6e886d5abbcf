"""Training, and runs: trained networks."""

from __future__ import annotations

import csv
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ssn._distribution import Distribution, count, whole
from ssn._errors import STOPPED, failure, in_python
from ssn._predictor import Predictor, members_of, tile_of
from ssn._progress import OnProgress, Phases
from ssn._verbs import Answer, AnyPath, options, paths
from ssn._worker import Worker

METRICS = "metrics.csv"


class Event:
    """An event of a training: ``kind``, the number of steps done as ``step``, and the fields of its kind as attributes.

    | kind | fields |
    |---|---|
    | ``began`` | ``steps``, ``done``, ``parameters``, ``cases``, ``device`` |
    | ``step`` | ``loss``, ``gradient_norm``, ``learning_rate`` and more |
    | ``row`` | means of the steps since the last, as in ``metrics.csv`` |
    | ``validating`` | ``done``, ``total`` |
    | ``validated`` | ``ged``, ``diversity``, ``rater_diversity``, ``dice``, ``is_best`` |
    | ``saved`` | ``path`` |
    | ``resumed`` | |
    | ``incident``, ``unscored``, ``damaged-checkpoint`` | ``reason`` |
    | ``ended`` | ``reason``, ``best`` |
    """

    kind: str
    step: int
    fields: dict[str, Any]

    def __init__(self, kind: str, step: int, fields: dict[str, Any]) -> None:
        self.kind, self.step, self.fields = kind, step, fields

    def __getattr__(self, name: str) -> Any:
        if name == "fields" or name not in self.fields:
            raise AttributeError(f"the event {self.__dict__.get('kind')!r} has no {name!r}")
        return self.fields[name]

    def __repr__(self) -> str:
        return f"<ssn.Event {self.kind!r} step={self.step} " + " ".join(f"{key}={value!r}" for key, value in self.fields.items()) + ">"


class Run:
    """A trained network: the folder of a run, or a bundle that ``ssn export`` made."""

    def __init__(self, path: AnyPath) -> None:
        if not Path(path).exists():
            raise FileNotFoundError(f"{path} does not exist; ssn.train makes a run")
        self.path = Path(path).absolute()
        self._predictors: dict[tuple[str, str], Predictor] = {}

    def predictor(
        self,
        *,
        device: str = "auto",
        checkpoint: str = "best",
        ensemble: AnyPath | Sequence[AnyPath] = (),
        tile: Sequence[int] | None = None,
        voxels_at_once: int | None = None,
        samples: int = 100,
    ) -> Predictor:
        """The network, kept on its device, to predict images."""
        return Predictor(
            self.path, device=device, checkpoint=checkpoint, ensemble=ensemble, tile=tile, voxels_at_once=voxels_at_once, samples=samples
        )

    def predict(
        self,
        image: Any,
        *,
        spacing: float | Sequence[float] | None = None,
        affine: Any = None,
        case: str = "case",
        mask: Any = None,
        device: str = "auto",
        checkpoint: str = "best",
    ) -> Distribution:
        """The distribution of one image, as of :class:`Predictor`, one of which is kept for the next image."""
        key = (device, checkpoint)
        if key not in self._predictors:
            self._predictors[key] = self.predictor(device=device, checkpoint=checkpoint)
        return self._predictors[key](image, spacing=spacing, affine=affine, case=case, mask=mask)

    @property
    def metrics(self) -> dict[str, np.ndarray]:
        """The columns of ``metrics.csv``: means over some steps, or validations; nan where a row has no value."""
        path = self.path / METRICS
        if not path.is_file():
            return {}
        with path.open(encoding="utf-8", newline="") as file:
            # A line that is being written has no end.
            rows = [row for row in csv.DictReader(line for line in file if line.endswith("\n"))]
        names = [name for name in (rows[0] if rows else {}) if name != "check"]
        return {name: np.array([float(row[name]) if row[name] else math.nan for row in rows]) for name in names}

    @property
    def best(self) -> dict[str, float] | None:
        """The validation with the lowest GED²: ``step`` and ``ged``; None if there was none."""
        metrics = self.metrics
        ged = metrics.get("validation_ged", np.array([]))
        if not np.isfinite(ged).any():
            return None
        place = int(np.nanargmin(ged))
        return {"step": int(metrics["step"][place]), "ged": float(ged[place])}

    def __repr__(self) -> str:
        return f"<ssn.Run {str(self.path)!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Run, (self.path,)


def open(path: AnyPath) -> Run:
    """A trained run; predicting with it needs PyTorch 2.11 in the same environment."""
    return Run(path)


def train(
    config: AnyPath | None = None,
    *,
    data: AnyPath | None = None,
    out: AnyPath = "run",
    preset: str | None = None,
    set: Mapping[str, Any] | None = None,
    seed: int | None = None,
    fold: int | None = None,
    resume: bool | AnyPath = False,
    allow_changed_data: bool = False,
    skip_check: bool = False,
    time_limit: float | None = None,
    workers: int | None = None,
    device: str = "auto",
    on_event: Callable[[Event], Any] | None = None,
    progress: bool = True,
) -> Run:
    """Trains a network as ``ssn train`` does, and returns the run.

    ``config`` is a file that ``ssn.init`` wrote, ``data`` a dataset of any recognized layout; ``set`` changes settings, as
    ``{"training.steps": 1000}``. ``on_event`` gets every :class:`Event`; if it returns False, the training saves and ends, and the run is
    returned. Ctrl-C saves as well, and is raised then. ``resume`` continues the run in ``out``, or in the folder that it names, longer with
    ``set={"training.steps": 2000}``, and, unless ``allow_changed_data``, only on the same images and labels. ``time_limit`` is in minutes.
    """
    if on_event is not None and not callable(on_event):
        raise TypeError(f"on_event is {on_event!r}, but a function is needed")
    if not isinstance(resume, bool) and os.fspath(out) not in ("run", os.fspath(resume)):
        raise ValueError(f"resume names {os.fspath(resume)} and out {os.fspath(out)}, but a run continues in its folder")
    place = Path(out if isinstance(resume, bool) else resume)
    if resume and not place.exists():
        raise FileNotFoundError(f"{place} does not exist; ssn.train makes a run")
    configs = [] if config is None else paths(config, "config")
    datasets = [] if data is None else paths(data, "data")
    if set is not None and not isinstance(set, Mapping):
        raise TypeError('set must name settings, as {"training.steps": 1000}')
    settings = [f"{key}={_toml(value, key)}" for key, value in _flat(set or {}).items()]
    seed = None if seed is None else whole(seed, "seed")
    fold = None if fold is None else whole(fold, "fold")
    workers = None if workers is None else whole(workers, "workers")
    shared = options(
        data=datasets, set=settings, time_limit=time_limit, workers=workers, device=str(device), allow_changed_data=allow_changed_data, skip_check=skip_check
    )
    given = {"config": config, "preset": preset, "seed": seed, "fold": fold}
    named = [name for name, value in given.items() if value is not None]
    if resume:
        if named:
            raise ValueError(f"{named[0]} is given, but a resumed run has the one that it began with")
        words = ["train", f"--resume={place}", *shared]
    else:
        if config is None and data is None:
            raise ValueError("there is nothing to train on; name a config, which ssn.init writes, or data")
        words = ["train", *configs, *options(out=place, preset=preset, seed=seed, fold=fold), *shared]
    phases, last = Phases(progress), 0

    def on_frame(frame: dict[str, Any], worker: Worker) -> None:
        nonlocal last
        fields = dict(frame["event"])
        kind = fields.pop("event")
        last = fields.get({"began": "done", "ended": "steps"}.get(kind, "step"), last)
        if on_event is not None and _is_false(on_event(Event(kind, last, fields))):
            worker.stop()

    answer, interrupted = _in_worker(words, phases, on_frame)
    problem = answer["failure"]
    if problem is not None and problem["code"] == STOPPED and interrupted:
        saved = f"saved at step {answer['answer']['steps']}; continue with ssn.train(resume={str(place)!r})"
        raise KeyboardInterrupt(saved)
    if problem is not None and problem["code"] != STOPPED:
        raise failure(problem["code"], problem["message"])
    if problem is not None and progress:
        phases.line(in_python(problem["message"]))
    return Run(place)


def predict(
    model: AnyPath,
    data: AnyPath | Sequence[AnyPath] | None = None,
    out: AnyPath = "predictions",
    *,
    ensemble: AnyPath | Sequence[AnyPath] = (),
    split: str | None = None,
    checkpoint: str = "best",
    precision: str = "half-factor",
    device: str = "auto",
    tile: Sequence[int] | None = None,
    voxels_at_once: int | None = None,
    samples: int = 100,
    prediction: str = "mean",
    probabilities: bool = False,
    nifti: bool = False,
    overwrite: bool = False,
    progress: bool = True,
    on_progress: OnProgress | None = None,
) -> Answer:
    """Predicts a dataset, or image files, into a folder, as ``ssn predict`` does; :func:`ssn.load_all` reads it.

    Without ``data``, the test cases of the dataset of the run. Stopped by Ctrl-C, the same call continues.
    """
    words = ["predict", *paths(model, "model"), *([] if data is None else paths(data, "data"))]
    words += options(
        out=out,
        ensemble=members_of(ensemble),
        split=split,
        checkpoint=checkpoint,
        precision=precision,
        device=str(device),
        tile=tile_of(tile),
        voxels_at_once=None if voxels_at_once is None else count(voxels_at_once, "voxels_at_once"),
        samples=count(samples, "samples"),
        prediction=prediction,
        probabilities=probabilities,
        nifti=nifti,
        overwrite=overwrite,
    )
    reply, _ = _in_worker(words, Phases(progress, on_progress))
    return Answer(reply["answer"] or {}, reply["text"])


def _in_worker(
    words: list[str], phases: Phases, on_event: Callable[[dict[str, Any], Worker], None] | None = None
) -> tuple[dict[str, Any], bool]:
    """Runs a verb in a worker of its own; returns the reply, and whether Ctrl-C stopped it."""
    worker = Worker()

    def on_frame(frame: dict[str, Any]) -> None:
        if "progress" in frame:
            phases(frame["progress"])
        elif on_event is not None:
            on_event(frame, worker)

    try:
        reply, _ = worker.ask({"run": words}, on_frame=on_frame)
    finally:
        phases.close()
        worker.close()
    return reply, worker.interrupted


def _is_false(answer: Any) -> bool:
    return isinstance(answer, (bool, np.bool_)) and not answer


def _flat(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings whose sections may be mappings, as ``{"training": {"steps": 1000}}``."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping) and "." not in str(key):
            flat |= {f"{key}.{inner}": of_inner for inner, of_inner in value.items()}
        else:
            flat[str(key)] = value
    return flat


def _toml(value: Any, key: str = "set") -> str:
    """A value as ``--set`` takes it."""
    if isinstance(value, str):
        return value
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        raise ValueError(f"{key} is {value}, which no setting can be; leave it out for the default")
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key} = {_toml_inside(item)}" for key, item in value.items()) + "}"
    if isinstance(value, np.generic):
        value = value.item()
    return json.dumps(list(value) if isinstance(value, tuple) else value)


def _toml_inside(value: Any) -> str:
    return json.dumps(value) if isinstance(value, str) else _toml(value)
