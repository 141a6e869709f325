"""Gives the orders that limit the rows of micro-batches, and lifts limits that nobody wants any more."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field

from spark_elastic.core import events as ev
from spark_elastic.core.actions import LimitRows, SourceLimit, StartQuery
from spark_elastic.core.policies.admission import differ, source_limits
from spark_elastic.core.policies.memory import QueryMemory
from spark_elastic.core.policies.view import QueryMetrics
from spark_elastic.core.query.record import QueryRecord
from spark_elastic.core.turn import Turn


@define
class RowLimits:
    """The runs, by query, whose micro-batches a policy has limited that no longer decides about them."""

    _to_release: dict[str, str] = field(factory=dict)

    def lost(self) -> None:
        """Take in that the shim has lifted all limits."""
        self._to_release.clear()

    def forget(self, query: str, memory: QueryMemory) -> bool:
        """Take in that nobody decides about a query any more; say whether there is a limit to lift."""
        if memory.throttled:
            self._to_release[query] = memory.run
        return bool(memory.throttled)

    def release(self, records: Mapping[str, QueryRecord], turn: Turn) -> None:
        """Lift the limits of queries that were let go; `records` are those of the queries that live."""
        for query, run in self._to_release.items():
            if query in records and records[query].run == run:
                _order(records[query], (), turn)
        self._to_release.clear()

    @staticmethod
    def failed(event: ev.ActionFailed, memory: QueryMemory) -> None:
        """Take in that an order has failed: what Spark cannot do now, it cannot do later."""
        if event.action == memory.throttle:
            memory.throttled, memory.unlimited = (), True

    @staticmethod
    def limit(
        query: QueryMetrics, record: QueryRecord, memory: QueryMemory, wanted: int | None, turn: Turn
    ) -> None:
        """Let micro-batches of a query read as much as is wanted at most, and say so where there is more."""
        limits = () if memory.unlimited else source_limits(wanted, query.facts.sources, memory.read)
        if differ(memory.throttled, limits):
            memory.throttled = limits
            memory.throttle = _order(record, limits, turn)
        waits = query.behind or 0
        if wanted is None or not limits or waits == 0:
            memory.held_back = False
        elif not memory.held_back and waits > wanted:
            memory.held_back = True
            turn.report(
                "autoscale_backpressure",
                query=query.query,
                before=query.slots,
                most_rows=wanted,
                behind=waits,
            )


def _order(record: QueryRecord, limits: tuple[SourceLimit, ...], turn: Turn) -> str:
    query, action = record.facts.query, turn.next_action()
    record.put_aside(action, "rows_not_limited")
    order = LimitRows(id=action, cause=turn.cause, query=query, run=record.run, sources=limits)
    starts = (
        place
        for place, action in enumerate(turn.actions)
        if isinstance(action, StartQuery) and action.query == query
    )
    # What lets a query begin comes after what its first micro-batch is to go by.
    turn.actions.insert(next(starts, len(turn.actions)), order)
    return action
