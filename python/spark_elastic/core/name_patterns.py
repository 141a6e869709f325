"""Names of queries, and patterns that stand for several: ``*`` for any text, ``?`` for one character.

For each setting the name that says most counts: the exact name before a pattern, of patterns the one with
more literal characters, of equal ones the one that was written first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TypeVar

_WILD = re.compile(r"[*?]")

T = TypeVar("T")


def is_pattern(name: str) -> bool:
    """Say whether a name stands for several."""
    return _WILD.search(name) is not None


def matching(name: str | None, patterns: Iterable[str]) -> tuple[str, ...]:
    """Return those that stand for the query of this name, the one that counts most at last.

    A query without a name has none.
    """
    if name is None:
        return ()
    found = [pattern for pattern in patterns if pattern == name or _regex(pattern).fullmatch(name)]
    found.reverse()
    return tuple(sorted(found, key=lambda pattern: (pattern == name, len(_WILD.sub("", pattern)))))


def merged(name: str | None, said: Mapping[str, Mapping[str, T]]) -> dict[str, T]:
    """Put together what is said by name or pattern: for each entry the one that counts most."""
    found: dict[str, T] = {}
    for pattern in matching(name, said):
        found.update(said[pattern])
    return found


@lru_cache(maxsize=1024)
def _regex(pattern: str) -> re.Pattern[str]:
    # A run of stars means what one does, and would take time that grows with each of them.
    parts = re.split(r"(\*+|\?)", pattern)
    text = "".join(".*" if part[:1] == "*" else "." if part == "?" else re.escape(part) for part in parts)
    return re.compile(text, re.DOTALL)
