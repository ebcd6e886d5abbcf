"""The program ``ssn`` that comes with the package."""

from __future__ import annotations

import importlib.util
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


def environment() -> dict[str, str]:
    """The environment of the program, which finds PyTorch's libraries beside the package by itself, and elsewhere by this."""
    variables = dict(os.environ)
    beside = Path(__file__).parents[1] / "torch"
    found = None if beside.is_dir() else importlib.util.find_spec("torch")
    if found is not None and found.origin is not None:
        libraries = [str(Path(found.origin).parent / "lib"), *filter(None, [variables.get("LD_LIBRARY_PATH")])]
        variables["LD_LIBRARY_PATH"] = os.pathsep.join(libraries)
    return variables


def main() -> None:
    """The command ``ssn``: becomes the program."""
    program = path()
    if os.name == "posix":
        os.execve(program, ["ssn", *sys.argv[1:]], environment())
    sys.exit(subprocess.call([program, *sys.argv[1:]], env=environment()))


def run(arguments: list[str | os.PathLike[str]], poll: Callable[[], None] = lambda: None) -> str:
    """Runs the program and gives what it printed; ``poll`` is called a few times per second.

    Ctrl-C lets it save what it can, and is raised when it has ended; it also saves and ends if this process is killed. What it refuses is a
    ValueError with its sentence.
    """
    command = [os.fspath(path()), *(os.fspath(argument) for argument in arguments)]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**environment(), "SSN_STOPS_WITH_STDIN": "1"},
        # Ctrl-C in a terminal would reach it twice.
        start_new_session=True,
    )
    stdin, process.stdin = process.stdin, None  # stays open until the end
    try:
        while (answer := _wait(process)) is None:
            poll()
    except BaseException:
        process.send_signal(signal.SIGINT)
        process.communicate()
        raise
    finally:
        if stdin is not None:
            stdin.close()
    printed, said = answer
    if process.returncode == 0:
        poll()
        return printed
    error = said.strip().rpartition("error: ")[2] or f"ssn ended with {process.returncode}"
    if process.returncode in UNUSABLE:
        raise ValueError(error)
    raise RuntimeError(error)


def _wait(process: subprocess.Popen[str]) -> tuple[str, str] | None:
    """What the program printed and said, once it has ended."""
    try:
        return process.communicate(timeout=0.2)
    except subprocess.TimeoutExpired:
        return None
