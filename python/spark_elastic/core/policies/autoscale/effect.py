"""Whether more slots have made it faster: a step up that made batches slower is taken back.

What counts are micro-batches of about the same rows that ran with the slots that were *applied*, several of
each, not what was promised for those that were wanted. What was measured is kept for a while
(`QueryMetrics.earlier`), and so long the step is not made again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from attrs import frozen

from spark_elastic.core.policies.view import Sample

_ENOUGH = 3
_SLOWER = 1.1


@frozen(kw_only=True)
class Worse:
    """With `slots` a batch took `before_ms`, with `more` it took `after_ms`."""

    slots: int
    more: int
    before_ms: float
    after_ms: float


def made_worse(samples: Sequence[Sample]) -> Worse | None:
    """Find the fewest slots with which batches were faster than with the next more, None if none were."""
    took: dict[int, dict[int, list[Sample]]] = defaultdict(lambda: defaultdict(list))
    for sample in samples:
        if sample.steady and sample.input_rows > 0 and sample.slots > 0:
            took[sample.size][sample.slots].append(sample)
    found: list[Worse] = []
    for by_slots in took.values():
        if len(by_slots) < 2:
            continue
        known = sorted((slots, batches) for slots, batches in by_slots.items() if len(batches) >= _ENOUGH)
        found += (
            Worse(slots=fewer, more=more, before_ms=_typical(before), after_ms=_typical(after))
            for (fewer, before), (more, after) in pairwise(known)
            if _slower(before, after)
        )
    return min(found, key=lambda worse: worse.slots) if found else None


def _typical(batches: Sequence[Sample]) -> float:
    return float(median(batch.duration_ms for batch in batches))


def _slower(before: Sequence[Sample], after: Sequence[Sample]) -> bool:
    """Say whether batches took longer, in all and for each row: by then there may be more rows."""
    limit = _typical(before)
    if min(batch.duration_ms for batch in after) <= limit or _typical(after) <= limit * _SLOWER:
        return False
    there = median(batch.total for batch in after)
    if 0 < there <= median(batch.total for batch in before):
        return False  # there were no more executors, only slots that others had used, too
    return _per_row(after) > _per_row(before) * _SLOWER


def _per_row(batches: Sequence[Sample]) -> float:
    return median(batch.duration_ms / batch.rows_per_batch for batch in batches)
