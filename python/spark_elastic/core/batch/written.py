"""How many subpartitions a producer writes before the number of tasks that read them is known."""

from __future__ import annotations

from typing import Literal

from spark_elastic.core.batch.even import fed_by

Pattern = Literal["all_to_all", "pointwise"]


def subpartitions_written(
    producers: int,
    pattern: Pattern,
    *,
    tasks: int | None,
    most: int,
    fixed: bool = False,
    one_for_all: bool = False,
) -> list[int]:
    """Say how many subpartitions each producer writes.

    `tasks` is the number of readers if it is decided already, `most` what it can come to. `fixed`: nothing
    about the readers can change any more, so each gets one from each producer that it reads from.
    `one_for_all`: every reader gets the whole (broadcast, forward).
    """
    if one_for_all:
        return [1] * producers
    readers = most if tasks is None else tasks
    if pattern == "all_to_all":
        return [readers] * producers
    if not fixed:
        return [-(-readers // producers)] * producers
    spans = [fed_by(producer, producers, readers) for producer in range(producers)]
    return [max(1, end - first) for first, end in spans]
