"""The steps of the scenario: their actions, their intended results, and their outcomes."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from attrs import define, field, frozen


class Deed(enum.Enum):
    """The action of a step; START is done before the scenario begins."""

    START = "start"
    ADD = "add"
    KILL = "kill"
    DECOMMISSION = "decommission"
    BOUND = "bound"
    LOAD = "load"


class Trend(enum.Enum):
    """The direction in which the number of executors changes, for steps without a fixed number."""

    MORE = "more"
    FEWER = "fewer"


@frozen(kw_only=True)
class Step:
    """One event: starts `at_s` after the start at the earliest, and leads to a number of slots or a trend.

    In adaptive mode, the step writes `slots` into the policy file as the upper bound of the queries. A step
    with `interval_s` changes the input's rate: one part arrives every `interval_s` seconds.
    """

    title: str
    deed: Deed
    at_s: float
    slots: int | Trend
    interval_s: float | None = None


@define
class Outcome:
    """The outcome of a step; times in epoch ms, None for what did not happen.

    `before` and `after` count the executors if the step leads to a trend.
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
        """Whether the step has settled or timed out."""
        return self.timed_out or self.settled is not None


# ---- The scenario of each mode: the cluster, the input, the application's options, the steps.


class Mode(enum.Enum):
    """The kind of change: workers are added and removed, bounds change, or the load does."""

    REACTIVE = "reactive"
    ADAPTIVE = "adaptive"
    AUTOSCALE = "autoscale"


@frozen(kw_only=True)
class Play:
    """The scenario of one mode, which lasts at least until `end_s` after its first step.

    The cluster starts with `workers`, given by their cores. lineitem at `scale` (1 = 6 million rows) arrives
    in `parts` parts, one every `interval_s` seconds, or at the source's own rate if that is None. The
    application gets `options` after its paths. A step times out after `timeout_s`.
    """

    steps: Sequence[Step]
    end_s: float
    workers: Sequence[int] = (1,)
    scale: float = 0.05
    parts: int = 200
    interval_s: float | None = None
    options: Sequence[str] = ()
    timeout_s: float = 120.0


_REACTIVE = Play(
    steps=(
        Step(title="start with one worker", deed=Deed.START, at_s=0, slots=1),
        Step(title="add a worker", deed=Deed.ADD, at_s=15, slots=2),
        Step(title="add another worker", deed=Deed.ADD, at_s=32, slots=3),
        Step(title="kill -9 a worker", deed=Deed.KILL, at_s=49, slots=2),
        Step(title="decommission a worker", deed=Deed.DECOMMISSION, at_s=64, slots=1),
    ),
    end_s=78.0,
)
_ADAPTIVE = Play(
    steps=(
        Step(title="start with an upper bound of 1", deed=Deed.START, at_s=0, slots=1),
        Step(title="raise the upper bound to 3", deed=Deed.BOUND, at_s=15, slots=3),
        Step(title="lower it to 2", deed=Deed.BOUND, at_s=36, slots=2),
        Step(title="lower it to 1", deed=Deed.BOUND, at_s=54, slots=1),
    ),
    end_s=78.0,
    workers=(1, 1, 1),
)
# Each line waits 10 ms in its task and needs almost no CPU, so more slots are faster on any machine. 100
# lines per second are 1 s of work per second, and the trigger interval is long compared with an empty
# micro-batch. This load needs two slots; twice the load needs three to five.
_AUTOSCALE = Play(
    steps=(
        Step(title="start with all executors", deed=Deed.START, at_s=0, slots=Trend.FEWER),
        Step(title="double the load", deed=Deed.LOAD, at_s=75, slots=Trend.MORE, interval_s=0.5),
        Step(title="let it fall to a quarter", deed=Deed.LOAD, at_s=125, slots=Trend.FEWER, interval_s=2.0),
    ),
    end_s=190.0,
    workers=(3, 3),
    scale=0.01,
    parts=600,
    interval_s=1.0,
    options=("4 seconds", "10"),
    timeout_s=180.0,
)
PLAYS = {Mode.REACTIVE: _REACTIVE, Mode.ADAPTIVE: _ADAPTIVE, Mode.AUTOSCALE: _AUTOSCALE}
