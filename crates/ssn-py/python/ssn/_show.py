"""Distributions as pictures in notebooks, and in the viewer."""

from __future__ import annotations

import struct
import tempfile
import webbrowser
import zlib
from base64 import b64encode
from html import escape
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ssn import _ssn
from ssn._files import ENDING
from ssn._verbs import run

BACKGROUND = (24, 24, 27)
# The colors of classes 1, 2, …, as in figures and the viewer.
CLASSES = np.array([list(color) for color in _ssn.CLASS_COLORS], np.uint8)
SAMPLES = 5
WIDTH = 132


class Shown(Protocol):
    """A distribution that can be shown."""

    _native: Any

    @property
    def case(self) -> str: ...
    @property
    def classes(self) -> list[str]: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    def entropy(self, n: int = ...) -> np.ndarray: ...
    def prediction(self) -> np.ndarray: ...
    def sample(self, n: int = ...) -> np.ndarray: ...
    def save(self, path: Path) -> Path: ...


def html(distribution: Shown) -> str:
    """The prediction, the entropy and some samples in a row; of a volume, the slice of most doubt."""
    entropy = distribution.entropy(32)
    prediction = distribution.prediction()
    samples = distribution.sample(min(SAMPLES, distribution._native.stored_samples or SAMPLES))
    note = ""
    if entropy.ndim == 3:
        slice_ = int(entropy.sum((1, 2)).argmax())
        entropy, prediction, samples = entropy[slice_], prediction[slice_], samples[:, slice_]
        note = f", slice {slice_ + 1} of {distribution.shape[0]}"
    pictures = [("prediction", _colored(prediction)), ("entropy", _gray(entropy))]
    pictures += [(f"sample {index}" if map_.any() else f"sample {index}: empty", _colored(map_)) for index, map_ in enumerate(samples)]
    cells = "".join(
        f'<figure style="margin:0 6px 0 0;display:inline-block;text-align:center">'
        f'<img src="{_png(pixels)}" width="{WIDTH}" style="image-rendering:pixelated" alt="{caption}">'
        f"<figcaption>{caption}</figcaption></figure>"
        for caption, pixels in pictures
    )
    legend = " ".join(
        f'<span style="color:rgb{tuple(map(int, CLASSES[(index - 1) % len(CLASSES)]))}">■</span> {escape(name)}'
        for index, name in enumerate(distribution.classes)
        if index > 0
    )
    return f"<div><div>{escape(repr(distribution)[1:-1])}{note} &nbsp; {legend}</div><div style='white-space:nowrap;overflow-x:auto'>{cells}</div></div>"


class View:
    """The viewer's page: an element of a notebook, or a file for the browser."""

    def __init__(self, path: Path, height: int) -> None:
        self.path, self.height = path, height

    def _repr_html_(self) -> str:
        try:
            source = self.path.resolve().relative_to(Path.cwd()).as_posix()
        except ValueError:
            source = self.path.resolve().as_uri()
        return (
            f'<iframe src="{escape(source, quote=True)}" width="100%" height="{self.height}" style="border:0"></iframe>'
            f'<div><a href="{escape(source, quote=True)}" target="_blank">{escape(source)}</a></div>'
        )

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"<ssn.View {str(self.path)!r}>"


def view(distribution: Shown, path: Path | None, height: int) -> View:
    """Writes the viewer's page; opens it in the browser unless a notebook shows it."""
    in_notebook = _in_notebook()
    if path is None and in_notebook:
        name = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in distribution.case)
        path = Path("ssn-views") / f"{name}.html"
    elif path is None:
        path = Path(tempfile.mkdtemp(prefix="ssn-view-")) / "view.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ssn-view-") as folder:
        file = distribution.save(Path(folder) / f"case{ENDING}")
        run(["view", str(file), f"--export={path}", "--overwrite"], False, None)
    if not in_notebook:
        webbrowser.open(path.resolve().as_uri())
    return View(path, height)


def _in_notebook() -> bool:
    try:
        from IPython import get_ipython
    except ImportError:
        return False
    shell = get_ipython()
    return shell is not None and "IPKernelApp" in shell.config


def _colored(labels: np.ndarray) -> np.ndarray:
    colors: np.ndarray = CLASSES[(labels.astype(int) - 1) % len(CLASSES)]
    colors[labels == 0] = BACKGROUND
    return colors


def _gray(values: np.ndarray) -> np.ndarray:
    levels = np.clip(values * 255, 0, 255).astype(np.uint8)
    return np.repeat(levels[..., None], 3, -1)


def _png(pixels: np.ndarray) -> str:
    """Pixels ``[h, w, 3]`` as a PNG in a data URL."""
    height, width, _ = pixels.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, width * 3)], 1)  # filter 0 before each row

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows.tobytes(), 6)) + chunk(b"IEND", b"")
    return "data:image/png;base64," + b64encode(data).decode()
