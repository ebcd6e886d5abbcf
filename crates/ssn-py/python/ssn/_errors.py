"""Failures of verbs and of the worker, as the exceptions that Python programs expect."""

from __future__ import annotations

import re
import shlex

# Codes of failures, as the program `ssn` exits with them.
PROBLEMS_FOUND, USAGE, BAD_DATA, IO, STOPPED, OUT_OF_MEMORY = 1, 2, 65, 74, 75, 77


def failure(code: int, message: str) -> BaseException:
    """Returns the exception of a failure."""
    kinds: dict[int, type[BaseException]] = {
        PROBLEMS_FOUND: ValueError,
        USAGE: ValueError,
        BAD_DATA: ValueError,
        IO: OSError,
        STOPPED: KeyboardInterrupt,
        OUT_OF_MEMORY: MemoryError,
    }
    return kinds.get(code, RuntimeError)(in_python(message))


def in_python(message: str) -> str:
    """Returns a message with its commands and options as they are written in Python."""
    message = re.sub(r"`ssn ([a-z-]+)((?: [^`]*)?)`", _call, message)
    message = message.replace("`cargo xtask setup`", "`pip install ssn[train]`").replace("the same command goes on", "the same call continues")
    message = re.sub(r"'--([a-z-]+) <[^>]*>(\.\.\.)?'", r"--\1", message)
    return re.sub(r"(?<![\w-])--([a-z][a-z-]+)", _keyword, message)


FLAGS = {"overwrite", "allow_missing", "allow_changed_data", "skip_check", "resume", "fast", "categorical", "probabilities", "entropy"}


def _keyword(option: re.Match[str]) -> str:
    name = option[1].replace("-", "_")
    return f"{name}=True" if name in FLAGS else name


CALLS = {"train", "predict", "evaluate", "sample", "report", "check", "init", "export"}


def _call(command: re.Match[str]) -> str:
    """Returns the call of a command, such as ``ssn.train(resume='run')`` for ``ssn train --resume run``."""
    verb, rest = command[1], command[2]
    try:
        words = shlex.split(rest)
    except ValueError:
        return command[0]
    if verb not in CALLS or any(word in ("--help", "…", "...") for word in words):
        return command[0]
    arguments, place = [], 0
    while place < len(words):
        word = words[place]
        if word.startswith("--"):
            has_value = place + 1 < len(words) and not words[place + 1].startswith("--")
            value = words[place + 1] if has_value else None
            arguments.append((word[2:].replace("-", "_"), value))
            place += 1 + has_value
        else:
            arguments.append(("", word))
            place += 1
    shown = (f"{name}={_value(name, value)}" if name else repr(value) for name, value in arguments)
    return f"`ssn.{verb}({', '.join(shown)})`"


def _value(name: str, text: str | None) -> str:
    if text is None:
        return "True" if name in FLAGS else "…"
    key, equals, value = text.partition("=")
    if equals and re.fullmatch(r"[a-z_.]+", key):
        return f"{{{key!r}: {value if re.fullmatch(r'[0-9.]+', value) else repr(value)}}}"
    return text if re.fullmatch(r"[0-9]+", text) else repr(text)
