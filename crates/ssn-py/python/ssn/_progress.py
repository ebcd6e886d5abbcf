"""Progress of long work: as bars, as lines, or as calls."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ssn._errors import in_python


@dataclass
class Progress:
    """How far a phase of long work is."""

    name: str
    """What is done, such as ``training``."""
    done: int
    total: int
    """0 where it is not known."""
    items: str
    """What is counted, such as ``steps``."""
    detail: str = ""
    """What is worked on, such as a case or ``loss 0.31``."""

    def __str__(self) -> str:
        count = f"{self.done}/{self.total}" if self.total else f"{self.done}"
        return f"{self.name} {count} {self.items}" + (f" · {self.detail}" if self.detail else "")


OnProgress = Callable[[Progress], Any]


class Phases:
    """Follows the phases of long work, and shows them."""

    def __init__(self, show: bool, on_progress: OnProgress | None = None) -> None:
        self._phases: dict[int, Progress] = {}
        self._bars: dict[int, Any] = {}
        self._on_progress = on_progress
        self._bar = _bar_type() if show else None
        self._show = show
        self._last_line = time.monotonic()

    def __call__(self, event: dict[str, Any]) -> None:
        ((kind, about),) = event.items()
        if kind == "warning":
            warnings.warn(in_python(about), RuntimeWarning, stacklevel=_level_of_caller())
        elif kind == "message":
            self.line(in_python(about))
        elif kind == "begin":
            self._begin(about)
        elif kind in ("done", "current"):
            phase = self._phases.get(about["phase"])
            if phase is not None:
                self._moved(about["phase"], phase, about)
        elif kind == "end":
            self._phases.pop(about["phase"], None)
            bar = self._bars.pop(about["phase"], None)
            if bar is not None:
                bar.close()

    def _begin(self, about: dict[str, Any]) -> None:
        phase = Progress(about["name"], about["done"], about["total"], about["items"])
        if self._bar is not None:
            # Keep the bar of the outermost phase.
            leave = not self._phases
            self._bars[about["phase"]] = self._bar(
                desc=phase.name, total=phase.total or None, initial=phase.done, unit=f" {phase.items}", leave=leave
            )
        self._phases[about["phase"]] = phase

    def _moved(self, number: int, phase: Progress, about: dict[str, Any]) -> None:
        phase.done, phase.detail = about.get("done", phase.done), about.get("what", phase.detail)
        bar = self._bars.get(number)
        if bar is not None:
            bar.set_postfix_str(phase.detail, refresh=False)
            bar.update(phase.done - bar.n)
        elif self._show and time.monotonic() - self._last_line > SECONDS_BETWEEN_LINES:
            self.line(str(phase))
        if self._on_progress is not None and "done" in about:
            self._on_progress(phase)

    def line(self, text: str) -> None:
        """Shows a line above the bars."""
        self._last_line = time.monotonic()
        if self._bar is not None:
            self._bar.write(text)
        elif self._show:
            print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Removes the bars."""
        for bar in self._bars.values():
            bar.close()
        self._bars.clear()


SECONDS_BETWEEN_LINES = 10.0


def _level_of_caller() -> int:
    """The ``stacklevel`` of the line outside this package."""
    package, level = str(Path(__file__).parent), 1
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(package):
        frame, level = frame.f_back, level + 1
    return level


def _bar_type() -> Any:
    """Returns tqdm's bars for terminals and notebooks; None where it is not installed, or where nobody sees bars."""
    in_notebook = "ipykernel" in sys.modules
    if not in_notebook and not sys.stderr.isatty():
        return None
    try:
        with warnings.catch_warnings():
            # Without ipywidgets, tqdm shows text.
            warnings.simplefilter("ignore")
            from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]
    except ImportError:
        return None
    return tqdm
