"""One query's machine: every event about a query passes through here to the query's state.

`INTAKE` has the reactions that do not depend on the state; the state's own table has the rest. As a rule,
everything due by now is done first: then the state reached by that reacts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import define, evolve

from spark_elastic.core import events as ev
from spark_elastic.core.bounds.requirements import Requirements
from spark_elastic.core.bounds.shares import Claim
from spark_elastic.core.events import ExecutorsUsed, StageCompleted
from spark_elastic.core.failures.strategy import NoRestart
from spark_elastic.core.query import internal_events as inner
from spark_elastic.core.query.executing import Executing
from spark_elastic.core.query.record import Checkpoint, Failures, Moves, QueryRecord, State
from spark_elastic.core.query.restarting import Restarting
from spark_elastic.core.query.sources import bound_sources, repeat_bounds
from spark_elastic.core.query.states import Canceling, Created, CreatingExecutionGraph, Failing, Finished
from spark_elastic.core.query.step import Step, strategy_of
from spark_elastic.core.query.stop_with_savepoint import StopWithSavepoint
from spark_elastic.core.query.waiting_for_resources import WaitingForResources
from spark_elastic.core.rescale.concurrency import MoveQueue
from spark_elastic.core.rescale.history import History
from spark_elastic.core.settings import CoreSettings
from spark_elastic.core.turn import Turn

STATES: Mapping[str, type[State]] = {
    state.name: state
    for state in (
        Created,
        WaitingForResources,
        CreatingExecutionGraph,
        Executing,
        StopWithSavepoint,
        Restarting,
        Failing,
        Canceling,
        Finished,
    )
}


@define
class QueryMachine:
    """One query. `handle` is the only way in."""

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
            # For a running query the time of its last move is unknown.
            moves=Moves(moved=facts.stateful and info.run_state != "held"),
            failures=Failures(
                strategy=strategy_of(facts, own or settings), recovering=info.run_state == "failed"
            ),
            partitions=partitions,
            checkpoint=Checkpoint.found(facts, own or settings),
            history=History(limit=settings.history_size),
            settings=own,
        )
        return cls(record)

    @property
    def is_finished(self) -> bool:
        """Return whether the query has ended."""
        return self.record.state.final

    def handle(self, event: inner.QueryInput, turn: Turn) -> None:
        """React to an event about this query, and then update its place in the queue."""
        record = self.record
        step = Step(record, turn, STATES)
        take_in(event, step)
        step.drop_original()
        state = record.state
        turn.moves.look(
            record.facts.query, moving=state.moving_until is not None, candidate=state.candidate(record)
        )

    def keep_timer(self, turn: Turn) -> None:
        """Set or cancel the timer to match what is due next, once all queries have processed the event.

        A wait belongs to the state that set it, and ends with that state.
        """
        record = self.record
        due, timer = record.due, record.timer
        if timer is not None and timer.at != due:
            turn.cancel_timer(timer)
            record.timer = timer = None
        if due is not None and timer is None:
            record.timer = turn.set_timer(due, record.facts.query)


# ---- Questions of the scheduler about all queries of an application together


Machines = Mapping[str, QueryMachine]


def name_of(machines: Machines, query: str) -> str | None:
    """Return the name of a query, None if it has no name or is unknown."""
    machine = machines.get(query)
    return None if machine is None else machine.record.facts.name


def live(machines: Machines) -> tuple[str, ...]:
    """Return the queries that have not ended."""
    return tuple(query for query, machine in machines.items() if not machine.is_finished)


def live_requirements(machines: Machines) -> Iterator[Requirements]:
    """Yield the requirements of the live queries."""
    return (machine.record.requirements for machine in machines.values() if not machine.is_finished)


def restarts(machines: Machines) -> bool:
    """Return whether any live query has settings of its own that restart it after a failure."""
    own = (machine.record.settings for machine in machines.values() if not machine.is_finished)
    return any(settings is not None and not isinstance(settings.restart, NoRestart) for settings in own)


def claims(machines: Machines, changed: Mapping[str, Requirements]) -> Iterator[Claim]:
    """Yield the claims on slots; `changed` has new requirements of some queries."""
    for query, machine in machines.items():
        standing = machine.record.standing
        if standing is not None:
            wanted = changed.get(query, machine.record.requirements)
            yield Claim(query=query, requirements=wanted, standing=standing)


def oldest_finished(machines: Machines, kept: int) -> list[str]:
    """Return all finished queries but the `kept` latest ones, which may still be looked up."""
    finished = [query for query, machine in machines.items() if machine.is_finished]
    if len(finished) <= kept:
        return []
    finished.sort(key=lambda query: machines[query].record.state.entered)
    return finished[:-kept]


def validate(machines: Machines, moves: MoveQueue) -> None:
    """Check each query, and that the queue knows all moves. Raises AssertionError."""
    for query, machine in machines.items():
        assert machine.record.facts.query == query
        machine.record.validate()
    states = {query: machine.record.state for query, machine in machines.items()}
    candidates = {query: state.candidate(machines[query].record) for query, state in states.items()}
    moves.validate(
        {query for query, state in states.items() if state.moving_until is not None},
        {query: candidate for query, candidate in candidates.items() if candidate is not None},
    )


# ---- Reactions to the events about a query


def take_in(event: inner.QueryInput, step: Step) -> None:
    """Handle an event as the tables say."""
    INTAKE.get(type(event), in_time)(event, step)


def in_time(event: inner.QueryInput, step: Step) -> None:
    """React after everything due by now."""
    step.catch_up()
    step.react(event)


def at_once(event: inner.QueryInput, step: Step) -> None:
    """React before anything due: the run ended before that, or the event has no consequence yet."""
    step.react(event)


def of_this_run(event: ev.BatchPlanned | ev.QueryProgress | ev.QueryIdle, step: Step) -> None:
    """Ignore late events of a run that has ended: another one exists by now."""
    step.catch_up()
    if event.run == step.record.run:
        step.react(event)


def end_of_this_run(event: ev.QueryFailed | ev.QueryTerminated, step: Step) -> None:
    """Ignore the end of another run; after the end of this one no wait is left."""
    if event.run == step.record.run:
        step.react(event)


def timer(event: ev.TimerFired, step: Step) -> None:
    """Ignore a timer that was canceled while it fired."""
    record = step.record
    if record.timer is not None and event.timer == record.timer.id:
        record.timer = None
        in_time(event, step)


def outcome(event: ev.ActionDone | ev.ActionFailed, step: Step) -> None:
    """Mark the order as answered before the state follows its outcome."""
    step.catch_up()
    step.answered(event)
    step.react(event)


def begun(event: inner.Begun, step: Step) -> None:
    """Bound the sources before the first micro-batch."""
    record = step.record
    bound_sources(record, None, record.requirements, step.turn, step.settings, found=event.found)
    _with_share(event, step)


def slots(event: inner.SlotsChanged, step: Step) -> None:
    """Ignore changes of the slots that make no difference: with many queries most do not."""
    record = step.record
    if record.state.lets_pass(record, step.turn):
        record.shares.known = record.shares.now
        return
    _may_try_again(step)
    step.catch_up()
    _with_share(event, step)


def bounds(event: inner.BoundsChanged, step: Step) -> None:
    """Put the requirements in force before the state follows them."""
    record, turn = step.record, step.turn
    bound_sources(record, record.requirements, event.requirements, turn, step.settings)
    step.catch_up()
    record.requirements = event.requirements
    record.shares.give(event.share, turn.now)
    _may_try_again(step)
    record.history.bounds_changed(turn.now, slots=record.shares.now.slots, partitions=record.partitions)
    _with_share(event, step)


def recovered(event: inner.Recovered, step: Step) -> None:
    """Follow what a snapshot shows: another run, events that were missed, or nothing new.

    A missed event is passed to the state as the event that it was. If none was missed, the state repeats the
    orders that may not have arrived. That is safe: a rescale to the count in force costs nothing. Ids
    continue, so the late outcome of an old order reaches the query that it belongs to, or none.
    """
    record, info = step.record, event.info
    if info is None or info.run != record.run:
        return step.react(inner.Superseded())
    state = record.state
    step.shown(info)
    saving = [order.request for order in step.give_up("savepoint") if order.request is not None]
    record.orders.keeping.clear()
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
    for request in saving:  # a client may be waiting for it
        step.report("saving_again", before=record.partitions)
        step.react(evolve(request, id=step.turn.cause, at=step.now, by="spark-elastic"))


def _may_try_again(step: Step) -> None:
    """Allow another attempt at what has failed before."""
    record = step.record
    record.moves.failed.may_try_again()
    record.failures.batches.changed(step.settings.max_checkpoint_failures)


def _with_share(event: inner.QueryInput, step: Step) -> None:
    """React with a share of the slots that the state may not know yet."""
    step.report_share()
    step.react(event)
    step.record.shares.known = step.record.shares.now


INTAKE: Mapping[type[Any], Callable[[Any, Step], None]] = {
    ev.BatchPlanned: of_this_run,
    ev.QueryProgress: of_this_run,
    ev.QueryIdle: of_this_run,
    ev.QueryFailed: end_of_this_run,
    ev.QueryTerminated: end_of_this_run,
    StageCompleted: at_once,
    ExecutorsUsed: at_once,
    ev.ActionDone: outcome,
    ev.ActionFailed: outcome,
    ev.TimerFired: timer,
    inner.Begun: begun,
    inner.SlotsChanged: slots,
    inner.BoundsChanged: bounds,
    inner.Recovered: recovered,
    inner.Superseded: at_once,
}
"""Other events are handled `in_time`."""
