"""The outputs of the keyed state's job in Flink, and the longest time without any."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

import attrs


@attrs.frozen
class Output:
    """A subtask of the sink, one of `parallelism`, got a row at `at` (epoch ms).

    `due` is the latest time (epoch us) at which a row that it has got was due.
    """

    at: int
    subtask: int
    parallelism: int
    due: int


def outputs_in(lines: Iterable[str]) -> list[Output]:
    """Return the outputs that the sink's lines tell of."""
    return [Output(*map(int, line.split())) for line in lines]


def longest_gap(outputs: Sequence[Output], begin: int, end: int, *, new: bool = False) -> int:
    """Return the longest time (ms) in which a range of keys had no output, and that ends in `begin`..`end`.

    The ranges are those that have never been divided between subtasks. With `new`, only rows count that are
    later than all before them: after a restart, rows since the last checkpoint come again. It is 0 if no such
    time ends there.
    """
    at = sorted((output for output in outputs if output.at <= end), key=lambda output: output.at)
    ranges = math.lcm(*{output.parallelism for output in at}) if at else 0
    counted: Callable[[Iterable[Output]], Iterable[Output]] = _new if new else iter
    return max(
        (
            later.at - earlier.at
            for number in range(ranges)
            for earlier, later in pairwise(counted(_of_range(at, number, ranges)))
            if later.at >= begin
        ),
        default=0,
    )


def in_force_since(outputs: Iterable[Output], parallelism: int, moment: int) -> int | None:
    """Return when the last of so many subtasks has got its first row after `moment` (epoch ms), or None."""
    first: dict[int, int] = {}
    for output in outputs:
        if output.at >= moment and output.parallelism == parallelism:
            first[output.subtask] = min(output.at, first.get(output.subtask, output.at))
    return max(first.values()) if len(first) == parallelism else None


def behind_ms(outputs: Sequence[Output]) -> float:
    """Return how far the slowest subtask is behind the time at which its rows are due; there must be some."""
    newest = max(outputs, key=lambda output: output.at)
    last: dict[int, Output] = {}
    for output in outputs:
        if output.parallelism == newest.parallelism:
            known = last.get(output.subtask, output)
            last[output.subtask] = max(known, output, key=lambda one: one.at)
    return max(newest.at - output.due / 1_000 for output in last.values())


def _of_range(outputs: Iterable[Output], number: int, ranges: int) -> Iterator[Output]:
    return (one for one in outputs if one.subtask == number * one.parallelism // ranges)


def _new(outputs: Iterable[Output]) -> Iterator[Output]:
    latest = 0
    for output in outputs:
        if output.due > latest:
            latest = output.due
            yield output
