"""What must have happened to a query, judging by what a snapshot shows of it."""

from __future__ import annotations

from spark_elastic.core.events import (
    Event,
    QueryFailed,
    QueryInfo,
    QueryStarted,
    QueryStopped,
    QuerySubmitted,
)
from spark_elastic.core.query.creating_execution_graph import CreatingExecutionGraph
from spark_elastic.core.query.record import Record
from spark_elastic.core.query.state import State
from spark_elastic.core.turn import Turn


def missed(record: Record, state: State, info: QueryInfo, turn: Turn) -> Event | None:
    """Return the event that nobody has heard of, None if there need not have been any."""
    query, run, cause, now = info.facts.query, info.run, turn.cause, turn.now
    if info.phase == "failed" and info.failure is not None:
        # The same failure again can be another one: better one attempt too many than one too few.
        if record.gate == "failed" and info.failure in (known.failure for known in record.exceptions[:1]):
            return None
        return QueryFailed(id=cause, at=now, query=query, run=run, failure=info.failure)
    if info.phase == record.gate or (info.phase == "running" and _is_on_its_way(record, state, info)):
        return None
    if info.phase == "running":
        return QueryStarted(id=cause, at=now, query=query, run=run, partitions=info.partitions or 0)
    if info.phase == "stopped":
        return QueryStopped(id=cause, at=now, query=query, run=run, action="")
    return QuerySubmitted(id=cause, at=now, facts=info.facts, run=run)


def _is_on_its_way(record: Record, state: State, info: QueryInfo) -> bool:
    """Say whether a start that was ordered may not be through: a query shows as running from the order on."""
    ordered = isinstance(state, CreatingExecutionGraph)
    return ordered and record.target is not None and record.target != info.partitions
