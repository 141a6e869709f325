"""From partitions to ranges of about a task's volume, as many as the bounds allow."""

from __future__ import annotations

from spark_elastic.core.batch.bisection import greatest, least
from spark_elastic.core.batch.number import tasks_for
from spark_elastic.core.batch.partitions import Partitions
from spark_elastic.core.batch.presets import Preset
from spark_elastic.core.batch.waves import Waves, even_out
from spark_elastic.core.bounds.requirements import Bounds


def balance(
    partitions: Partitions, volume: int, bounds: Bounds, *, preset: Preset, waves: Waves | None
) -> list[int]:
    """Cut partitions into ranges of at most `volume` bytes; move that limit as far as the bounds ask for.

    There are at least as many partitions as `bounds.upper`. `waves` fills the slots, None leaves them out of
    account. If no limit gives an allowed number, partitions are split by count, as the preset has it. Returns
    the starts of the ranges.
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
    """Raise the limit until there are no more than `upper` ranges; not `exactly`: as far as is enough."""

    def is_enough(at: int) -> bool:
        return partitions.count(at, upper) <= upper

    enough = partitions.total // upper + partitions.largest + 1
    if not exactly and is_enough(enough):
        return enough
    return least(is_enough, limit, partitions.total)


def _lower(partitions: Partitions, limit: int, lower: int) -> int | None:
    """Lower the limit until there are enough ranges, and on as long as that makes no more of them."""
    low = min(min(partitions.sizes), limit)
    highest = greatest(lambda at: partitions.count(at) >= lower, low, limit)
    if highest is None:
        return None
    count = partitions.count(highest)
    return least(lambda at: partitions.count(at, count) <= count, low, highest)
