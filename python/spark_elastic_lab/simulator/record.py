"""The records that a simulation keeps for the metrics and the picture. Times are ms."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter

from attrs import define, field, frozen


@define
class Steps:
    """A number that holds until the next one is recorded; 0 before the first."""

    times: list[int] = field(factory=list)
    values: list[int] = field(factory=list)

    def note(self, now: int, value: int) -> None:
        """Record the value that holds from `now`; times must not decrease."""
        if self.times and self.times[-1] == now:
            self.values[-1] = value
        elif not self.values or self.values[-1] != value:
            self.times.append(now)
            self.values.append(value)

    def at(self, now: float) -> int:
        """Return the value at a moment."""
        place = bisect_right(self.times, now)
        return self.values[place - 1] if place else 0

    def total(self, end: int) -> float:
        """Return the integral of the value up to the end: number · ms."""
        ends = [*self.times[1:], end]
        return sum(
            value * max(0, min(until, end) - since)
            for since, until, value in zip(self.times, ends, self.values, strict=True)
        ) if self.times else 0.0  # fmt: skip

    def until(self, end: float) -> Steps:
        """Return the values recorded up to a moment."""
        place = bisect_right(self.times, end)
        return Steps(self.times[:place], self.values[:place])

    @property
    def changes(self) -> int:
        """The number of changes of the value."""
        pairs = zip(self.values, self.values[1:], strict=False)
        return sum(before != after for before, after in pairs)


@frozen
class Commit:
    """A micro-batch that committed at `at`; the oldest row waited since `since` before it, `then` after it.

    These are moments, or infinity if no row waits and none will. `before` and `after` count the waiting rows.
    """

    at: int
    since: float
    then: float
    before: int
    after: int


@frozen
class Rescaled:
    """A query changed its number of partitions, after a pause of `pause` ms."""

    at: int
    before: int
    after: int
    pause: int


@define
class QueryNotes:
    """The records of one query; its first row arrives at `first_row`, infinity if it has none.

    The last one of `commits` is its state at the end. `took` are the durations of its micro-batches.
    """

    first_row: float = math.inf

    partitions: Steps = field(factory=Steps)
    commits: list[Commit] = field(factory=list)
    took: list[int] = field(factory=list)
    rescales: list[Rescaled] = field(factory=list)

    @property
    def moves(self) -> list[Rescaled]:
        """The rescales that paused the query; those in place cost nothing."""
        return [rescaled for rescaled in self.rescales if rescaled.pause > 0]


@frozen
class BatchRun:
    """A batch job that arrived at `came` and ended at `over`."""

    came: int
    over: int


@define
class Notes:
    """The records of a run: executors that accept tasks, those paid for, and those requested.

    `batch` are the ended batch jobs; `failed` counts the errors of custom policies by policy and error.
    """

    there: Steps = field(factory=Steps)
    paid: Steps = field(factory=Steps)
    wanted: Steps = field(factory=Steps)
    queries: dict[str, QueryNotes] = field(factory=dict)
    batch: list[BatchRun] = field(factory=list)
    reasons: Counter[str] = field(factory=Counter)
    failed: Counter[tuple[str, str]] = field(factory=Counter)
    refused: int = 0
    lost: int = 0
