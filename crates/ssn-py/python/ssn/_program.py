"""The program ``ssn`` that comes with the package."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path


def path() -> Path:
    """Where the program is: in the package, or else in the PATH."""
    inside = Path(__file__).with_name("bin") / "ssn"
    if inside.is_file():
        return inside
    found = shutil.which("ssn")
    if found is None:
        raise FileNotFoundError("the program ssn is neither in the package nor in the PATH; install the package with its engine")
    return Path(found)


def folder() -> str:
    """The folder of the programs; empty where there are none."""
    try:
        return os.fspath(path().parent)
    except FileNotFoundError:
        return ""


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
