"""What comes in, and what has piled up.

Rows per second are those that the source *had* more of, so far as it says how many it has (latest offsets):
what was read, and what the rows behind have grown by. What is only read says nothing of a source that is
read with a limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from attrs import field, frozen

from spark_elastic.core.policies.autoscale.headroom import Variation, variation
from spark_elastic.core.policies.view import Sample

_RECENT_MS = 30_000
_LEAST_BATCHES = 3
_MOST_GROWTH = 1.2
_MOST_AT_ONCE, _MOST_OF_A_FLOOD = 3.0, 10.0
"""So many times the usual rate of a batch counts at most: more is one burst, or is seen again in the next."""


@frozen(kw_only=True)
class Inflow:
    """So many rows per ms come in.

    `behind` are those that wait in the sources, None if no source says it. `grows` says that there are more
    with each of the last batches, `limited` that the batches are as large as a limit of the source lets them
    be: then `batch_rows` is that size. It is no limit if a policy has set it, by how fast batches are.
    `variation` is how the rate goes up and down.
    """

    rows_per_ms: float
    behind: int | None = None
    grows: bool = False
    limited: bool = False
    batch_rows: float = 0.0
    variation: Variation = field(factory=Variation)

    def rows_per_ms_in(self, ms: float) -> float:
        """Tell what will come in by then if it grows on as it did; what becomes less still counts whole."""
        return self.rows_per_ms * min(_MOST_GROWTH, 1 + max(0.0, self.variation.growth) * ms)


def inflow(samples: Sequence[Sample], interval_ms: int, *, throttled: bool = False) -> Inflow | None:
    """Tell what comes in by the last micro-batches, None while that is not known.

    `interval_ms` is that of the trigger, 0 without one. Two batches with a time between them are needed.
    Those of a query that is `throttled` by a policy are as large as that lets them be.
    """
    recent = _recent(samples)
    before: tuple[Sample | None, ...] = (None, *samples)[-len(recent) - 1 : -1]
    came = [pair for pair in zip(before, recent, strict=True) if pair[1].gap_ms is not None]
    if not came:
        return None
    gaps = [after.gap_ms or 0 for _, after in came]
    rows = [_arrived(before, after) for before, after in came]
    waits = [sample.behind for sample in samples[-_LEAST_BATCHES:]]
    known = [behind for behind in waits if behind is not None]
    complete = len(known) == _LEAST_BATCHES
    earlier, last = came[-1]
    alike = earlier is not None and earlier.rows_per_batch == last.rows_per_batch
    short = bool(last.behind) and earlier is not None and (alike or bool(earlier.behind))
    flooded = interval_ms > 0 and (
        bool(last.behind) if throttled else interval_ms < last.duration_ms and not last.behind
    )
    return Inflow(
        rows_per_ms=_rate(rows, gaps, flooded=flooded),
        behind=last.behind,
        grows=complete and known[0] < known[1] < known[2],
        limited=short and not throttled,
        batch_rows=last.rows_per_batch,
        variation=_variation(samples),
    )


def _variation(samples: Sequence[Sample]) -> Variation:
    """Tell how what comes in has varied with the micro-batches that are known."""
    rates, times = [], []
    for before, after in pairwise(samples):
        if after.gap_ms is not None:
            rates.append(max(0, _arrived(before, after)) / after.gap_ms)
            times.append(after.started)
    return variation(rates, times)


def _rate(rows: Sequence[int], gaps: Sequence[int], *, flooded: bool) -> float:
    """Compute the rate in rows per ms: that of all these batches or, if it is more, of the last ones.

    What comes all at once is a backlog and no rate: it shows as what is behind, or has been read with one
    batch. Only where a source without a limit has `flooded` a batch the next one will have all that comes
    meanwhile, so there the last rate counts, and much of it. Where rows come with some batches only, as files
    do, those are compared with each other, and the last ones tell nothing.
    """
    usual = [came / gap for came, gap in zip(rows, gaps, strict=True) if came > 0]
    if not usual:
        return 0.0
    most = (_MOST_OF_A_FLOOD if flooded else _MOST_AT_ONCE) * median(usual)
    counted = [max(0.0, min(came, most * gap)) for came, gap in zip(rows, gaps, strict=True)]
    mean = sum(counted) / sum(gaps)
    if len(usual) < len(rows):
        return mean
    last = -1 if flooded else -2
    return max(mean, sum(counted[last:]) / sum(gaps[last:]))


def _arrived(before: Sample | None, after: Sample) -> int:
    """Count the rows that the sources had more of when `after` was planned than when `before` was.

    Where that is not known, they are those that were read.
    """
    if before is None or before.behind is None or after.behind is None:
        return after.input_rows
    return after.input_rows + after.behind - before.behind


def _recent(samples: Sequence[Sample]) -> Sequence[Sample]:
    """Return the batches of the last half minute, and at least three."""
    if not samples:
        return ()
    since = samples[-1].at - _RECENT_MS
    count = sum(sample.at > since for sample in samples)
    return samples[-max(count, _LEAST_BATCHES) :]
