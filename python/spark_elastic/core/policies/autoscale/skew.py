"""Whether one task holds up the others: one key or partition has so many of the rows, or of those behind.

A micro-batch cannot be shorter than its longest task, however many slots there are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median

from attrs import frozen

from spark_elastic.core.policies.view import Sample
from spark_elastic.core.turn import Number

_FAR = 5
"""How many times the median is far: as Spark's ``skewedPartitionFactor``."""
_MOST = 0.5
"""The part of a micro-batch from which on one task holds it up."""
_ENOUGH, _LAST = 2, 3
_HOT = 0.5
"""The share of the rows behind from which on one partition holds up a query."""
_FEWEST_PARTITIONS = 3


@frozen(kw_only=True)
class Skew:
    """The longest task takes `longest_ms`, half of the tasks take `median_ms` or less.

    On `useful` slots all others are done by the time that the longest one is.
    """

    longest_ms: int
    median_ms: int
    useful: int


def skewed(samples: Sequence[Sample]) -> Skew | None:
    """Find that in each of the last micro-batches one task took far longer than the others, None: in none."""
    last = samples[-_LAST:]
    if len(last) < _ENOUGH or not all(map(_has_skew, last)):
        return None
    works = [one.work for one in last if one.work is not None]
    longest = median(work.longest_ms for work in works)
    return Skew(
        longest_ms=round(longest),
        median_ms=round(median(work.median_ms for work in works)),
        useful=math.ceil(median(work.run_ms for work in works) / longest),
    )


def _has_skew(sample: Sample) -> bool:
    work = sample.work
    if work is None:
        return False
    return work.longest_ms > max(_FAR * work.median_ms, _MOST * sample.duration_ms)


@frozen(kw_only=True)
class Hot:
    """One partition of a source has the `share` of the rows that are to be read, "" where it has no name."""

    share: float
    partition: str = ""

    @property
    def useful(self) -> int:
        """The slots on which all other partitions are read by the time that this one is."""
        return math.ceil(1 / self.share)

    @property
    def numbers(self) -> Mapping[str, Number]:
        """What a decision tells of it."""
        named = f"partition {self.partition}" if self.partition else "one partition"
        return {"hot_percent": round(100 * self.share), "hot_partition": named}


def hot_behind(latest: Sample) -> Hot | None:
    """Find that most of the rows behind are in one partition, None: no more than others have, or unknown."""
    offsets, behind = latest.offsets_behind, latest.behind
    if offsets is None or not behind or offsets.avg <= 0:
        return None
    partitions = behind / offsets.avg
    share = offsets.max / behind
    if partitions < _FEWEST_PARTITIONS or share <= _HOT:
        return None
    fullest = latest.fullest
    return Hot(share=share, partition="" if fullest is None else fullest.name)


def hot_input(samples: Sequence[Sample]) -> Hot | None:
    """Find that in each of the last micro-batches the same partition had most of what was to be read."""
    last = samples[-_LAST:]
    told = [one.fullest for one in last if one.fullest is not None]
    if len(last) < _ENOUGH or len(told) < len(last) or len({one.name for one in told}) > 1:
        return None
    if not all(one.partitions >= _FEWEST_PARTITIONS and one.share > _HOT for one in told):
        return None
    return Hot(share=median(one.share for one in told), partition=told[-1].name)
