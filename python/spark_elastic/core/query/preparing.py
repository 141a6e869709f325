"""The orders that prepare a move of a query's state, and what the copy costs the query."""

from __future__ import annotations

from spark_elastic.core.actions import PrepareMove
from spark_elastic.core.query.record import PendingOrder, QueryRecord
from spark_elastic.core.rescale.gain import fit
from spark_elastic.core.rescale.situation import OWN_FORMAT
from spark_elastic.core.settings import CoreSettings
from spark_elastic.core.turn import Turn


def prepares_moves(record: QueryRecord, settings: CoreSettings) -> bool:
    """Return whether the next move of the query's state is prepared; one at a start never is."""
    checkpoint = record.checkpoint
    has_form = checkpoint.provider == "rocksdb" and checkpoint.format == OWN_FORMAT
    allowed = settings.prepare_moves and checkpoint.prepares_moves
    return allowed and has_form and record.run_state == "running"


def order_copy(record: QueryRecord, partitions: int, turn: Turn, settings: CoreSettings) -> str:
    """Order a copy of the state to another count, in place of an earlier one; return the id of the order.

    It gets the slots that the micro-batches leave empty, and at least one.
    """
    forget_copy(record)
    free = max(1, record.shares.now.slots - (record.partitions or 0))
    most = settings.max_copy_tasks
    action = _order(record, partitions, turn, free if most is None else min(most, free), settings)
    record.orders.add(PendingOrder(action=action.id, kind="prepare", target=partitions, at=turn.now))
    return action.id


def drop_copy(record: QueryRecord, turn: Turn, settings: CoreSettings) -> None:
    """Order that nothing is copied any more; nothing waits for the outcome."""
    assert record.partitions is not None
    forget_copy(record)
    _order(record, record.partitions, turn, 1, settings)


def forget_copy(record: QueryRecord) -> None:
    """Wait no longer for the outcome of a copy: another order replaces it, or the shim has dropped it."""
    pending = record.orders.pending
    for order in [order for order in pending.values() if order.kind == "prepare"]:
        del pending[order.action]


def usual_ms(record: QueryRecord, partitions: int) -> float | None:
    """Return how long a micro-batch takes with these partitions, None if none was measured."""
    measurements, slots = record.load.measurements, record.shares.now.slots
    if measurements.latest is None or slots < 1 or partitions < 1:
        return None
    return fit(measurements, record.checkpoint.provider).batch_ms(partitions, slots)


def _order(
    record: QueryRecord, partitions: int, turn: Turn, tasks: int, settings: CoreSettings
) -> PrepareMove:
    action = PrepareMove(
        id=turn.next_action(),
        cause=turn.cause,
        query=record.facts.query,
        run=record.run,
        partitions=partitions,
        tasks=tasks,
        bytes_per_second=settings.max_copy_rate or 0,
    )
    turn.emit(action)
    return action
