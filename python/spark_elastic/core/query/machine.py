"""One query's machine: what happens to a query goes through here to the state that it is in."""

from __future__ import annotations

from attrs import define

from spark_elastic.core import events as ev
from spark_elastic.core.bounds.requirements import Requirements
from spark_elastic.core.query import internal_events as inner
from spark_elastic.core.query.created import Created
from spark_elastic.core.query.deciding import strategy_of
from spark_elastic.core.query.intake import take_in
from spark_elastic.core.query.record import QueryRecord
from spark_elastic.core.query.step import Step
from spark_elastic.core.rescale.history import History
from spark_elastic.core.settings import CoreSettings
from spark_elastic.core.turn import Turn


@define
class QueryMachine:
    """One query. `handle` is the only door."""

    record: QueryRecord

    @classmethod
    def found(
        cls,
        info: ev.QueryInfo,
        at: int,
        settings: CoreSettings,
        own: CoreSettings | None,
        requirements: Requirements,
    ) -> QueryMachine:
        """Take up a query as a snapshot shows it; one that was just submitted is held.

        `settings` are those of the application, `own` those of the query, None if it has no others.
        """
        facts = info.facts
        partitions = info.partitions
        if partitions is None and facts.stateful:
            partitions = facts.checkpoint_partitions
        if partitions is None and info.run_state == "running":
            partitions = facts.session_partitions
        record = QueryRecord(
            facts=facts,
            run=info.run,
            state=Created(entered=at, failure=info.failure),
            requirements=requirements,
            declared=requirements,
            run_state=info.run_state,
            recovering=info.run_state == "failed",
            # Nobody knows when the state of one that runs was moved.
            moved=facts.stateful and info.run_state != "held",
            partitions=partitions,
            provider=facts.provider,
            checkpoint_format=facts.checkpoint_format,
            history=History(limit=settings.history_size),
            settings=own,
            strategy=strategy_of(facts, own or settings),
        )
        return cls(record)

    @property
    def is_finished(self) -> bool:
        """Say whether nothing more can happen to the query."""
        return self.record.state.final

    def handle(self, event: inner.QueryInput, turn: Turn) -> None:
        """React to what concerns this query; its place in the queue is in step afterwards."""
        record = self.record
        take_in(event, Step(record, turn))
        state = record.state
        turn.moves.look(
            record.facts.query, moving=state.moving_until is not None, candidate=state.candidate(record)
        )

    def keep_timer(self, turn: Turn) -> None:
        """Bring the timer in step with what the state waits for: it is when all have heard of the event."""
        record = self.record
        due, timer = record.state.due, record.timer
        if timer is not None and timer.at != due:
            turn.cancel_timer(timer)
            record.timer = timer = None
        if due is not None and timer is None:
            record.timer = turn.set_timer(due, record.facts.query)
