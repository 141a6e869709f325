"""Shares the rows that a micro-batch is to read among the sources that can be told so."""

from __future__ import annotations

from collections.abc import Sequence

from spark_elastic.core.actions import SourceLimit
from spark_elastic.core.events import SourceFacts

_LEAST_PART = 0.5
"""A source gets this part of an equal share at least: one that had nothing may have something next."""
_CHANGE = 0.25
"""A limit that differs by less stays as it is."""


def source_limits(
    rows: int | None, sources: Sequence[SourceFacts], read: Sequence[int]
) -> tuple[SourceLimit, ...]:
    """Return a limit for each source, none at all if there is nothing to limit.

    `rows` are those of a whole micro-batch (1 or more), None: all that there are. `read` are the rows that
    the last one has read of each source: those that can't be limited take their part as they did.
    """
    limitable = sum(source.limitable for source in sources)
    if rows is None or not limitable:
        return ()
    counts = [*read, *[0] * len(sources)][: len(sources)]
    total = sum(counts)
    parts = [count / total if total else 1 / len(sources) for count in counts]
    least = _LEAST_PART / len(sources)
    return tuple(
        SourceLimit(rows=max(1, round(rows * max(part, least))) if source.limitable else 0)
        for source, part in zip(sources, parts, strict=True)
    )


def differ(before: Sequence[SourceLimit], after: Sequence[SourceLimit]) -> bool:
    """Say whether limits are so much other ones that it is worth an order."""
    if len(before) != len(after):
        return True
    return any(
        abs(new.rows - old.rows) > _CHANGE * max(new.rows, old.rows)
        for old, new in zip(before, after, strict=True)
    )
