"""Gives the orders that limit the rows of micro-batches, and lifts limits that nobody wants any more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import define, field

from spark_elastic.core import events as ev
from spark_elastic.core.actions import LimitRows, SourceLimit, StartQuery
from spark_elastic.core.events import SourceFacts
from spark_elastic.core.policies.memory import QueryMemory
from spark_elastic.core.policies.view import QueryMetrics
from spark_elastic.core.query.record import QueryRecord
from spark_elastic.core.turn import Turn

# Shares the rows that a micro-batch is to read among the sources that can be told so.


_LEAST_PART = 0.5
"""A source gets this part of an equal share at least: one that had nothing may have something next."""
_CHANGE = 0.25
"""A limit that differs by less stays as it is."""


def source_limits(
    rows: int | None, sources: Sequence[SourceFacts], read: Sequence[int]
) -> tuple[SourceLimit, ...]:
    """Return a limit for each source, none at all if there is nothing to limit.

    `rows` are those of a whole micro-batch (1 or more), None: all that there are. `read` are the rows that
    the last one has read of each source: those that can't be limited take their part as they did.
    """
    limitable = sum(source.limitable for source in sources)
    if rows is None or not limitable:
        return ()
    counts = [*read, *[0] * len(sources)][: len(sources)]
    total = sum(counts)
    parts = [count / total if total else 1 / len(sources) for count in counts]
    least = _LEAST_PART / len(sources)
    return tuple(
        SourceLimit(rows=max(1, round(rows * max(part, least))) if source.limitable else 0)
        for source, part in zip(sources, parts, strict=True)
    )


def differ(before: Sequence[SourceLimit], after: Sequence[SourceLimit]) -> bool:
    """Say whether limits are so much other ones that it is worth an order."""
    if len(before) != len(after):
        return True
    return any(
        abs(new.rows - old.rows) > _CHANGE * max(new.rows, old.rows)
        for old, new in zip(before, after, strict=True)
    )


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
    record.orders.put_aside(action, "rows_not_limited")
    order = LimitRows(id=action, cause=turn.cause, query=query, run=record.run, sources=limits)
    starts = (
        place
        for place, action in enumerate(turn.actions)
        if isinstance(action, StartQuery) and action.query == query
    )
    # What lets a query begin comes after what its first micro-batch is to go by.
    turn.actions.insert(next(starts, len(turn.actions)), order)
    return action
