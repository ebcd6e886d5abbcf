"""Scores of any method's samples against any number of raters."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from html import escape
from typing import Any

import numpy as np

from ssn import _ssn
from ssn._arrays import as_volume, floats, labels, maps, spacing_of
from ssn._distribution import Distribution, class_names, number


class Scores(Mapping[str, float]):
    """Scores by name, as in the tables of ``ssn evaluate``; nan where one has no value.

    Scores of one mask have its name behind theirs, such as ``scores["dsc nodule"]``, and are the mean over the raters for
    which they have a value; :meth:`per_rater` gives them all. ``docs/reference/metrics.md`` defines every score.
    """

    def __init__(self, figures: Sequence[dict[str, Any]]) -> None:
        # A score at several numbers of samples also has its plain name, for the most of them.
        of_most = {figure["score"]: figure for figure in figures if figure["key"].startswith(figure["score"] + "_")}
        self._figures = {**of_most, **{figure["key"]: figure for figure in figures}}

    def __getitem__(self, key: str) -> float:
        if key not in self._figures:
            raise KeyError(f"{key!r}; there are {', '.join(self._figures)}")
        values = [value for value in self._figures[key]["values"] if value is not None]
        return sum(values) / len(values) if values else math.nan

    def __getattr__(self, name: str) -> float:
        if name.startswith("_"):
            raise AttributeError(name)  # copies and pickles ask before there are figures
        if name not in self._figures:
            near = get_close_matches(name, self._figures, 1)
            raise AttributeError(f"no score {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
        return self[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._figures)

    def __len__(self) -> int:
        return len(self._figures)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(key for key in self._figures if key.isidentifier())]

    def per_rater(self, key: str) -> list[float]:
        """A value for each rater; nan where there is none."""
        if key not in self._figures or not self._figures[key]["per_rater"]:
            several = [key for key, about in self._figures.items() if about["per_rater"]]
            raise KeyError(f"{key!r} has no value for each rater; {', '.join(several)} have")
        return [math.nan if value is None else value for value in self._figures[key]["values"]]

    def to_dict(self) -> dict[str, float]:
        """The scores by name; nan where one has no value."""
        return {key: self[key] for key in self}

    def to_pandas(self) -> Any:
        """The scores as a DataFrame with a row for each: ``title``, ``value`` and, where there are several, ``per_rater``."""
        import pandas

        rows = [
            {"key": key, "title": about["title"], "value": self[key], "per_rater": about["values"] if about["per_rater"] else None}
            for key, about in self._figures.items()
            if key == about["key"]
        ]
        return pandas.DataFrame(rows).set_index("key")

    def _rows(self) -> list[tuple[str, str, str]]:
        rows = []
        for key, about in self._figures.items():
            if key != about["key"]:
                continue
            title = about["title"] if about["group"] is None else f"{about['group']}: {about['title']}"
            rows.append((key, title, _shown(self[key], about["unit"])))
        return rows

    def __repr__(self) -> str:
        rows = self._rows()
        keys, titles = (max(len(row[place]) for row in rows) for place in (0, 1))
        return "\n".join(f"{key:<{keys}}  {title:<{titles}}  {value:>8}" for key, title, value in rows)

    def _repr_html_(self) -> str:
        left = "<td style='text-align:left'>"
        cells = (f"<tr>{left}<code>{escape(key)}</code></td>{left}{escape(title)}</td><td>{value}</td></tr>" for key, title, value in self._rows())
        return f"<table>{''.join(cells)}</table>"


def _shown(value: float, unit: str) -> str:
    if math.isnan(value):
        return "–"
    digits = {"percent": 1, "score": 3, "voxel-count": 0, "number": 1}.get(unit, 2)
    return f"{100 * value if unit == 'percent' else value:.{digits}f}"


def score(
    samples: Any,
    raters: Any,
    *,
    prediction: Any = None,
    probabilities: Any = None,
    classes: Sequence[str] | None = None,
    spacing: float | Sequence[float] | None = None,
    masks: Mapping[str, Sequence[str]] | None = None,
    sets: str | Sequence[str] = (),
    surfaces: bool = False,
    calibration: bool | None = None,
    ged_distance: str = "iou",
    tolerance: float = 2.0,
    empty_penalty: bool = False,
) -> Scores:
    """Scores samples and a prediction of one image against its raters.

    ``samples`` and ``raters`` are label maps, ``[n, h, w]`` or ``[n, d, h, w]`` or lists of maps, of any integer type;
    a distribution may stand for 100 samples of it. ``prediction`` is the one segmentation that DSC is of; without it, the most
    probable labels. ``probabilities``, ``[c, ...]``, are for calibration and soft scores; without them, the shares of the samples.

    ``classes`` are the names of all labels, the background first. GED² is a mean over classes, in which one that no map has counts as agreement:
    name them where there are several, so that images are scored alike.

    ``masks`` name unions of classes, as ``{"whole tumor": ["edema", "core"]}``. ``sets`` adds the scores of challenges: ``curvas``,
    ``pdacvi``, ``qubiq``, ``mmis``, ``consensus`` or ``all``. ``surfaces`` adds HD95, ASSD and the surface Dice at a
    ``tolerance``, in millimeters with a ``spacing`` and in voxels without; ``empty_penalty`` gives pairs with one empty mask the diagonal of the image.
    ``calibration`` says whether ECE, Brier score and NCC are computed; unless it does, they are where there are probabilities. ``ged_distance`` is ``iou``, ``iou-present`` or ``dice``.
    """
    if isinstance(samples, Distribution):
        distribution = samples
        prediction = distribution.prediction() if prediction is None else prediction
        probabilities = distribution.probabilities(100) if probabilities is None else probabilities
        classes = distribution.classes if classes is None else classes
        spacing = distribution.spacing if spacing is None else spacing
        samples = distribution.sample(distribution._native.stored_samples or 100)
    samples, raters = maps(samples, "samples"), maps(raters, "raters")
    axes = 2 if samples.shape[1] == 1 else 3
    size = samples.shape[1:]
    if raters.shape[1:] != size:
        raise ValueError(f"samples are {_sizes(samples)}, but raters are {_sizes(raters)}; bring them to one grid first")
    if prediction is not None:
        prediction = as_volume(labels(prediction, "prediction"), 0)
        if prediction.shape != size:
            raise ValueError(f"the prediction has the shape {prediction.shape}, but samples are {_sizes(samples)}")
    everything = [samples, raters] + ([] if prediction is None else [prediction])
    count = max(2, *(int(array.max()) + 1 for array in everything))
    if classes is None and probabilities is None:
        absent = [label for label in range(1, count - 1) if not any((array == label).any() for array in everything)]
        if absent:
            raise ValueError(
                f"there are labels up to {count - 1}, but none is {absent[0]}: name all classes, so that it is known how many there are, "
                f"or make masks of 0 and {count - 1} masks of 0 and 1"
            )
    if probabilities is not None:
        probabilities = as_volume(floats(probabilities, "probabilities"), 1)
        if probabilities.ndim != 4 or probabilities.shape[1:] != size:
            raise ValueError(f"probabilities have the shape {probabilities.shape}, but [c, ...] of the samples' size is needed")
        if not (probabilities.min() >= -1e-3 and probabilities.max() <= 1.001):
            raise ValueError("probabilities must be 0 to 1; apply a softmax")
        count = max(count, probabilities.shape[0])
    names = class_names(classes, count)
    if probabilities is not None and probabilities.shape[0] != len(names):
        raise ValueError(f"probabilities have {probabilities.shape[0]} classes, but there are {len(names)}: {', '.join(names)}")
    options = {
        "sets": _sets(sets),
        "groups": _groups(masks, names),
        "surfaces": bool(surfaces),
        "voxelwise": probabilities is not None if calibration is None else bool(calibration),
        "distance": _one_of(ged_distance, "ged_distance", DISTANCES),
        "tolerance": number(tolerance, "tolerance"),
        "empty_penalty": bool(empty_penalty),
    }
    found = _ssn.score(samples, raters, prediction, probabilities, names, size, spacing_of(spacing, axes), json.dumps(options))
    return Scores(json.loads(found))


DISTANCES = ["iou", "iou-present", "dice"]
CHALLENGES = ["curvas", "pdacvi", "qubiq", "mmis", "consensus"]


def _sets(sets: str | Sequence[str]) -> list[str]:
    named = [sets] if isinstance(sets, str) else list(sets or ())
    if "all" in named:
        return CHALLENGES
    unknown = [name for name in named if name not in CHALLENGES]
    if unknown:
        raise ValueError(f"sets names {unknown[0]!r}, but there are {', '.join(CHALLENGES)} and all")
    return named


def _groups(masks: Mapping[str, Sequence[str]] | None, names: list[str]) -> list[dict[str, Any]]:
    if not isinstance(masks or {}, Mapping):
        raise TypeError('masks must name lists of classes, as {"whole tumor": ["edema", "core"]}')
    groups = []
    for name, group in (masks or {}).items():
        members = [group] if isinstance(group, str) else list(group)
        unknown = [member for member in members if member not in names[1:]]
        if unknown or not members:
            found = repr(unknown[0]) if unknown else "no class"
            raise ValueError(f"the mask {name!r} has {found}, but the classes are {', '.join(names[1:])}")
        groups.append({"name": name, "classes": [names.index(member) for member in members]})
    return groups


def _one_of(value: str, name: str, known: list[str]) -> str:
    if value not in known:
        raise ValueError(f"{name} is {value!r}, but it must be {', '.join(known[:-1])} or {known[-1]}")
    return value


def _sizes(maps: np.ndarray) -> str:
    size = maps.shape[2:] if maps.shape[1] == 1 else maps.shape[1:]
    return " × ".join(map(str, size))
