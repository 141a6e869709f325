"""What a query does about each event whatever state it is in; the state's own table has the rest.

As a rule all that is due by now is done first: then the state of then reacts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from spark_elastic.core import events as ev
from spark_elastic.core.bounds.sources import bound_sources, repeat_bounds
from spark_elastic.core.query import internal_events as inner
from spark_elastic.core.query.record import PendingOrder
from spark_elastic.core.query.step import Step
from spark_elastic.core.task_events import ExecutorsUsed, StageCompleted


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
        record.known_share = record.share
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
    record.give(event.share, turn.now)
    _may_try_again(step)
    record.history.bounds_changed(turn.now, slots=record.share.slots, partitions=record.partitions)
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
    record.keeping.clear()
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
    record.failed_move.may_try_again()
    record.failed_batches.changed(step.settings.max_checkpoint_failures)


def _with_share(event: inner.QueryInput, step: Step) -> None:
    """React with another share of the slots than the state was last told of."""
    step.report_share()
    step.react(event)
    step.record.known_share = step.record.share


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
