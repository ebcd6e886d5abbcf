"""Stochastic segmentation networks: samples, scores and pictures of spatially correlated uncertainty.

    import ssn

    d = ssn.load("case1.ssn.safetensors")    # what `ssn predict` wrote
    samples = d.sample(100, seed=0)          # uint8 [100, h, w] or [100, d, h, w]
    scores = ssn.score(samples, raters)      # any method's samples against any number of raters
    print(scores["ged2"], scores["hm_iou"])

    run = ssn.train(data="dataset")          # with a progress bar
    p = run.predictor()                      # stays on its device
    d = p(image)

NumPy is imported at the first use, PyTorch only by ``ssn.torch``.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from ssn._ssn import VERSION as __version__

if _TYPE_CHECKING:
    from ssn import torch
    from ssn._distribution import Distribution, LowRankNormal, Modes, load, load_all
    from ssn._predictor import Predictor
    from ssn._progress import Progress
    from ssn._run import Event, Run, open, predict, train
    from ssn._scores import Scores, score
    from ssn._show import View
    from ssn._verbs import Answer, Check, Evaluation, check, evaluate, init, report, sample

_HOMES = {
    "Distribution": "ssn._distribution",
    "LowRankNormal": "ssn._distribution",
    "Modes": "ssn._distribution",
    "load": "ssn._distribution",
    "load_all": "ssn._distribution",
    "Predictor": "ssn._predictor",
    "Progress": "ssn._progress",
    "Event": "ssn._run",
    "Run": "ssn._run",
    "open": "ssn._run",
    "predict": "ssn._run",
    "train": "ssn._run",
    "Scores": "ssn._scores",
    "score": "ssn._scores",
    "View": "ssn._show",
    "Answer": "ssn._verbs",
    "Check": "ssn._verbs",
    "Evaluation": "ssn._verbs",
    "check": "ssn._verbs",
    "evaluate": "ssn._verbs",
    "init": "ssn._verbs",
    "report": "ssn._verbs",
    "sample": "ssn._verbs",
}

__all__ = [
    "Answer",
    "Check",
    "Distribution",
    "Evaluation",
    "Event",
    "LowRankNormal",
    "Modes",
    "Predictor",
    "Progress",
    "Run",
    "Scores",
    "View",
    "__version__",
    "check",
    "evaluate",
    "init",
    "load",
    "load_all",
    "open",
    "predict",
    "report",
    "sample",
    "score",
    "torch",
    "train",
]


def __getattr__(name: str) -> object:
    if name == "torch":
        return _import_module("ssn.torch")
    if name not in _HOMES:
        raise AttributeError(f"module 'ssn' has no attribute {name!r}")
    value = getattr(_import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
