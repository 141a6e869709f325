"""How far a query was behind its source, and for how long that was more than the objective.

The lag of a query is how long its oldest row waits that is not through yet. Between two commits it only
grows, so all of it follows from what was noted at each commit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

from attrs import frozen

from spark_elastic.simulator.record import Commit

Interval = tuple[float, float]
"""From a moment to a moment, ms."""


@frozen(kw_only=True)
class Lag:
    """What the lag of one query was: the largest (s, rows), and when it was more than the objective."""

    largest_s: float
    largest_rows: int
    outside: tuple[Interval, ...]


def lag(commits: Iterable[Commit], first_row: float, most_s: float) -> Lag:
    """Look at the commits of a query, with how it stands at the end as the last one.

    Its first row comes at `first_row` (ms); `most_s` is the objective (s).
    """
    since, begin, largest_s, largest_rows = first_row, 0.0, 0.0, 0
    outside: list[Interval] = []
    for commit in commits:
        if since < commit.at:
            largest_s = max(largest_s, (commit.at - since) / 1_000)
        largest_rows = max(largest_rows, commit.before)
        late = max(begin, since + most_s * 1_000)
        if late < commit.at:
            outside.append((late, commit.at))
        since, begin = commit.then, commit.at
    return Lag(largest_s=largest_s, largest_rows=largest_rows, outside=tuple(joined(outside)))


def joined(intervals: Iterable[Interval]) -> Iterator[Interval]:
    """Make one of intervals that touch or overlap, in order."""
    begin = end = -math.inf
    for since, until in sorted(intervals):
        if since > end:
            if end > begin:
                yield begin, end
            begin, end = since, until
        end = max(end, until)
    if end > begin:
        yield begin, end
