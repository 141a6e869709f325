"""What comes in, and what has piled up.

Rows per second are those that the source *had* more of, so far as it says how many it has (latest offsets):
what was read, and what the rows behind have grown by. What is only read says nothing of a source that is
read with a limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from attrs import frozen

from spark_elastic.core.policies.view import Sample

_RECENT_MS = 30_000
_LEAST_BATCHES = 3
_MOST_AT_ONCE = 3.0
"""So many times the usual rate of a batch counts at most: more is one burst, or is seen again in the next."""


@frozen(kw_only=True)
class Inflow:
    """So many rows per ms come in.

    `behind` are those that wait in the sources, None if no source says it. `grows` says that there are more
    with each of the last batches, `limited` that the batches are as large as a limit of the source lets them
    be: then `batch_rows` is that size.
    """

    rows_per_ms: float
    behind: int | None = None
    grows: bool = False
    limited: bool = False
    batch_rows: float = 0.0

    @property
    def lag_ms(self) -> float | None:
        """How long the rows that wait took to come; None if that is not known."""
        if self.behind is None:
            return None
        return self.behind / self.rows_per_ms if self.rows_per_ms > 0 else (0.0 if self.behind == 0 else None)


def inflow(samples: Sequence[Sample]) -> Inflow | None:
    """Tell what comes in by the last micro-batches, None while that is not known.

    It is not known before there are two batches with a time between them.
    """
    recent = _recent(samples)
    came = [pair for pair in pairwise(samples[-len(recent) - 1 :]) if pair[1].gap_ms is not None]
    if not came:
        return None
    last = samples[-1]
    gaps = [after.gap_ms or 0 for _, after in came]
    rows = [_arrived(before, after) for before, after in came]
    waits = [sample.behind for sample in samples[-_LEAST_BATCHES:]]
    known = [behind for behind in waits if behind is not None]
    complete = len(known) == _LEAST_BATCHES
    limited = len(known) >= 2 and min(known[-2:]) > 0
    return Inflow(
        rows_per_ms=_steady_rate(rows, gaps),
        behind=last.behind,
        grows=complete and known[0] < known[1] < known[2],
        limited=limited,
        batch_rows=last.rows_per_batch,
    )


def _steady_rate(rows: Sequence[int], gaps: Sequence[int]) -> float:
    """Compute the mean rate in rows per ms, without what came all at once.

    That is a backlog and no rate: it shows as what is behind, or has been read with one batch. Where rows
    come with some batches only, as files do, those are compared with each other.
    """
    usual = [came / gap for came, gap in zip(rows, gaps, strict=True) if came > 0]
    if not usual:
        return 0.0
    most = _MOST_AT_ONCE * median(usual)
    return sum(min(came, most * gap) for came, gap in zip(rows, gaps, strict=True) if came > 0) / sum(gaps)


def _arrived(before: Sample, after: Sample) -> int:
    """Count the rows that the sources had more of when `after` was planned than when `before` was."""
    if before.behind is None or after.behind is None:
        return after.input_rows
    return after.input_rows + after.behind - before.behind


def _recent(samples: Sequence[Sample]) -> Sequence[Sample]:
    """Return the batches of the last half minute, and at least three."""
    if not samples:
        return ()
    since = samples[-1].at - _RECENT_MS
    count = sum(sample.at > since for sample in samples)
    return samples[-max(count, _LEAST_BATCHES) :]
