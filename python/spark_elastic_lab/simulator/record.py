"""What a simulation notes while it runs: from it come the metrics and the picture. Times are ms."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter

from attrs import define, field, frozen


@define
class Steps:
    """A number that holds until the next one is noted; 0 before the first."""

    times: list[int] = field(factory=list)
    values: list[int] = field(factory=list)

    def note(self, now: int, value: int) -> None:
        """Note what holds from now on; time does not go back."""
        if self.times and self.times[-1] == now:
            self.values[-1] = value
        elif not self.values or self.values[-1] != value:
            self.times.append(now)
            self.values.append(value)

    def at(self, now: float) -> int:
        """Return what holds at a moment."""
        place = bisect_right(self.times, now)
        return self.values[place - 1] if place else 0

    def total(self, end: int) -> float:
        """Add up the numbers, each for as long as it holds up to the end: number · ms."""
        ends = [*self.times[1:], end]
        return sum(
            value * max(0, min(until, end) - since)
            for since, until, value in zip(self.times, ends, self.values, strict=True)
        ) if self.times else 0.0  # fmt: skip

    def until(self, end: float) -> Steps:
        """Return what is noted up to a moment."""
        place = bisect_right(self.times, end)
        return Steps(self.times[:place], self.values[:place])

    @property
    def changes(self) -> int:
        """How often it has become another number."""
        pairs = zip(self.values, self.values[1:], strict=False)
        return sum(before != after for before, after in pairs)


@frozen
class Commit:
    """A micro-batch was through at `at`; the oldest row had waited `since`, what is left waits since `then`.

    These are moments, infinity if no row waits and none will. `before` and `after` count the rows that wait.
    """

    at: int
    since: float
    then: float
    before: int
    after: int


@frozen
class Rescaled:
    """A query went from one number of partitions to another, after a pause of so many ms."""

    at: int
    before: int
    after: int
    pause: int


@define
class QueryNotes:
    """What is noted of one query: its first row comes at `first_row`, infinity without any.

    The last one of `commits` is how it stands at the end.
    """

    first_row: float = math.inf

    partitions: Steps = field(factory=Steps)
    commits: list[Commit] = field(factory=list)
    rescales: list[Rescaled] = field(factory=list)

    @property
    def moves(self) -> list[Rescaled]:
        """The rescales that paused the query: those in place cost nothing."""
        return [rescaled for rescaled in self.rescales if rescaled.pause > 0]


@frozen
class BatchRun:
    """A batch job that came at `came` was over at `over`."""

    came: int
    over: int


@define
class Notes:
    """What is noted of a run: executors that take tasks, those that are paid for, and those asked for.

    `batch` are the batch jobs that are over; `failed` counts what went wrong when custom policies were asked.
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
