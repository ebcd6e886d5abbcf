"""The native half: arrays are contiguous and of the types that are named; shapes as in crates/ssn-py/src."""

from collections.abc import Callable
from os import PathLike

import numpy as np
from numpy.typing import NDArray

VERSION: str
CLASS_COLORS: list[bytes]

Settings = tuple[int, int, float, list[float], list[float], bool]

class Distribution:
    def __init__(
        self,
        mean: NDArray[np.float32],
        diagonal: NDArray[np.float32],
        factor: NDArray[np.float32],
        mask: NDArray[np.uint8] | None,
        classes: list[str],
        spacing: list[float] | None,
        affine: list[list[float]] | None,
        case: str,
    ) -> None: ...
    @staticmethod
    def load(path: PathLike[str]) -> Distribution: ...
    @staticmethod
    def of_bytes(bytes: bytes) -> Distribution: ...
    def to_bytes(self) -> bytes: ...
    def save(self, path: PathLike[str], precision: str) -> None: ...
    case: str
    classes: list[str]
    kind: str
    size: list[int]
    region: tuple[list[int], list[int]]
    spacing: list[float] | None
    affine: list[list[float]]
    channels: int
    rank: int
    stored_samples: int
    has_mask: bool
    def read_values(self, name: str, out: NDArray[np.float32]) -> None: ...
    def read_mask(self, out: NDArray[np.uint8]) -> None: ...
    def sample(self, out: NDArray[np.uint8], settings: Settings) -> None: ...
    def summarize(self, out: NDArray[np.float32], samples: int, settings: Settings, entropy: bool) -> None: ...
    def prediction(self, out: NDArray[np.uint8], marginal: bool) -> None: ...
    def modes(self, out: NDArray[np.float32]) -> list[float]: ...

def score(
    samples: NDArray[np.uint8],
    raters: NDArray[np.uint8],
    prediction: NDArray[np.uint8] | None,
    probabilities: NDArray[np.float32] | None,
    classes: list[str],
    size: tuple[int, ...],
    spacing: list[float] | None,
    options: str,
) -> str: ...
def run_verb(words: list[str], programs: str, on_progress: Callable[[str], object]) -> tuple[str | None, str, int, str]: ...
