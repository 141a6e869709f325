"""CreatingExecutionGraph: the count is chosen, the start is ordered, the query is about to run."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from attrs import define

from spark_elastic.core import events as ev
from spark_elastic.core.query import internal_events as inner
from spark_elastic.core.query.moving import Moving
from spark_elastic.core.query.state import Reactions, State
from spark_elastic.core.query.transitions import CREATING_EXECUTION_GRAPH
from spark_elastic.core.rescale.concurrency import PATIENCE_MS

if TYPE_CHECKING:
    from spark_elastic.core.query.step import Step


@define(kw_only=True)
class CreatingExecutionGraph(Moving):
    """A query whose start is ordered; `waited_ms` is how long it has waited if it may not wait any longer."""

    name: ClassVar[str] = CREATING_EXECUTION_GRAPH
    starting: ClassVar[bool] = True

    waited_ms: int = 0

    def enter(self, step: Step) -> None:
        """Choose with the slots of now and order the start; below its lower bounds the query fails."""
        if step.may_start:
            choice = step.choose_start()
            step.report_choice(choice)
            step.start(choice)
            self.moving_until = step.now + PATIENCE_MS if step.is_to_move else None
        else:
            step.fail_without_resources(self.waited_ms)

    def open_the_next_record(self, event: inner.BoundsChanged, step: Step) -> None:
        """Continue, in the history under the new bounds; they are looked at as soon as the query runs."""
        step.open_rescale_for_bounds()

    def order_the_start_again(self, event: inner.Recovered, step: Step) -> None:
        """Order the start again, unless the query lacks the slots for it by now."""
        if step.may_start:
            self.enter(step)
        else:
            step.wait_for_resources()

    def execute(self, event: ev.QueryStarted, step: Step) -> None:
        """Take in that it runs, with the count that was ordered or another one."""
        target = step.record.target
        step.started(event)
        if target is not None and event.partitions != target:
            step.record.failed_move.failed(target, step.now)
            step.close_rescale("exception_occurred")
        step.close_rescale("succeeded")
        step.execute()

    def wait_on(self, event: ev.ActionFailed, step: Step) -> None:
        """Wait on: the shim continues with the old count, and says so by an event of its own."""
        if step.order is not None and step.order.kind == "start":
            step.close_rescale("exception_occurred")
            self.moving_until = None

    reactions: ClassVar[Reactions] = {
        **State.reactions,
        ev.QuerySubmitted: "the answer is on its way",
        ev.QueryStarted: execute,
        ev.QueryProgress: "it is about a batch before the failure",
        ev.ActionDone: "the query is started when it says so",
        ev.ActionFailed: wait_on,
        inner.Recovered: order_the_start_again,
        inner.BoundsChanged: open_the_next_record,
    }
