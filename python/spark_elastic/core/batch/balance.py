"""Cuts partitions into ranges of about one task's volume, as many as the bounds allow."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from operator import sub

from attrs import define, field, frozen

from spark_elastic.core.batch.settings import least_volume, tasks_for
from spark_elastic.core.bounds.requirements import Bounds
from spark_elastic.core.keys.batch import Preset

# ---- The partitions that a group has written, and how they are cut into contiguous ranges. A range is at
# least one partition, however large that is. Ranges are given by their starts: each ends where the next one
# starts, the last one with the last partition.


@define
class Partitions:
    """The bytes of each partition, summed over all exchanges of a group; there is at least one partition."""

    sizes: Sequence[int]
    _sums: list[int] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._sums = [0, *accumulate(self.sizes)]

    @property
    def total(self) -> int:
        """The bytes of all partitions."""
        return self._sums[-1]

    @property
    def largest(self) -> int:
        """The bytes of the largest partition: no lower limit can be kept."""
        return max(self.sizes)

    def count(self, limit: int, enough: int | None = None) -> int:
        """Count the ranges for a limit, stopping when there are more than `enough`."""
        return len(self.cut(limit, enough))

    def cut(self, limit: int, enough: int | None = None) -> list[int]:
        """Cut from left to right into ranges of at most `limit` bytes, where partitions allow it.

        Returns the starts of the ranges, of `enough` + 1 at most.
        """
        sums, end = self._sums, len(self.sizes)
        room = end if enough is None else enough + 1
        starts: list[int] = []
        position = 0
        while position < end and len(starts) < room:
            starts.append(position)
            # The first partition always belongs to the range, so the search starts after it.
            position = bisect_right(sums, sums[position] + limit, position + 2, end + 1) - 1
        return starts

    def cut_evenly(self, tasks: int) -> list[int]:
        """Cut into `tasks` ranges of about the same number of partitions, and return their starts.

        Raises ValueError unless each task can have a partition.
        """
        count = len(self.sizes)
        if not 1 <= tasks <= count:
            raise ValueError(f"{count} cannot be split between {tasks} tasks: at least 1 each is needed")
        return [task * count // tasks for task in range(tasks)]

    def sizes_of(self, starts: Sequence[int]) -> list[int]:
        """Return the bytes of each range."""
        edges = [self._sums[start] for start in starts]
        return list(map(sub, [*edges[1:], self.total], edges))

    def without_empty(self, starts: Sequence[int]) -> list[int]:
        """Join ranges without bytes to a neighbour, and return the starts that remain."""
        sizes = self.sizes_of(starts)
        if all(sizes):
            return list(starts)
        kept: list[int] = []
        last = 0
        for start, size in zip(starts, sizes, strict=True):
            if kept and not (size and last):
                last += size
            else:
                kept.append(start)
                last = size
        return kept


# ---- Tasks run in waves, one task per slot: a full wave costs no more than a partial one.


EVEN = 1.1
"""Tasks are even if the largest has at most this many times the mean."""

_MORE_WAVES = 2
_LONGER = 1.05
_STEPS = 1024


def smallest_task(chosen: int | None, volume: int) -> int:
    """Return the least bytes of a task: what the application has set, else 1 MiB, but at most `volume`."""
    return max(1, min(least_volume(chosen), volume))


@frozen(kw_only=True)
class Waves:
    """The current slots (0 if unknown), and the bytes below which no task is worth its start."""

    slots: int
    smallest: int

    def fill(self, needed: int, total: int, upper: int) -> int:
        """Fill the last wave of `needed` tasks, as far as their bytes and the upper bound allow."""
        if self.slots < 1:
            return needed
        full = -(-needed // self.slots) * self.slots
        return min(max(needed, min(full, total // self.smallest)), upper)

    def duration(self, tasks: int, largest: int) -> int:
        """Estimate how long a stage takes at most, in bytes that one slot could read in that time."""
        return -(-tasks // max(1, self.slots)) * (largest + self.smallest)


def even_out(partitions: Partitions, limit: int, needed: int, bounds: Bounds, waves: Waves) -> list[int]:
    """Cut into ranges of at most `limit` bytes that fill the slots, the largest as small as possible.

    `needed` is the minimum number of ranges. Only a single partition may be larger than `limit`. Returns the
    starts of the ranges.
    """
    # Spark starts one more task for the remainder, so there are never fewer than it would start.
    goal = waves.fill(needed, partitions.total + waves.smallest - 1, bounds.upper)
    alone = needed >= len(partitions.sizes)
    best = partitions.cut(limit) if alone else _smallest_ranges(partitions, limit, goal)
    largest, ratio = _evenness(partitions, best)
    # More tasks can only be more even while the largest one can be cut.
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
    """Lower the limit as far as possible without exceeding `goal` ranges."""
    if goal >= len(partitions.sizes):
        return partitions.cut(0)
    # Exact to the byte for small limits; for others, a thousandth of the limit makes no difference.
    unit = max(1, limit // _STEPS)
    low, high = 0, -(-limit // unit)

    def is_enough(step: int) -> bool:
        return partitions.count(min(step * unit, limit), goal) <= goal

    # The result is nearly always between an even share and one that has a partition more.
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
    """Return the bytes of the largest range, and their ratio to the mean."""
    sizes = partitions.sizes_of(starts)
    largest = max(sizes)
    return largest, largest * len(sizes) / max(1, sum(sizes))


def balance(
    partitions: Partitions, volume: int, bounds: Bounds, *, preset: Preset, waves: Waves | None
) -> list[int]:
    """Cut partitions into ranges of at most `volume` bytes, moving that limit as far as the bounds require.

    There must be at least `bounds.upper` partitions. `waves` fills the slots, None ignores them. If no limit
    gives an allowed number, partitions are split by count, as the preset defines. Returns the starts of the
    ranges.
    """
    count = partitions.count(volume)
    needed = max(bounds.lower, min(count, bounds.upper))
    limit: int | None = volume
    if count < bounds.lower:
        limit = _lower(partitions, volume, bounds.lower)
    elif count > bounds.upper:
        limit = _raise(partitions, volume, bounds.upper, exactly=waves is None)
    if limit is not None:
        starts = even_out(partitions, limit, needed, bounds, waves) if waves else partitions.cut(limit)
        if bounds.lower <= len(starts) <= bounds.upper:
            return starts
    by_volume = tasks_for(partitions.total, volume, bounds)
    return partitions.cut_evenly(bounds.upper if preset.even_split == "most" else by_volume)


def _raise(partitions: Partitions, limit: int, upper: int, *, exactly: bool) -> int | None:
    """Raise the limit until there are at most `upper` ranges; if not `exactly`, to any that is sufficient."""

    def is_enough(at: int) -> bool:
        return partitions.count(at, upper) <= upper

    enough = partitions.total // upper + partitions.largest + 1
    if not exactly and is_enough(enough):
        return enough
    return least(is_enough, limit, partitions.total)


def _lower(partitions: Partitions, limit: int, lower: int) -> int | None:
    """Lower the limit until there are enough ranges, and further while that makes no more of them."""
    low = min(min(partitions.sizes), limit)
    highest = greatest(lambda at: partitions.count(at) >= lower, low, limit)
    if highest is None:
        return None
    count = partitions.count(highest)
    return least(lambda at: partitions.count(at, count) <= count, low, highest)


def least(holds: Callable[[int], bool], low: int, high: int) -> int | None:
    """Find the least number from `low` to `high`, both included, from which on it `holds`, None if none."""
    found = low + bisect_left(range(low, high + 1), True, key=holds)
    return found if found <= high else None


def greatest(holds: Callable[[int], bool], low: int, high: int) -> int | None:
    """Find the greatest number from `low` to `high`, both included, up to which it `holds`, None if none."""
    found = low + bisect_left(range(low, high + 1), True, key=lambda number: not holds(number)) - 1
    return found if found >= low else None
