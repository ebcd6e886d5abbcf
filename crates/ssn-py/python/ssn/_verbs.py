"""The verbs of ``ssn`` that need no network: in this process, with progress, and stopped by Ctrl-C."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from ssn import _program, _ssn
from ssn._errors import PROBLEMS_FOUND, failure
from ssn._progress import OnProgress, Phases

AnyPath = str | os.PathLike[str]


class Answer(dict[str, Any]):
    """The result of a verb, as its ``--json``; it shows itself as the verb prints it."""

    def __init__(self, found: Mapping[str, Any], text: str) -> None:
        super().__init__(found)
        self.text = text

    def __repr__(self) -> str:
        return self.text.strip("\n")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self), self.text)


class Evaluation(Answer):
    """Scores of predictions, as means over cases."""

    @property
    def figures(self) -> list[dict[str, Any]]:
        """The rows of the table: ``key``, ``title``, ``mean``, ``standard_error`` and more."""
        found: list[dict[str, Any]] = self["figures"]
        return found

    def to_dict(self) -> dict[str, float | None]:
        """The mean of every score, by its key; a score at several numbers of samples also has its plain name, for the most of them."""
        means = {figure["key"]: figure["mean"] for figure in self.figures}
        plain = {match[1]: mean for key, mean in means.items() if (match := re.fullmatch(r"(ged2)_\d+", key))}
        return {**plain, **means}

    def to_pandas(self) -> Any:
        """The table as a DataFrame, with a row for each score."""
        import pandas

        return pandas.DataFrame(self.figures).set_index("key")

    def _repr_html_(self) -> str:
        left = "<td style='text-align:left'>"
        rows = ""
        for figure in self.figures:
            error = figure.get("standard_error")
            shown = "–" if figure["mean"] is None else f"{figure['mean']:.4g}" + ("" if error is None else f" ± {error:.2g}")
            rows += f"<tr>{left}<code>{escape(figure['key'])}</code></td>{left}{escape(figure.get('title', ''))}</td><td>{shown}</td></tr>"
        verdict = "".join(f"<p>{escape(line)}</p>" for line in self.get("verdict", []))
        return f"<table>{rows}</table>{verdict}"


class Check(Answer):
    """Everything that a check of a dataset found."""

    @property
    def ok(self) -> bool:
        """Whether there are no problems."""
        return bool(self["ok"])

    def __bool__(self) -> bool:
        return self.ok


def options(**values: Any) -> list[str]:
    """Options as on a command line: None and False are left out, lists are repeated."""
    words: list[str] = []
    for name, value in values.items():
        option = "--" + name.replace("_", "-")
        for one in value if isinstance(value, (list, tuple)) else [value]:
            if one is True:
                words.append(option)
            elif one is not None and one is not False:
                words.append(f"{option}={os.fspath(one) if isinstance(one, os.PathLike) else one}")
    return words


def paths(given: AnyPath | Sequence[AnyPath], name: str) -> list[str]:
    """Returns paths that exist as words; a path that begins with a dash gets a folder."""
    several = [given] if isinstance(given, (str, os.PathLike)) else list(given)
    if not several:
        raise ValueError(f"{name} is empty, but at least one path is needed")
    for path in several:
        if not os.path.exists(path):
            raise FileNotFoundError(f"{name}: {os.fspath(path)} does not exist")
    return [path if not (path := os.fspath(one)).startswith("-") else os.path.join(".", path) for one in several]


def pairs(values: Mapping[Any, Any] | Sequence[Any] | None) -> list[str]:
    """Pairs as ``name=value``; a list has numbers for names."""
    if values is not None and not isinstance(values, Mapping):
        values = dict(enumerate(values))
    return [f"{name}={value}" for name, value in (values or {}).items()]


def run(words: list[str], progress: bool, on_progress: OnProgress | None, allowed: tuple[int, ...] = ()) -> tuple[dict[str, Any], str, int]:
    """Runs a verb; returns its JSON, its text and its code."""
    phases = Phases(progress, on_progress)
    try:
        found, text, code, message = _ssn.run_verb(words, _program.folder(), lambda event: phases(json.loads(event)))
    except KeyboardInterrupt:
        raise KeyboardInterrupt("stopped; the same call continues") from None
    finally:
        phases.close()
    if code != 0 and code not in allowed:
        raise failure(code, message)
    return json.loads(found) if found else {}, text, code


def evaluate(
    predictions: AnyPath,
    *,
    data: AnyPath | None = None,
    split: str | None = None,
    samples: int = 100,
    seed: int = 0,
    out: AnyPath | None = None,
    fast: bool = False,
    prediction: str = "mean",
    categorical: bool = False,
    temperature: float = 1.0,
    diagonal_noise: bool = True,
    masks: Mapping[str, Sequence[str]] | None = None,
    tolerance: float = 2.0,
    sets: str | Sequence[str] = (),
    ged_distance: str = "iou",
    surface_samples: int = 10,
    empty_penalty: bool = False,
    bootstrap: bool = False,
    bins: int = 15,
    allow_missing: bool = False,
    overwrite: bool = False,
    progress: bool = True,
    on_progress: OnProgress | None = None,
) -> Evaluation:
    """Scores a folder of predictions against the raters of their dataset, as ``ssn evaluate`` does.

    ``masks`` and ``sets`` are as of :func:`ssn.score`. Stopped by Ctrl-C, the same call continues.
    """
    words = ["evaluate", *paths(predictions, "predictions")]
    groups = [f"{name}={'+'.join([group] if isinstance(group, str) else group)}" for name, group in (masks or {}).items()]
    words += options(
        data=data,
        split=split,
        samples=samples,
        seed=seed,
        out=out,
        fast=fast,
        prediction=prediction,
        categorical=categorical,
        temperature=temperature,
        no_diagonal_noise=not diagonal_noise,
        group=groups,
        tolerance=tolerance,
        scores=[sets] if isinstance(sets, str) else list(sets),
        ged_distance=ged_distance,
        surface_samples=surface_samples,
        empty_penalty=empty_penalty,
        bootstrap=bootstrap,
        bins=bins,
        allow_missing=allow_missing,
        overwrite=overwrite,
    )
    found, text, _ = run(words, progress, on_progress)
    return Evaluation(found, text)


def sample(
    inputs: AnyPath | Sequence[AnyPath],
    out: AnyPath,
    *,
    samples: int = 10,
    seed: int = 0,
    first: int = 0,
    temperature: float | None = None,
    class_scale: Mapping[str, float] | None = None,
    mode_weights: Mapping[int, float] | Sequence[float] | None = None,
    diagonal_noise: bool = True,
    probabilities: bool = False,
    entropy: bool = False,
    format: str | None = None,
    overwrite: bool = False,
    progress: bool = True,
    on_progress: OnProgress | None = None,
) -> Answer:
    """Writes samples of distribution files, or of folders of them, as label maps, as ``ssn sample`` does."""
    words = ["sample", *paths(inputs, "inputs")]
    words += options(
        out=out,
        samples=samples,
        seed=seed,
        first=first,
        temperature=temperature,
        class_scale=pairs(class_scale),
        mode_weight=pairs(mode_weights),
        no_diagonal_noise=not diagonal_noise,
        probabilities=probabilities,
        entropy=entropy,
        format=format,
        overwrite=overwrite,
    )
    found, text, _ = run(words, progress, on_progress)
    return Answer(found, text)


def report(
    inputs: AnyPath | Sequence[AnyPath],
    *,
    out: AnyPath | None = None,
    cases: int = 6,
    samples: int = 20,
    seed: int = 0,
    data: AnyPath | None = None,
    overwrite: bool = False,
    progress: bool = True,
    on_progress: OnProgress | None = None,
) -> Path:
    """Writes a page of predictions and runs, as ``ssn report`` does, and returns its path."""
    words = ["report", *paths(inputs, "inputs"), *options(out=out, cases=cases, samples=samples, seed=seed, data=data, overwrite=overwrite)]
    found, _, _ = run(words, progress, on_progress)
    return Path(found["report"])


def check(dataset: AnyPath, *, progress: bool = True, on_progress: OnProgress | None = None) -> Check:
    """Finds every problem of a dataset, or of a config that names one, as ``ssn check`` does."""
    found, text, code = run(["check", *paths(dataset, "dataset")], progress, on_progress, allowed=(PROBLEMS_FOUND,))
    return Check({**found, "ok": code == 0}, text)


def init(dataset: AnyPath, out: AnyPath = "ssn.toml", *, overwrite: bool = False) -> Answer:
    """Recognizes a dataset and writes a config for it, as ``ssn init`` does."""
    found, text, _ = run(["init", *paths(dataset, "dataset"), *options(out=out, overwrite=overwrite)], False, None)
    return Answer(found, text)
