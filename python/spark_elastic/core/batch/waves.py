"""Tasks run in waves, as many at a time as there are slots: full waves cost no more than begun ones."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from spark_elastic.core.batch.bisection import least
from spark_elastic.core.batch.partitions import Partitions
from spark_elastic.core.bounds.requirements import Bounds

SMALLEST_TASK = 1 << 20
"""Bytes below which a task is not worth its start: that takes about as long as to read so many."""

EVEN = 1.1
"""Tasks are even if the largest has at most this many times the mean."""

_MORE_WAVES = 2
_LONGER = 1.05
_STEPS = 1024


def smallest_task(chosen: int | None, volume: int) -> int:
    """Return the bytes that a task has at least: what the application has chosen, else 1 MiB."""
    return max(1, min(SMALLEST_TASK if chosen is None else chosen, volume))


@frozen(kw_only=True)
class Waves:
    """The slots that there are now (0: not known), and the bytes below which no task is worth its start."""

    slots: int
    smallest: int

    def fill(self, needed: int, total: int, upper: int) -> int:
        """Fill the last wave of `needed` tasks, as far as their bytes and the upper bound allow it."""
        if self.slots < 1:
            return needed
        full = -(-needed // self.slots) * self.slots
        return min(max(needed, min(full, total // self.smallest)), upper)

    def duration(self, tasks: int, largest: int) -> int:
        """Reckon how long a stage takes at most, in bytes that one slot could read meanwhile."""
        return -(-tasks // max(1, self.slots)) * (largest + self.smallest)


def even_out(partitions: Partitions, limit: int, needed: int, bounds: Bounds, waves: Waves) -> list[int]:
    """Cut into ranges of at most `limit` bytes that fill the slots, the largest as small as can be.

    `needed` is how many there have to be at least; larger than `limit` is only what cannot be cut. Returns
    the starts of the ranges.
    """
    # Spark starts one more task for what is left over, so there are never fewer than it would start.
    goal = waves.fill(needed, partitions.total + waves.smallest - 1, bounds.upper)
    alone = needed >= len(partitions.sizes)
    best = partitions.cut(limit) if alone else _smallest_ranges(partitions, limit, goal)
    largest, ratio = _evenness(partitions, best)
    # More tasks can only be more even while the largest is one that can be cut.
    for _ in range(_MORE_WAVES if waves.slots > 0 and ratio > EVEN and largest > partitions.largest else 0):
        more = min(goal + waves.slots, bounds.upper)
        if more == goal or more * waves.smallest > partitions.total:
            break
        goal = more
        other = _smallest_ranges(partitions, limit, goal)
        other_largest, other_ratio = _evenness(partitions, other)
        allowed = waves.duration(len(best), largest) * _LONGER
        if other_ratio <= EVEN and waves.duration(len(other), other_largest) <= allowed:
            best = other
            break
    joined = partitions.without_empty(best)
    return joined if len(joined) >= bounds.lower else best


def _smallest_ranges(partitions: Partitions, limit: int, goal: int) -> list[int]:
    """Lower the limit as far as there are no more than `goal` ranges."""
    if goal >= len(partitions.sizes):
        return partitions.cut(0)
    # To the byte for small limits; for the others a thousandth of the limit makes no difference.
    unit = max(1, limit // _STEPS)
    low, high = 0, -(-limit // unit)

    def is_enough(step: int) -> bool:
        return partitions.count(min(step * unit, limit), goal) <= goal

    # Nearly always it lies between an even share and that with one partition more.
    share = partitions.total // goal // unit
    if 0 < share < high:
        if is_enough(share):
            high = share
        else:
            low = share + 1
            more = share + partitions.largest // unit + 2
            high = more if more < high and is_enough(more) else high
    found = least(is_enough, low, high)
    return partitions.cut(limit if found is None else min(found * unit, limit))


def _evenness(partitions: Partitions, starts: Sequence[int]) -> tuple[int, float]:
    """Return the bytes of the largest range, and how many times the mean they are."""
    sizes = partitions.sizes_of(starts)
    largest = max(sizes)
    return largest, largest * len(sizes) / max(1, sum(sizes))
