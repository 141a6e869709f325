"""Common parts of the batch vectors: the exchanges of a group, and the ranges that its tasks read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from spark_elastic.core.batch.balance import Partitions, balance
from spark_elastic.core.batch.settings import narrow
from spark_elastic.core.bounds.requirements import Bounds
from spark_elastic.core.keys.batch import FLINK
from tests.vectors.adapters.fields import Fields, NotRunError

# The vectors describe the model's plain behaviour, so they are run with its preset.
PRESET = FLINK

Range = tuple[int, int]
"""The first and the last partition."""


def bounds_of(given: Fields) -> Bounds:
    return Bounds(lower=given["min"], upper=given["max"])


def written_by(given: Mapping[str, Any]) -> list[int]:
    """Add up the bytes that all map tasks have written of each partition."""
    if given.get("pointwise"):
        raise NotRunError("each task of Spark reads its part of what every map task has written")
    if given.get("broadcast"):
        raise NotRunError("a broadcast is no shuffle: it is in no group")
    if not given.get("intra_input_key_correlated", True):
        raise NotRunError("Spark alone splits partitions, before it is asked which ranges are read")
    if not given.get("inter_input_key_correlated", True):
        raise NotRunError("shuffles whose partitions go with no other's are groups of their own")
    return [sum(column) for column in zip(*given["bytes_matrix"], strict=True)]


def ranges_of(exchanges: Sequence[Sequence[int]], volume: int, bounds: Bounds) -> list[Range]:
    sizes = [sum(column) for column in zip(*exchanges, strict=True)]
    if bounds.lower > len(sizes):
        raise NotRunError("no partition is split, so bounds end at their number")
    within = narrow(bounds, upper=len(sizes))
    # The volume of a task is at least one byte.
    starts = balance(Partitions(sizes), max(volume, 1), within, preset=PRESET, waves=None)
    return ranges_from(starts, len(sizes))


def ranges_from(starts: Sequence[int], count: int) -> list[Range]:
    return [(start, end - 1) for start, end in pairwise([*starts, count])]
