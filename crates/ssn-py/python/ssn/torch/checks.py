"""Checks of values that neither wait for a GPU nor break a compiled graph."""

from __future__ import annotations

import torch
from torch import Tensor


def require(condition: Tensor, message: str) -> None:
    """Refuses values: on a CPU by a ValueError, on a GPU by an assertion when the work gets there; compiled code is not checked."""
    if torch.compiler.is_compiling() or torch.jit.is_tracing():  # type: ignore[attr-defined, no-untyped-call]
        return
    if condition.device.type == "cpu":
        if not bool(condition.all()):
            raise ValueError(message)
    else:
        torch._assert_async(condition.all(), message)
