"""The ranges that the tasks of a group read, decided after its map side has run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from spark_elastic.core.batch.balance import Partitions, Waves, balance, smallest_task
from spark_elastic.core.batch.questions import (
    Left,
    Ranges,
    RangesAnswer,
    Spec,
    StageRecord,
    WrittenExchange,
    record,
)
from spark_elastic.core.batch.settings import BatchSettings, narrow
from spark_elastic.core.bounds.requirements import Bounds

# ---- Which partitions of an exchange are far larger than the others. Spark itself splits those of a join.


_FACTOR = 4
_THRESHOLD = 256 << 20
"""A skewed partition exceeds both: this multiple of the median, and this many bytes."""


def median(sizes: Sequence[int]) -> int:
    """Return the median in whole bytes, at least 1. Raises IndexError if there are no sizes."""
    ordered = sorted(sizes)
    middle = len(ordered) // 2
    return max(1, ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) // 2)


def skewed(sizes: Sequence[int]) -> frozenset[int]:
    """Return the indices of skewed partitions, by their bytes. Raises ValueError if `sizes` is empty.

    They are only recorded: Spark splits the skewed sides of a join before stages are read
    (`OptimizeSkewedJoin`), from the same number of bytes on, and splitting later would have to undo its work.
    """
    if max(sizes) <= _THRESHOLD:
        return frozenset()
    above = max(median(sizes) * _FACTOR, _THRESHOLD)
    return frozenset(place for place, size in enumerate(sizes) if size > above)


_LEFT: Mapping[Left, str] = {"skew": "ranges_left_skew", "local": "ranges_left_local"}


def ranges(question: Ranges, settings: BatchSettings) -> RangesAnswer:
    """Answer what each task reads. Raises ValueError if exchanges have different numbers of partitions."""
    untouched = _untouched(question, settings)
    if untouched is not None:
        return RangesAnswer(group=question.group, specs=None, record=untouched)
    partitions = Partitions(_added(question.exchanges))
    count = len(partitions.sizes)
    most = settings.bounds(question.slots, question.chosen, question.parallelism)
    bounds = narrow(most, question.lower, count)
    # An application that puts few, large tasks first does not want the slots to be filled.
    fills = settings.rules.fills_waves and question.parallelism_first is not False
    waves = Waves(slots=question.slots, smallest=smallest_task(question.smallest, settings.volume))
    if question.kept is not None:
        starts = [0, *question.kept[:-1]]
    else:
        starts = balance(
            partitions, settings.volume, bounds, preset=settings.rules, waves=waves if fills else None
        )
    specs = tuple(Spec(start=start, end=end) for start, end in pairwise([*starts, count]))
    why = _why(question, settings, bounds, count, partitions.sizes_of(starts))
    return RangesAnswer(group=question.group, specs=specs, record=why)


def _untouched(question: Ranges, settings: BatchSettings) -> StageRecord | None:
    """Return why the ranges are left to Spark, None if they are not."""
    if not (settings.enabled and settings.ranges_enabled):
        return record("ranges_off")
    if not question.exchanges:
        return record("ranges_nothing")
    if question.kept == ():
        return record("ranges_kept", before=len(question.exchanges[0].bytes))
    if question.left is not None:
        written = sum(sum(exchange.bytes) for exchange in question.exchanges)
        return record(_LEFT[question.left], before=len(question.exchanges[0].bytes), bytes=written)
    return None


def _added(exchanges: Sequence[WrittenExchange]) -> Sequence[int]:
    """Add up the bytes of each partition over all exchanges."""
    first, *others = (exchange.bytes for exchange in exchanges)
    return [sum(sizes) for sizes in zip(first, *others, strict=True)] if others else first


def _why(
    question: Ranges, settings: BatchSettings, bounds: Bounds, count: int, sizes: Sequence[int]
) -> StageRecord:
    """Make the record for `count` partitions that tasks read in ranges of these sizes."""
    tasks, total, largest = len(sizes), sum(sizes), max(sizes)
    far_larger = frozenset().union(*(skewed(exchange.bytes) for exchange in question.exchanges))
    if far_larger:
        reason = "ranges_skewed"
    elif tasks == count:
        reason = "ranges_as_written"
    elif tasks == bounds.upper and largest > settings.volume:
        reason = "ranges_bounded"
    else:
        reason = "ranges_balanced"
    return record(
        reason,
        before=count,
        after=tasks,
        bytes=total,
        largest=largest,
        ratio=round(largest * tasks / total, 2) if total else 1.0,
        skewed=len(far_larger),
        volume=settings.volume,
        slots=question.slots,
        lower=bounds.lower,
        upper=bounds.upper,
        exchanges=len(question.exchanges),
    )
