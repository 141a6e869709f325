"""One event's way through one query: the world as its states see it, and the ways from state to state.

Guards around every transition: only along the table, never two in one reaction, and a state is entered
only after the reaction that led to it is over.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field

from spark_elastic.core import reasons
from spark_elastic.core.events import Failure
from spark_elastic.core.query.canceling import Canceling
from spark_elastic.core.query.creating_execution_graph import CreatingExecutionGraph
from spark_elastic.core.query.deciding import Deciding
from spark_elastic.core.query.executing import Executing
from spark_elastic.core.query.failing import Failing
from spark_elastic.core.query.finished import Finished
from spark_elastic.core.query.internal_events import QueryInput
from spark_elastic.core.query.restarting import Restarting
from spark_elastic.core.query.state import State
from spark_elastic.core.query.stop_with_savepoint import StopWithSavepoint
from spark_elastic.core.query.transitions import TRANSITIONS, IllegalTransitionError
from spark_elastic.core.query.waiting_for_resources import WaitingForResources
from spark_elastic.core.rescale.concurrency import PATIENCE_MS
from spark_elastic.core.rescale.history import TerminatedReason
from spark_elastic.core.sentences import fill
from spark_elastic.core.turn import Number

_MOST_STEPS = 20


@define
class Step(Deciding):
    """All that a state may look at and do about one event."""

    _entering: bool = field(default=False, init=False)

    # How a step runs

    def catch_up(self) -> None:
        """Do what is due by now."""
        for _ in range(_MOST_STEPS):
            due = self.record.state.due
            if due is None or due > self.now:
                return
            self.record.state.due_reached(self)
            self._arrive()
        raise IllegalTransitionError(f"{self.record.state.name} stays due")

    def react(self, event: QueryInput) -> None:
        """Let the state do what its table says, and enter whatever state that leads to."""
        state = self.record.state
        reaction = state.reactions.get(type(event))
        if reaction is None:
            self.report_unexpected(event)
        elif not isinstance(reaction, str):
            reaction(state, event, self)
            if self._entering:
                self._arrive()

    def _arrive(self) -> None:
        for _ in range(_MOST_STEPS):
            if not self._entering:
                return
            self._entering = False
            self.record.state.enter(self)
        raise IllegalTransitionError(f"no end of transitions, now in {self.record.state.name}")

    def _go(self, state: State) -> None:
        old = self.record.state
        if self._entering:
            raise IllegalTransitionError(f"{old.name} to {state.name} within another transition")
        if state.name not in TRANSITIONS[old.name]:
            raise IllegalTransitionError(f"{old.name} to {state.name} is not in the table")
        stayed = self.record.stayed_ms
        stayed[old.name] = stayed.get(old.name, 0) + self.now - old.entered
        self.record.state = state
        self._entering = True
        self.record.history.entered(state.name, self.now)

    # Where a state may go

    def wait_for_resources(self) -> None:
        """Go to WaitingForResources."""
        deadline = self.resource_deadline(self.now)
        manager = self.new_submission_manager()
        self._go(WaitingForResources(entered=self.now, deadline=deadline, manager=manager))

    def create_execution_graph(self, *, waited_ms: int = 0) -> None:
        """Go to CreatingExecutionGraph."""
        self._go(CreatingExecutionGraph(entered=self.now, waited_ms=waited_ms))

    def execute(self) -> None:
        """Go to Executing."""
        if self.record.facts.stateful:
            # The rescale is through, or off: an outcome that is still to come is none of this state's.
            self.give_up("rescale")
            self.record.target = None
        manager, self.record.manager = self.record.manager, None
        self._go(Executing(entered=self.now, manager=manager or self.new_executing_manager()))

    def move_state(self, target: int, *, overdue: bool) -> None:
        """Go to Restarting, for a rescale; one that is `overdue` need not be worth it."""
        until = self.now + PATIENCE_MS
        self._go(Restarting(entered=self.now, target=target, overdue=overdue, moving_until=until))

    def run_failed(self, failure: Failure, *, savepoint: str | None = None) -> None:
        """Go to Restarting with a backoff, or to Failing with an exception that names the `savepoint`."""
        judgement = self.judge(failure)
        if judgement.backoff_ms is None:
            message = None if savepoint is None else fill(reasons.SAVED_BEFORE, path=savepoint)
            self.fail(message)
        else:
            self.record.restarted += 1
            end = self.now + judgement.backoff_ms
            self._go(Restarting(entered=self.now, target=None, backoff_end=end))

    def fail(self, message: str | None = None) -> None:
        """Go to Failing; the query ends with the exception of its run, or with one that says `message`."""
        self._go(Failing(entered=self.now, message=message))

    def fail_without_resources(self, waited_ms: int) -> None:
        """Go to Failing; the query ends with an exception that says what it has waited for."""
        shortage = self.share.shortage
        assert shortage is not None
        reason = "failure_others_first" if shortage.ahead else "failure_no_resources"
        numbers: Mapping[str, Number] = {
            **shortage.numbers(),
            "waited_ms": waited_ms,
            "wait_ms": self.settings.resource_wait_ms,
            "advice": reasons.FEWER if self.settings.mode == "adaptive" else reasons.MORE,
        }
        self.report(reason, before=self.record.partitions, numbers=numbers)
        said = self.record.last_decision
        assert said is not None
        self.fail(said.message)

    def stop_with_savepoint(self, target: str | None, within: str | None, by: str) -> None:
        """Go to StopWithSavepoint, or publish that nobody said where the savepoint is to be."""
        folder = self.savepoint_folder(target)
        if folder is not None:
            numbers = {"target": folder, "by": by}
            self.report("stop_with_savepoint", before=self.record.partitions, numbers=numbers)
            self._go(StopWithSavepoint(entered=self.now, target=folder, within=within or folder))

    def cancel(self, by: str) -> None:
        """Go to Canceling, as asked for."""
        self.report("canceling", before=self.record.partitions, numbers={"by": by})
        self._go(Canceling(entered=self.now))

    def end(
        self, reason: str, terminated: TerminatedReason, numbers: Mapping[str, Number] | None = None
    ) -> None:
        """Go to Finished and let go of everything."""
        record = self.record
        for order in self.give_up():
            if order.kind == "savepoint" and not order.replaced:
                error = "the query has ended before it was complete"
                self.report("savepoint_failed", before=record.partitions, numbers={"error": error})
        self.report(reason, before=record.partitions, numbers=numbers)
        self.close_rescale(terminated)
        record.target = None
        self._go(Finished(entered=self.now))
