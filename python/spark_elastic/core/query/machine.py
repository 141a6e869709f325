"""One query's machine: hands what concerns the query to the state that it is in.

Whatever time has brought due is done before the event at hand.
"""

from __future__ import annotations

from attrs import define

from spark_elastic.core import events as ev
from spark_elastic.core.bounds.requirements import Requirements
from spark_elastic.core.bounds.sources import bound_sources, repeat_bounds
from spark_elastic.core.query import internal_events as inner
from spark_elastic.core.query.created import Created
from spark_elastic.core.query.deciding import strategy_of
from spark_elastic.core.query.record import QueryRecord
from spark_elastic.core.query.step import Step
from spark_elastic.core.rescale.history import History
from spark_elastic.core.settings import CoreSettings
from spark_elastic.core.task_events import ExecutorsUsed, StageCompleted
from spark_elastic.core.turn import Turn

_WITH_A_SHARE = (inner.Begun, inner.SlotsChanged, inner.BoundsChanged)


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
        if partitions is None and info.phase == "running":
            partitions = facts.session_partitions
        record = QueryRecord(
            facts=facts,
            run=info.run,
            state=Created(entered=at, failure=info.failure),
            requirements=requirements,
            declared=requirements,
            gate=info.phase,
            recovering=info.phase == "failed",
            # Nobody knows when the state of one that runs was moved.
            moved=facts.stateful and info.phase != "held",
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
        if isinstance(event, StageCompleted):
            record.shuffles.stage_read_shuffle()
            record.measurements.add_stage(event)  # nothing follows from it before its micro-batch is through
            return
        if isinstance(event, ExecutorsUsed):
            record.history.used(event.executors)
            return
        if isinstance(event, inner.SlotsChanged) and record.state.lets_pass(record, turn):
            record.known_share = record.share
            return  # as most do where there are many queries
        step = Step(record, turn)
        match event:
            case inner.Recovered():
                self._recovered(event, step)
            case inner.SettingsChanged(settings=settings):
                step.catch_up()
                step.settings_changed(settings)
            # Of a run that is over the news come late: another one is there by now.
            case ev.QueryFailed() | ev.QueryTerminated() if event.run != record.run:
                pass
            case ev.QueryProgress() | ev.QueryIdle() if event.run != record.run:
                step.catch_up()
            # A timer that was cancelled while it fired is no longer known.
            case ev.TimerFired() if record.timer is None or event.timer != record.timer.id:
                pass
            case _:
                self._prepare(event, step)
                has_share = isinstance(event, _WITH_A_SHARE)
                if has_share:
                    step.report_share()
                step.react(event)
                if has_share:
                    record.known_share = record.share
        state = record.state
        turn.moves.look(
            record.facts.query, moving=state.moving_until is not None, candidate=state.candidate(record)
        )

    def _prepare(self, event: inner.QueryInput, step: Step) -> None:
        """Take in what the event says whatever the state is."""
        record, turn = self.record, step.turn
        match event:
            case ev.QueryProgress():  # the most frequent first
                step.catch_up()
            case ev.QueryFailed() | ev.QueryTerminated() | inner.Superseded():
                pass  # What was due is not done any more: the run has ended before.
            case inner.Begun():
                bound_sources(record, None, record.requirements, turn, step.settings, found=event.found)
            case inner.SlotsChanged():
                # What has failed before may be tried again.
                record.failed_target = None
                record.failed_batches.changed(step.settings.max_checkpoint_failures)
                step.catch_up()
            case inner.BoundsChanged(requirements=requirements):
                bound_sources(record, record.requirements, requirements, turn, step.settings)
                step.catch_up()
                record.requirements = requirements
                record.give(event.share, turn.now)
                record.failed_target = None
                record.failed_batches.changed(step.settings.max_checkpoint_failures)
                record.history.bounds_changed(
                    turn.now, slots=record.share.slots, partitions=record.partitions
                )
            case ev.TimerFired():
                record.timer = None
                step.catch_up()
            case ev.ActionDone() | ev.ActionFailed():
                step.catch_up()
                step.answered(event)
            case _:
                step.catch_up()

    def _recovered(self, event: inner.Recovered, step: Step) -> None:
        """Follow what a snapshot shows: another run, what has happened unheard, or nothing new.

        What was missed is handed to the state as the event that it was. If nothing was, the state repeats
        the orders of which nobody knows whether they have arrived.
        """
        record, info = self.record, event.info
        if info is None or info.run != record.run:
            return step.react(inner.Superseded())
        state = record.state
        step.shown(info)
        # What became of it may have got lost, and others are refused until it is known.
        step.give_up("savepoint")
        missed = step.missed(info)
        if missed is None or state.leaves_out(missed):
            step.set_orders_lost(info.partitions)
            step.catch_up()
            if record.state is state:
                step.react(event)
        elif state.handles(missed):
            step.react(missed)
        else:
            return step.react(inner.Superseded())
        repeat_bounds(record, step.turn, step.settings)

    def keep_timer(self, turn: Turn) -> None:
        """Bring the timer in step with what the state waits for: it is when all have heard of the event."""
        record = self.record
        due, timer = record.state.due, record.timer
        if timer is not None and timer.at != due:
            turn.cancel_timer(timer)
            record.timer = timer = None
        if due is not None and timer is None:
            record.timer = turn.set_timer(due, record.facts.query)
