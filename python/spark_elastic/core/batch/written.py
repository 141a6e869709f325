"""How many subpartitions a producer writes before the number of tasks that read them is known."""

from __future__ import annotations

from typing import Literal

from spark_elastic.core.batch.even import fed_by

Pattern = Literal["all_to_all", "pointwise"]


def subpartitions_written(
    producers: int, pattern: Pattern, *, tasks: int | None, most: int, one_for_all: bool = False
) -> list[int]:
    """Say how many subpartitions each producer writes.

    `tasks` is the number of readers if it is decided already, `most` what it can come to. `one_for_all`:
    every reader gets the whole (broadcast, forward).
    """
    if one_for_all:
        return [1] * producers
    readers = most if tasks is None else tasks
    return [readers if pattern == "all_to_all" else -(-readers // producers)] * producers


def subpartitions_fixed(producers: int, pattern: Pattern, tasks: int) -> list[int]:
    """Say how many each producer writes if nothing about its readers can change any more: one per reader."""
    if pattern == "all_to_all":
        return [tasks] * producers
    if tasks <= producers:
        return [1] * producers
    spans = [fed_by(producer, producers, tasks) for producer in range(producers)]
    return [end - first for first, end in spans]
