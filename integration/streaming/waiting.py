"""Waits for a condition, up to a limit."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

# Busy machines are slow; on a quiet one no test waits this long.
PATIENCE_S = 90.0


def eventually(look: Callable[[], T], what: str, timeout_s: float = PATIENCE_S, every_s: float = 0.02) -> T:
    """Return the first true value of `look`; raises AssertionError, naming `what`, after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_s:g} s: {what}; last seen: {found!r}")
        time.sleep(every_s)
