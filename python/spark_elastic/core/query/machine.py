"""One query's machine: what happens to a query goes through here to the state that it is in.

What a query does about an event whatever state it is in stands in `INTAKE`; the state's own table has the
rest. As a rule all that is due by now is done first: then the state of then reacts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import define

from spark_elastic.core import events as ev
from spark_elastic.core.bounds.requirements import Requirements
from spark_elastic.core.bounds.shares import Claim
from spark_elastic.core.events import ExecutorsUsed, StageCompleted
from spark_elastic.core.failures.strategy import NoRestart
from spark_elastic.core.query import internal_events as inner
from spark_elastic.core.query.executing import Executing
from spark_elastic.core.query.record import Checkpoint, Failures, Moves, PendingOrder, QueryRecord, State
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
            # Nobody knows when the state of one that runs was moved.
            moves=Moves(moved=facts.stateful and info.run_state != "held"),
            failures=Failures(
                strategy=strategy_of(facts, own or settings), recovering=info.run_state == "failed"
            ),
            partitions=partitions,
            checkpoint=Checkpoint(provider=facts.provider, format=facts.checkpoint_format),
            history=History(limit=settings.history_size),
            settings=own,
        )
        return cls(record)

    @property
    def is_finished(self) -> bool:
        """Say whether nothing more can happen to the query."""
        return self.record.state.final

    def handle(self, event: inner.QueryInput, turn: Turn) -> None:
        """React to what concerns this query; its place in the queue is in step afterwards."""
        record = self.record
        take_in(event, Step(record, turn, STATES))
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


# What the scheduler asks of all queries of an application together


Machines = Mapping[str, QueryMachine]


def name_of(machines: Machines, query: str) -> str | None:
    """Return what a query is called, None if it has no name or is not known."""
    machine = machines.get(query)
    return None if machine is None else machine.record.facts.name


def live(machines: Machines) -> tuple[str, ...]:
    """Return the queries that are not over."""
    return tuple(query for query, machine in machines.items() if not machine.is_finished)


def live_requirements(machines: Machines) -> Iterator[Requirements]:
    """Give what these may have."""
    return (machine.record.requirements for machine in machines.values() if not machine.is_finished)


def restarts(machines: Machines) -> bool:
    """Say whether one of these has settings of its own by which it is started again after a failure."""
    own = (machine.record.settings for machine in machines.values() if not machine.is_finished)
    return any(settings is not None and not isinstance(settings.restart, NoRestart) for settings in own)


def claims(machines: Machines, changed: Mapping[str, Requirements]) -> Iterator[Claim]:
    """Give who wants slots, where some have other requirements from now on."""
    for query, machine in machines.items():
        standing = machine.record.standing
        if standing is not None:
            wanted = changed.get(query, machine.record.requirements)
            yield Claim(query=query, requirements=wanted, standing=standing)


def oldest_finished(machines: Machines, kept: int) -> list[str]:
    """Return the finished ones that are too many: by when they finished, the latest may be looked for."""
    finished = [query for query, machine in machines.items() if machine.is_finished]
    if len(finished) <= kept:
        return []
    finished.sort(key=lambda query: machines[query].record.state.entered)
    return finished[:-kept]


def validate(machines: Machines, moves: MoveQueue) -> None:
    """Check each query, and that who moves its state is known. Raises AssertionError."""
    for query, machine in machines.items():
        assert machine.record.facts.query == query
        machine.record.validate()
    states = {query: machine.record.state for query, machine in machines.items()}
    candidates = {query: state.candidate(machines[query].record) for query, state in states.items()}
    moves.validate(
        {query for query, state in states.items() if state.moving_until is not None},
        {query: candidate for query, candidate in candidates.items() if candidate is not None},
    )


# What happens to a query


def take_in(event: inner.QueryInput, step: Step) -> None:
    """Do about an event what the tables say."""
    INTAKE.get(type(event), in_time)(event, step)


def in_time(event: inner.QueryInput, step: Step) -> None:
    """React after what is due by now."""
    step.catch_up()
    step.react(event)


def at_once(event: inner.QueryInput, step: Step) -> None:
    """React before what is due: the run has ended before that, or nothing follows from the event yet."""
    step.react(event)


def of_this_run(event: ev.QueryProgress | ev.QueryIdle, step: Step) -> None:
    """Leave out what comes late of a run that is over: another one is there by now."""
    step.catch_up()
    if event.run == step.record.run:
        step.react(event)


def end_of_this_run(event: ev.QueryFailed | ev.QueryTerminated, step: Step) -> None:
    """Leave out the end of another run; with this one nothing is due any more."""
    if event.run == step.record.run:
        step.react(event)


def timer(event: ev.TimerFired, step: Step) -> None:
    """Leave out a timer that was canceled while it fired."""
    record = step.record
    if record.timer is not None and event.timer == record.timer.id:
        record.timer = None
        in_time(event, step)


def outcome(event: ev.ActionDone | ev.ActionFailed, step: Step) -> None:
    """Take the order for answered before the state follows its outcome."""
    step.catch_up()
    step.answered(event)
    step.react(event)


def begun(event: inner.Begun, step: Step) -> None:
    """Bound the sources before the first micro-batch."""
    record = step.record
    bound_sources(record, None, record.requirements, step.turn, step.settings, found=event.found)
    _with_share(event, step)


def slots(event: inner.SlotsChanged, step: Step) -> None:
    """Let slots pass that make no difference, as most do where there are many queries."""
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
    """Follow what a snapshot shows: another run, what has happened unheard, or nothing new.

    What was missed is handed to the state as the event that it was. If nothing was, the state repeats
    the orders of which nobody knows whether they have arrived.
    """
    record, info = step.record, event.info
    if info is None or info.run != record.run:
        return step.react(inner.Superseded())
    state = record.state
    step.shown(info)
    saving = [order for order in step.give_up("savepoint") if order.folder is not None]
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
    for order in saving:
        _save_again(order, step)


def _save_again(order: PendingOrder, step: Step) -> None:
    """Ask once more for a savepoint of which nobody knows what became: somebody may be waiting for it."""
    step.report("saving_again", before=step.record.partitions)
    step.react(
        ev.SavepointRequested(
            id=step.turn.cause,
            at=step.now,
            query=step.record.facts.query,
            by="spark-elastic",
            target=order.folder,
            within=order.within,
        )
    )


def _may_try_again(step: Step) -> None:
    """Let what has failed before be tried again."""
    record = step.record
    record.moves.failed.may_try_again()
    record.failures.batches.changed(step.settings.max_checkpoint_failures)


def _with_share(event: inner.QueryInput, step: Step) -> None:
    """React with another share of the slots than the state was last told of."""
    step.report_share()
    step.react(event)
    step.record.shares.known = step.record.shares.now


INTAKE: Mapping[type[Any], Callable[[Any, Step], None]] = {
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
"""What is not here is reacted to `in_time`."""
