"""What happens to the cluster and to the bounds during the demonstration, and when the next thing may."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Protocol

from attrs import define, field, frozen

from spark_elastic.demo.chronicle import Chronicle, ExecutorChange, QueryChronicle


class Tasks(Protocol):
    """Where the tasks of micro-batches ran."""

    def first_on(self, executor: str, moment: int, query: str | None = None) -> int | None:
        """Return when the first task of a query was launched on an executor at `moment` or later."""
        ...


class Deed(enum.Enum):
    """What a step does; START is done before the scenario begins."""

    START = "start"
    ADD = "add"
    KILL = "kill"
    DECOMMISSION = "decommission"
    BOUND = "bound"


# What the cluster reports when a deed has had its effect; other bounds count from when they are written.
_EFFECT = {Deed.START: "added", Deed.ADD: "added", Deed.KILL: "removed", Deed.DECOMMISSION: "decommissioning"}


@frozen(kw_only=True)
class Step:
    """One event: begins `at_s` after the start at the earliest, and every query should then use `slots`.

    In adaptive mode that is what the policy file says from then on, as their upper bound.
    """

    title: str
    deed: Deed
    at_s: float
    slots: int


@define
class Outcome:
    """What became of a step; times in epoch ms, None if it did not come about."""

    step: Step
    acted: int
    executor: str | None = None
    executor_at: int | None = None
    in_force: dict[str, int] = field(factory=dict)
    settled: int | None = None
    timed_out: bool = False


STEPS: tuple[Step, ...] = (
    Step(title="start with one worker", deed=Deed.START, at_s=0, slots=1),
    Step(title="add a worker", deed=Deed.ADD, at_s=15, slots=2),
    Step(title="add another worker", deed=Deed.ADD, at_s=32, slots=3),
    Step(title="kill -9 a worker", deed=Deed.KILL, at_s=49, slots=2),
    Step(title="decommission a worker", deed=Deed.DECOMMISSION, at_s=64, slots=1),
)
ADAPTIVE_STEPS: tuple[Step, ...] = (
    Step(title="start with an upper bound of 1", deed=Deed.START, at_s=0, slots=1),
    Step(title="raise the upper bound to 3", deed=Deed.BOUND, at_s=15, slots=3),
    Step(title="lower it to 2", deed=Deed.BOUND, at_s=36, slots=2),
    Step(title="lower it to 1", deed=Deed.BOUND, at_s=54, slots=1),
)
END_S = 78.0


@define
class Scenario:
    """Goes through steps: each begins when its time has come and the one before has settled for a while.

    A step has settled when the cluster reports its effect and it is in force for every query. More slots are
    when a task of a micro-batch has run on each new executor, fewer when a batch has that many partitions.
    One that does not settle within `timeout_s` is marked, and the next begins.
    """

    queries: int
    tasks: Tasks
    steps: Sequence[Step] = STEPS
    end_s: float = END_S
    quiet_s: float = 6.0
    timeout_s: float = 120.0
    outcomes: list[Outcome] = field(factory=list)
    _began: int | None = None

    @property
    def next_step(self) -> Step | None:
        """Return the step that has not begun yet, None after the last."""
        return self.steps[len(self.outcomes)] if len(self.outcomes) < len(self.steps) else None

    def progress(self, now: int) -> float:
        """Return how much of the scenario is over, from 0 to 1."""
        if self._began is None:
            return 0.0
        planned = [step.at_s for step in self.steps] + [self.end_s]
        reached = (now - self._began) / 1000
        # A step that is late holds the bar at its place.
        return min(reached, planned[len(self.outcomes)]) / self.end_s

    def begin_next(self, now: int) -> Step | None:
        """Return the next step if it is to begin now (epoch ms), and note that it has begun."""
        step = self.next_step
        if step is None or not self._due(now, step.at_s):
            return None
        if self._began is None:
            self._began = now
        self.outcomes.append(Outcome(step, now))
        return step

    def ended(self, now: int) -> bool:
        """Tell whether the last step is over and the time is up."""
        return self.next_step is None and self._due(now, self.end_s)

    def observe(self, chronicle: Chronicle, now: int) -> None:
        """Compare the present step with what the journal says; `now` in epoch ms."""
        if not self.outcomes or self._over(self.outcomes[-1]):
            return
        outcome = self.outcomes[-1]
        begin = self._effect(outcome, chronicle.changes)
        if begin is not None:
            for query in chronicle.queries.values():
                since = self._in_force_since(outcome, query, begin, chronicle.changes)
                if since is not None:
                    outcome.in_force.setdefault(query.name, since)
        if len(outcome.in_force) >= self.queries:
            outcome.settled = now
        elif now - outcome.acted > self.timeout_s * 1000:
            outcome.timed_out = True

    def _in_force_since(
        self, outcome: Outcome, query: QueryChronicle, begin: int, changes: Sequence[ExecutorChange]
    ) -> int | None:
        """Return since when a query uses what a step has brought (epoch ms), None if it does not yet."""
        before = self.steps[len(self.outcomes) - 2].slots if len(self.outcomes) > 1 else outcome.step.slots
        more = outcome.step.slots - before
        if more <= 0:
            return query.in_force_since(outcome.step.slots, begin)
        new = [change.executor for change in changes if change.kind == "added" and change.at >= begin]
        used = [self.tasks.first_on(executor, begin, query.query) for executor in new]
        first = sorted(moment for moment in used if moment is not None)
        return first[more - 1] if len(first) >= more else None

    def _due(self, now: int, at_s: float) -> bool:
        if self._began is None:
            return True
        if now < self._began + at_s * 1000:
            return False
        last = self.outcomes[-1]
        return last.timed_out or (last.settled is not None and now >= last.settled + self.quiet_s * 1000)

    @staticmethod
    def _over(outcome: Outcome) -> bool:
        return outcome.timed_out or outcome.settled is not None

    @staticmethod
    def _effect(outcome: Outcome, changes: Sequence[ExecutorChange]) -> int | None:
        """Return when the new number could be used from (epoch ms), None if that has not come yet."""
        if outcome.step.deed is Deed.BOUND:
            return outcome.acted
        kind = _EFFECT[outcome.step.deed]
        after = 0 if outcome.step.deed is Deed.START else outcome.acted
        change = next((change for change in changes if change.kind == kind and change.at >= after), None)
        if change is None:
            return None
        outcome.executor, outcome.executor_at = change.executor, change.at
        return change.at
