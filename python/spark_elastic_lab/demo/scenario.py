"""The sequence of changes to cluster, bounds or load during the demonstration, and when each may start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from attrs import define, field

from spark_elastic_lab.demo.check import Check
from spark_elastic_lab.demo.chronicle import Chronicle, ExecutorChange, Ordered, QueryChronicle
from spark_elastic_lab.demo.steps import Deed, Outcome, Step, Trend
from spark_elastic_lab.demo.task_log import Tasks, executors_at, follow

# The cluster's report that shows a deed's effect; new bounds take effect when they are written.
_EFFECT = {Deed.START: "added", Deed.ADD: "added", Deed.KILL: "removed", Deed.DECOMMISSION: "decommissioning"}


@define
class Scenario:
    """Runs the steps: each starts at its time, once the previous step has been settled for a while.

    A step has settled when the cluster reports its effect and it is in force for every query. More slots are
    in force when a task of a micro-batch has run on each new executor; fewer, when a batch has that many
    partitions. A query whose partition count cannot change only has to continue, wherever Spark runs its
    tasks. For a step that leads to a trend, see `follow`. A step that does not settle within `timeout_s` is
    marked as timed out, and the next one starts.
    """

    queries: int
    tasks: Tasks
    steps: Sequence[Step]
    end_s: float
    quiet_s: float = 6.0
    timeout_s: float = 120.0
    outcomes: list[Outcome] = field(factory=list)
    _began: int | None = None

    @property
    def next_step(self) -> Step | None:
        """Return the next step to start, or None after the last."""
        return self.steps[len(self.outcomes)] if len(self.outcomes) < len(self.steps) else None

    def progress(self, now: int) -> float:
        """Return the share of the scenario that is done, from 0 to 1."""
        if self._began is None:
            return 0.0
        planned = [step.at_s for step in self.steps] + [self.end_s]
        reached = (now - self._began) / 1000
        # A step that is late stops the progress bar.
        return min(reached, planned[len(self.outcomes)]) / self.end_s

    def begin_next(self, now: int) -> Step | None:
        """Return the next step if it starts now (epoch ms), and record its start; else return None."""
        step = self.next_step
        if step is None or not self._due(now, step.at_s):
            return None
        if self._began is None:
            self._began = now
        self.outcomes.append(Outcome(step, now))
        return step

    def ended(self, now: int) -> bool:
        """Return whether the last step has finished and the scenario's time is up."""
        return self.next_step is None and self._due(now, self.end_s)

    def observe(self, chronicle: Chronicle, now: int) -> None:
        """Compare the current step with the journal; `now` in epoch ms."""
        if not self.outcomes or self.outcomes[-1].is_over:
            return
        outcome = self.outcomes[-1]
        if isinstance(outcome.step.slots, Trend):
            follow(outcome, outcome.step.slots, chronicle, self.tasks, now)
        else:
            self._count(outcome, outcome.step.slots, chronicle, now)
        if outcome.settled is None and now - outcome.acted > self.timeout_s * 1000:
            outcome.timed_out = True

    def _count(self, outcome: Outcome, slots: int, chronicle: Chronicle, now: int) -> None:
        begin = self._effect(outcome, chronicle.changes)
        if begin is None:
            return
        gone_on = 0
        for query in chronicle.queries.values():
            if not query.follows_slots:
                gone_on += query.in_force_since(None, begin) is not None
                continue
            since = self._in_force_since(slots, query, begin, chronicle.changes)
            if since is not None:
                outcome.in_force.setdefault(query.name, since)
        if len(outcome.in_force) + gone_on >= self.queries:
            outcome.settled = now

    def _in_force_since(
        self, slots: int, query: QueryChronicle, begin: int, changes: Sequence[ExecutorChange]
    ) -> int | None:
        """Return the time (epoch ms) from which a query used the step's slots, or None if it does not yet."""
        before = self.steps[len(self.outcomes) - 2].slots if len(self.outcomes) > 1 else slots
        more = slots - before if isinstance(before, int) else 0
        if more <= 0:
            return query.in_force_since(slots, begin)
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
    def _effect(outcome: Outcome, changes: Sequence[ExecutorChange]) -> int | None:
        """Return the time (epoch ms) at which the step took effect, or None if it has not yet."""
        if outcome.step.deed is Deed.BOUND:
            return outcome.acted
        kind = _EFFECT[outcome.step.deed]
        after = 0 if outcome.step.deed is Deed.START else outcome.acted
        change = next((change for change in changes if change.kind == kind and change.at >= after), None)
        if change is None:
            return None
        outcome.executor, outcome.executor_at = change.executor, change.at
        return change.at


# ---- Checks that every executor was added or removed because of a policy's decision.


_MORE = "executors_wanted"
_FEWER = "executors_not_wanted"


def check_orders(chronicle: Chronicle) -> Check:
    """Check that each added or removed executor was ordered, for a need that a policy reported.

    Executors that the cluster provided before the first order are not counted.
    """
    name = "each executor came and went by a decision of the policy"
    if not chronicle.ordered:
        return Check(name=name, ok=False, found="nothing was ordered")
    found = list(_causes(chronicle.changes, chronicle.ordered))
    unasked = [f"executor {change.executor} {change.kind}" for change, order in found if order is None]
    if unasked or not found:
        return Check(name=name, ok=False, found=f"unasked: {', '.join(unasked)}" if unasked else "none did")
    came = Counter(order.why for change, order in found if order and change.kind == "added")
    went = Counter(order.why for change, order in found if order and change.kind != "added")
    return Check(
        name=name,
        ok="" not in came.keys() | went.keys(),
        found=f"{_counted(came, 'came')}, {_counted(went, 'went')}",
    )


def _causes(
    changes: Sequence[ExecutorChange], orders: Sequence[Ordered]
) -> Iterator[tuple[ExecutorChange, Ordered | None]]:
    """Pair each change with the order that caused it; an executor that leaves in two steps counts once."""
    going: set[str] = set()
    for change in changes:
        if change.at < orders[0].at:
            continue
        if change.kind == "added":
            yield change, _request(change, changes, orders)
        elif change.executor not in going:
            going.add(change.executor)
            yield change, _release(change, orders)


def _request(
    change: ExecutorChange, changes: Sequence[ExecutorChange], orders: Sequence[Ordered]
) -> Ordered | None:
    """Return the last request for more executors, or None if more arrived than were requested."""
    requests = [order for order in orders if order.at <= change.at and order.total is not None]
    came_before = [one.at for one in changes if one.kind == "added" and one.at < change.at]
    # An executor that is already starting when fewer are requested still arrives. So the request in force at
    # the previous arrival still counts.
    settled = sum(order.at <= max(came_before, default=0) for order in requests)
    most = max((order.total or 0 for order in requests[max(settled - 1, 0) :]), default=0)
    asked = [order for order in requests if order.reason == _MORE]
    return asked[-1] if asked and len(executors_at(changes, change.at)) <= most else None


def _release(change: ExecutorChange, orders: Sequence[Ordered]) -> Ordered | None:
    given = [order for order in orders if order.at <= change.at and order.reason == _FEWER]
    return next((order for order in given if change.executor in order.executors), None)


def _counted(reasons: Counter[str], what: str) -> str:
    """Format the number of executors that came or went, with the reasons."""
    if not reasons:
        return f"none {what}"
    named = ", ".join(f"{count} {reason or 'for no reason'}" for reason, count in reasons.most_common())
    return f"{reasons.total()} {what} ({named})"
