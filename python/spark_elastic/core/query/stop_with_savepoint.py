"""StopWithSavepoint: the query stops at its next micro-batch boundary, is copied there, and ends.

A failed copy leaves nothing behind, and the query keeps running. If the query fails before the boundary, the
savepoint is taken at its last one, and the failure is handled only after that.
"""

from __future__ import annotations

from typing import ClassVar

from attrs import define

from spark_elastic.core import events as ev
from spark_elastic.core.query import internal_events as inner
from spark_elastic.core.query.record import Reactions
from spark_elastic.core.query.states import QueryState
from spark_elastic.core.query.step import Step
from spark_elastic.core.transitions import STOP_WITH_SAVEPOINT


@define(kw_only=True)
class StopWithSavepoint(QueryState):
    """A query that will end at its next boundary, with the requested savepoint in the folder `target`.

    `failure` is that of its last micro-batch if it failed before. `orders` are those of the savepoint (more
    than one if the first may not have arrived). `path` is the folder of the completed savepoint, None until
    then.
    """

    name: ClassVar[str] = STOP_WITH_SAVEPOINT
    looks_at_failures_later: ClassVar[bool] = True

    request: ev.SavepointRequested
    target: str
    failure: ev.Failure | None = None
    orders: tuple[str, ...] = ()
    path: str | None = None

    def enter(self, step: Step) -> None:
        """Order the savepoint, and the end with it."""
        order = step.take_savepoint(self.request)
        assert order is not None
        self.orders = (*self.orders, order)

    def order_again(self, event: inner.Recovered, step: Step) -> None:
        """Repeat the order that may not have been carried out: the savepoint, or the end."""
        if event.info is not None and event.info.failure is not None:
            step.record.run_state = "failed"
            self.failure = event.info.failure
        if self.path is None:
            numbers = {"target": self.target}
            step.report("stopping_again", before=step.record.partitions, numbers=numbers)
            self._hold(step)
            self.enter(step)
        else:
            self._saved(step)

    def measure(self, event: ev.QueryProgress, step: Step) -> None:
        """Keep measuring: the boundary may be far."""
        step.measured(event, warm=True)

    def keep_the_failure(self, event: ev.QueryFailed, step: Step) -> None:
        """Keep the failure until the savepoint has completed."""
        if self.failure is not None:
            return
        step.record.run_state = "failed"
        self.failure = event.failure
        if self.path is None:
            self._hold(step)
        else:
            self._saved(step)

    def run_on(self, event: ev.QueryStarted, step: Step) -> None:
        """Follow a start that the policy did not order: the query keeps running."""
        step.started(event)
        step.execute()

    def note_it_and_wait_for_the_end(self, event: ev.SavepointTaken, step: Step) -> None:
        """Wait for the end, unless the query has failed; another savepoint may have been under way."""
        step.saved(event)
        if event.action in self.orders:
            self.path = event.path
            if self.failure is not None:
                self._saved(step)

    def finish_with_the_savepoint(self, event: ev.QueryTerminated, step: Step) -> None:
        """Treat the end as the requested one if the savepoint exists."""
        if self.path is None:
            self.finish(event, step)
        else:
            for action in self.orders:  # the end may come before their outcome
                step.record.orders.pending.pop(action, None)
            step.end("stopped_with_savepoint", "job_finished", {"path": self.path})

    def _hold(self, step: Step) -> None:
        # A failed query without a hold ends after a while.
        if self.failure is not None:
            step.record.told.hold = None
            step.hold("taking_savepoint", until=None, numbers={"target": self.target})

    def _saved(self, step: Step) -> None:
        if self.failure is None:
            step.stop_for_good()
        else:
            step.run_failed(self.failure, savepoint=self.path)

    def run_on_or_end(self, event: ev.ActionFailed, step: Step) -> None:
        """Let the query continue without its savepoint, or handle its failure."""
        order = step.order
        if order is None or order.action != self.orders[-1]:
            return
        if self.path is not None:
            self._saved(step)  # the copy exists, and only the end has failed
        elif self.failure is None:
            step.execute()
        else:
            step.run_failed(self.failure)

    reactions: ClassVar[Reactions] = {
        **QueryState.reactions,
        ev.QueryStarted: run_on,
        ev.QueryProgress: measure,
        ev.QueryFailed: keep_the_failure,
        ev.QueryTerminated: finish_with_the_savepoint,
        ev.SavepointTaken: note_it_and_wait_for_the_end,
        ev.ActionDone: "their own events complete the savepoint and end the query",
        ev.ActionFailed: run_on_or_end,
        inner.Recovered: order_again,
    }
