"""One query's machine: hands events to the state that the query is in.

Whatever time has brought due is done before the event at hand.
"""

from __future__ import annotations

from attrs import define

from spark_elastic.core.events import (
    ActionDone,
    ActionFailed,
    Event,
    QueryFailed,
    QueryInfo,
    QueryTerminated,
    SavepointRequested,
    SavepointTaken,
)
from spark_elastic.core.failures.strategy import new_strategy
from spark_elastic.core.history import History
from spark_elastic.core.query._step import MOST_ORDERS, Step
from spark_elastic.core.query.created import Created
from spark_elastic.core.query.executing import Executing
from spark_elastic.core.query.finished import Finished
from spark_elastic.core.query.missed import missed
from spark_elastic.core.query.record import Record
from spark_elastic.core.query.restarting import Restarting
from spark_elastic.core.query.state import State
from spark_elastic.core.query.transitions import TRANSITIONS
from spark_elastic.core.requirements import Requirements
from spark_elastic.core.settings import CoreSettings
from spark_elastic.core.turn import Timer, Turn

_OUTCOMES = (ActionDone, ActionFailed)
_ENDS = (QueryFailed, QueryTerminated)


@define
class QueryMachine:
    """A query's record and its state."""

    record: Record
    state: State
    requirements: Requirements
    timer: Timer | None = None

    @classmethod
    def found(
        cls, info: QueryInfo, at: int, settings: CoreSettings, requirements: Requirements
    ) -> QueryMachine:
        """Take up a query as a snapshot shows it; one that was just submitted is held."""
        facts = info.facts
        partitions = info.partitions
        if partitions is None and facts.stateful:
            partitions = facts.checkpoint_partitions
        if partitions is None and info.phase == "running":
            partitions = facts.session_partitions
        record = Record(
            facts=facts,
            run=info.run,
            gate=info.phase,
            partitions=partitions,
            provider=facts.provider,
            checkpoint_format=facts.checkpoint_format,
            history=History(limit=settings.history_size),
            # Queries that fail together are not to come back together; the same query always draws the same.
            strategy=new_strategy(settings.restart, int.from_bytes(facts.query.encode()[-8:], "big")),
        )
        return cls(record, Created(entered=at, failure=info.failure), requirements)

    @property
    def is_finished(self) -> bool:
        """Say whether nothing more can happen to the query."""
        return type(self.state) is Finished

    def begin(self, turn: Turn) -> None:
        """Enter the first state."""
        Step(self, turn).run(self.state.enter)

    def handle(self, event: Event, turn: Turn) -> None:
        """React to an event about this query."""
        step = Step(self, turn)
        step.catch_up()
        if isinstance(event, _ENDS) and event.run != self.record.run:
            return  # a run that is over: its end came late, and another one is there by now
        if isinstance(event, _OUTCOMES):
            step.order = self.record.orders.pop(event.action, None)
            if isinstance(event, ActionFailed) and step.order is not None:
                step.report_failure(step.order, event.error)
        if isinstance(event, SavepointTaken):
            step.saved(event)
        if type(event) in self.state.handles:
            step.run(lambda step: self.state.on(event, step))
        elif type(event) not in self.state.ignores:
            step.report_unexpected(event)

    def found_again(self, info: QueryInfo | None, turn: Turn) -> bool:
        """Follow what a snapshot shows of this query; return False if it shows another run, or none.

        What has happened unheard is handed to the state as the event that was missed. If nothing has, the
        state repeats the orders of which nobody knows whether they have arrived.
        """
        if info is None or info.run != self.record.run:
            return False
        step = Step(self, turn)
        state = self.state
        event = missed(self.record, state, info, turn)
        if event is None or type(event) in state.ignores:
            step.set_orders_lost(info.partitions)
            step.catch_up()
            if self.state is state:
                step.run(lambda step: state.found_again(info, step))
            return True
        if type(event) in state.handles:
            step.run(lambda step: state.on(event, step))
            return True
        return False

    def resources_changed(self, turn: Turn) -> None:
        """React to another number of slots; what has failed before may be tried again.

        A query that runs and had all the slots that it could use, and still has, is not concerned: there is
        nothing to decide, and nothing that was said becomes wrong.
        """
        if isinstance(self.state, Executing) and not self._is_concerned(turn):
            self.state.slots_changed(turn.slots - turn.slots_before, turn.now)
            return
        self.record.failed_target = None
        step = Step(self, turn)
        step.catch_up()
        step.run(self.state.resources_changed)

    def _is_concerned(self, turn: Turn) -> bool:
        record, due = self.record, self.state.due
        fewest = min(turn.slots, turn.slots_before)
        return (
            fewest < self.requirements.desired
            or fewest < (record.partitions or 0)
            or record.partitions is None
            or record.failed_target is not None
            or record.history.open_record is not None
            or (due is not None and due <= turn.now)
        )

    def requirements_changed(self, requirements: Requirements, turn: Turn) -> None:
        """React to other bounds."""
        step = Step(self, turn)
        step.catch_up()
        self.requirements = requirements
        record = self.record
        record.failed_target = None
        record.history.bounds_changed(turn.now, slots=turn.slots, partitions=record.partitions)
        step.run(self.state.requirements_changed)

    def savepoint_requested(self, event: SavepointRequested, turn: Turn) -> None:
        """React to somebody who wants a savepoint, and maybe the end of the query."""
        step = Step(self, turn)
        step.catch_up()
        step.run(lambda step: self.state.savepoint_requested(event, step))

    def time_passed(self, turn: Turn) -> None:
        """React to the time alone."""
        Step(self, turn).catch_up()

    def supersede(self, turn: Turn) -> None:
        """End a query of which a newer run is there."""
        step = Step(self, turn)
        step.run(lambda step: step.end("superseded", "job_finished"))

    def validate(self) -> None:
        """Check all invariants of the query. Raises AssertionError."""
        record, state = self.record, self.state
        assert state.name in TRANSITIONS
        state.validate()
        record.history.validate()
        self.requirements.validate()
        assert record.target is None or record.target >= 1
        assert len(record.orders) <= MOST_ORDERS
        assert all(order.action == key for key, order in record.orders.items())
        due = state.due
        assert (self.timer is None) == (due is None)
        assert self.timer is None or self.timer.at == due
        if self.is_finished:
            assert not record.orders
            assert record.history.open_record is None
        if isinstance(state, Restarting):
            stopping = state.target is not None
            assert record.gate == ("running" if stopping else "failed")
            assert (record.paused_since is not None) == stopping
        if isinstance(state, Executing):
            assert record.gate == "running"
            assert record.paused_since is None
