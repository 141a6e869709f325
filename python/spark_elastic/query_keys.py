"""The settings of single queries, wherever they are written: which there are, and what is said of others."""

from __future__ import annotations

import difflib
from typing import Any

from spark_elastic.core.keys import PER_QUERY, called
from spark_elastic.core.keys.key import Key

ALLOWED = (
    "schedulerMode, explicitParallelism, stateStore, maxParallelism, adaptiveScheduler.… and "
    "restartStrategy.…"
)
"""The settings that a query can have of its own, in short."""

_LIKE = 0.75


def split(name: str) -> tuple[str, Key[Any]] | None:
    """Divide ``NAME.KEY`` where a setting of ours begins, the longest that there is; None if there is none.

    A query's name may have dots, and so has that of a setting.
    """
    parts = name.split(".")
    for start in range(1, len(parts)):
        key = called(".".join(parts[start:]))
        if key is not None and parts[0]:
            return ".".join(parts[:start]), key
    return None


def nearest(name: str) -> tuple[str, str] | None:
    """Divide ``NAME.KEY`` where a setting was probably meant; return the name and that of the setting."""
    parts = name.split(".")
    guesses = (
        (difflib.SequenceMatcher(None, ".".join(parts[start:]).lower(), key.lower()).ratio(), start, key)
        for start in range(1, len(parts))
        for key in PER_QUERY
    )
    best = max(guesses, default=None)
    if best is None or best[0] < _LIKE:
        return None
    return ".".join(parts[: best[1]]), best[2]
