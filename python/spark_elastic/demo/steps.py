"""What a step of the scenario does, what it is to lead to, and what became of it."""

from __future__ import annotations

import enum

from attrs import define, field, frozen


class Deed(enum.Enum):
    """What a step does; START is done before the scenario begins."""

    START = "start"
    ADD = "add"
    KILL = "kill"
    DECOMMISSION = "decommission"
    BOUND = "bound"
    LOAD = "load"


class Trend(enum.Enum):
    """What becomes of the number of executors, where nobody says how many there are to be."""

    MORE = "more"
    FEWER = "fewer"


@frozen(kw_only=True)
class Step:
    """One event: begins `at_s` after the start at the earliest, and leads to so many `slots` or to a trend.

    In adaptive mode `slots` is what the policy file says from then on, as the upper bound of the queries.
    From a step with `interval_s` on, a part of the input arrives each so many seconds.
    """

    title: str
    deed: Deed
    at_s: float
    slots: int | Trend
    interval_s: float | None = None


@define
class Outcome:
    """What became of a step; times in epoch ms, None if it did not come about.

    `before` and `after` are the executors that there were where the step leads to a trend.
    """

    step: Step
    acted: int
    executor: str | None = None
    executor_at: int | None = None
    before: int | None = None
    after: int | None = None
    in_force: dict[str, int] = field(factory=dict)
    settled: int | None = None
    timed_out: bool = False

    @property
    def is_over(self) -> bool:
        """Whether it has settled or was given up."""
        return self.timed_out or self.settled is not None
