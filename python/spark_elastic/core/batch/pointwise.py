"""Inputs of which a task reads neighbouring partitions, or some of the subpartitions of one."""

from __future__ import annotations

from collections.abc import Sequence

from spark_elastic.core.batch.balance import balance
from spark_elastic.core.batch.even import split_evenly, split_pointwise
from spark_elastic.core.batch.inputs import Input
from spark_elastic.core.batch.presets import Preset
from spark_elastic.core.batch.slices import Slices
from spark_elastic.core.batch.spans import Block, gather
from spark_elastic.core.requirements import Bounds

SLICES_PER_TASK = 32
"""How finely inputs are sliced at most: finer slices would hardly be more even."""


def read_pointwise(
    inputs: Sequence[Input], volume: int, bounds: Bounds, *, decided: int, preset: Preset
) -> list[list[list[Block]]]:
    """Split pointwise inputs into common ranges by the sum of their bytes; return what is read, by input.

    Raises ValueError if they cannot be split into as many ranges as the bounds ask for.
    """
    count = _slice_count(inputs, bounds)
    rows = [_slices(item, count) for item in inputs]
    sizes = [[item.bytes_in(block) for block in row] for item, row in zip(inputs, rows, strict=True)]
    weights = [sum(column) for column in zip(*sizes, strict=True)]
    ranges = balance(Slices(weights=weights), volume, bounds, decided=decided, preset=preset)
    if ranges is None:
        return [split_pointwise(item.partitions, decided, len(item.columns)) for item in inputs]
    return [[[Block(*cell) for cell in gather(row[slice(*span)])] for span in ranges] for row in rows]


def _slice_count(inputs: Sequence[Input], bounds: Bounds) -> int:
    if not all(item.apart for item in inputs):
        return min(item.partitions for item in inputs)
    available = min(item.partitions * len(item.columns) for item in inputs)
    return min(available, SLICES_PER_TASK * bounds.upper)


def _slices(item: Input, count: int) -> list[Block]:
    width = len(item.columns)
    if item.partitions >= count:
        return [Block(span, (0, width)) for span in split_evenly(item.partitions, count)]
    return [
        Block((partition, partition + 1), span)
        for partition, (first, end) in enumerate(split_evenly(count, item.partitions))
        for span in split_evenly(width, end - first)
    ]
