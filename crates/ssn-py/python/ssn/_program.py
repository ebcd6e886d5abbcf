"""The program ``ssn`` that comes with the package."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

# Codes by which the program says that what it was given cannot be used.
UNUSABLE = (2, 65)


def path() -> Path:
    """Where the program is: in the package, or else in the PATH."""
    inside = Path(__file__).with_name("bin") / "ssn"
    if inside.is_file():
        return inside
    found = shutil.which("ssn")
    if found is None:
        raise FileNotFoundError("the program ssn is neither in the package nor in the PATH; build the wheel with `cargo xtask wheel`")
    return Path(found)


def main() -> None:
    """The command ``ssn``: becomes the program."""
    program = path()
    if os.name == "posix":
        os.execv(program, ["ssn", *sys.argv[1:]])
    sys.exit(subprocess.call([program, *sys.argv[1:]]))


def run(arguments: list[str | os.PathLike[str]], poll: Callable[[], None] = lambda: None) -> str:
    """Runs the program and gives what it printed; ``poll`` is called a few times per second.

    Ctrl-C lets it save what it can, and is raised when it has ended. What it refuses is a ValueError with its sentence.
    """
    command = [os.fspath(path()), *map(os.fspath, arguments)]
    # A process group of its own: Ctrl-C in a terminal would reach it twice.
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        while True:
            try:
                printed, said = process.communicate(timeout=0.2)
                break
            except subprocess.TimeoutExpired:
                poll()
    except BaseException:
        process.send_signal(signal.SIGINT)
        process.communicate()
        raise
    poll()
    if process.returncode == 0:
        return printed
    error = said.strip().rpartition("error: ")[2] or f"ssn ended with {process.returncode}"
    if process.returncode in UNUSABLE:
        raise ValueError(error)
    raise RuntimeError(error)
