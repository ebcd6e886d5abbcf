"""Stochastic segmentation networks: samples, scores and pictures of spatially correlated uncertainty.

    import ssn

    d = ssn.load("case1.ssn.safetensors")    # what `ssn predict` wrote
    samples = d.sample(100, seed=0)          # uint8 [100, h, w] or [100, d, h, w]
    scores = ssn.score(samples, raters)      # any method's samples against any number of raters
    print(scores["ged2"], scores["hm_iou"])

NumPy is imported at the first use, PyTorch only by ``ssn.torch``.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING

from ssn._ssn import VERSION as __version__

if _TYPE_CHECKING:
    from ssn import torch
    from ssn._distribution import Distribution, LowRankNormal, Modes, load, load_all
    from ssn._run import Run, open, train
    from ssn._scores import Scores, score

_HOMES = {
    "Distribution": "ssn._distribution",
    "LowRankNormal": "ssn._distribution",
    "Modes": "ssn._distribution",
    "load": "ssn._distribution",
    "load_all": "ssn._distribution",
    "Scores": "ssn._scores",
    "score": "ssn._scores",
    "Run": "ssn._run",
    "open": "ssn._run",
    "train": "ssn._run",
}

__all__ = [
    "Distribution",
    "LowRankNormal",
    "Modes",
    "Run",
    "Scores",
    "__version__",
    "load",
    "load_all",
    "open",
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
