"""The order to keep a text beside the checkpoint of a query."""

from __future__ import annotations

from typing import Literal

from spark_elastic.core.actions import KeepText
from spark_elastic.core.query.record import QueryRecord
from spark_elastic.core.turn import Turn

_FAILED = {"bounds": "bounds_not_kept", "batches": "batches_not_kept", "store": "store_not_kept"}


def keep_text(
    record: QueryRecord, name: Literal["bounds", "batches", "store"], text: str | None, turn: Turn
) -> str:
    """Order that a text outlives the driver, None: that none does; return the id of the order."""
    action = turn.next_action()
    record.note_keeping(action, _FAILED[name])
    turn.emit(KeepText(id=action, cause=turn.cause, query=record.facts.query, name=name, text=text))
    return action
