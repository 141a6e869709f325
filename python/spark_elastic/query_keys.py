"""The settings of single queries, wherever they are written: which there are, and what is said of others."""

from __future__ import annotations

import difflib
from typing import Any, Literal

from attrs import define, field

from spark_elastic.core.keys import PER_QUERY, called
from spark_elastic.core.keys.key import Key
from spark_elastic.core.settings import contradictions

ALLOWED = (
    "schedulerMode, policy, explicitParallelism, stateStore, maxParallelism, adaptiveScheduler.…, "
    "schedule.…, autoscale.… and restartStrategy.…"
)
"""The settings that a query can have of its own, in short."""

_LIKE = 0.75

Wrong = Literal["of_application", "refused", "said_twice"]
"""What can be wrong with one: no query has it, its value cannot be read, or it has two values."""


@define
class OwnSettings:
    """The settings of one query as they are found, one by one: text by the name of the setting.

    `first` has where each was found, and as what. How something wrong is said is for whoever has found it.
    """

    texts: dict[str, str] = field(factory=dict, init=False)
    first: dict[str, tuple[str, str]] = field(factory=dict, init=False)

    def add(self, key: Key[Any], where: str, text: str | None) -> Wrong | None:
        """Take in one, None: no text at all. Return what is wrong with it; then it is left out."""
        if key.per_query is None:
            return "of_application"
        if text is None:
            return "refused"
        try:
            value = key.format(key.kind.parse(text))
        except (ValueError, KeyError):
            return "refused"
        self.first.setdefault(key.name, (where, text))
        return None if self.texts.setdefault(key.name, value) == value else "said_twice"

    def contradictions(self, prefix: str) -> list[str]:
        """Say what contradicts each other; `prefix` comes before the name of each setting."""
        keys = ((PER_QUERY[name], text) for name, text in self.texts.items())
        return contradictions({key: key.kind.parse(text) for key, text in keys}, prefix=prefix)


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
