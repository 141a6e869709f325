"""Names of queries, and patterns for several: ``*`` for any text, ``?`` for one character.

For each setting the most specific name counts: an exact name before a pattern, then the pattern with more
literal characters, then the one that was written first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TypeVar

_WILD = re.compile(r"[*?]")

T = TypeVar("T")


def is_pattern(name: str) -> bool:
    """Return whether a name is a pattern."""
    return _WILD.search(name) is not None


def matching(name: str | None, patterns: Iterable[str]) -> tuple[str, ...]:
    """Return the names and patterns that match the query of this name, the one with precedence last.

    A query without a name matches none.
    """
    if name is None:
        return ()
    found = [pattern for pattern in patterns if pattern == name or _regex(pattern).fullmatch(name)]
    found.reverse()
    return tuple(sorted(found, key=lambda pattern: (pattern == name, len(_WILD.sub("", pattern)))))


def merged(name: str | None, said: Mapping[str, Mapping[str, T]]) -> dict[str, T]:
    """Merge the entries given by name or pattern; for each entry the most specific one counts."""
    found: dict[str, T] = {}
    for pattern in matching(name, said):
        found.update(said[pattern])
    return found


@lru_cache(maxsize=1024)
def _regex(pattern: str) -> re.Pattern[str]:
    # A run of stars means the same as one star, but its matching time would grow with each of them.
    parts = re.split(r"(\*+|\?)", pattern)
    text = "".join(".*" if part[:1] == "*" else "." if part == "?" else re.escape(part) for part in parts)
    return re.compile(text, re.DOTALL)
