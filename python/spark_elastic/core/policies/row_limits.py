"""Orders limits on the rows of micro-batches, and lifts limits that no policy wants any more.

Without a policy there is no limit: the shim lifts all of them when another policy process begins
(`QueryControl.limitNothing`), and applies none while the policy is off (`QueryRun.limitsOfSources`).
"""

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

# ---- Divides the rows that a micro-batch should read among the sources that can be limited.


_LEAST_PART = 0.5
"""A source gets at least this part of an equal share: one without rows may have some next time."""
_CHANGE = 0.25
"""A limit stays as it is unless the new one differs by more than this part."""


def source_limits(
    rows: int | None, sources: Sequence[SourceFacts], read: Sequence[int]
) -> tuple[SourceLimit, ...]:
    """Return a limit for each source, or none at all if there is nothing to limit.

    `rows` is the limit of a whole micro-batch (1 or more), None for no limit. `read` are the rows that the
    last one has read from each source: those that cannot be limited are expected to take the same part again.
    """
    if rows is None or not any(source.limitable for source in sources):
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
    """Return whether limits differ enough to be worth an order."""
    if len(before) != len(after):
        return True
    return any(
        abs(new.rows - old.rows) > _CHANGE * max(new.rows, old.rows)
        for old, new in zip(before, after, strict=True)
    )


@define
class RowLimits:
    """The runs, by query, that a policy has limited and that no policy decides about any more."""

    _to_release: dict[str, str] = field(factory=dict)

    def lost(self) -> None:
        """Note that the shim has lifted all limits."""
        self._to_release.clear()

    def forget(self, query: str, memory: QueryMemory) -> bool:
        """Note that no policy decides about a query any more; return whether there is a limit to lift."""
        if memory.throttled:
            self._to_release[query] = memory.run
        return bool(memory.throttled)

    def release(self, records: Mapping[str, QueryRecord], turn: Turn) -> None:
        """Lift the limits of queries that were let go; `records` are those of the live queries."""
        for query, run in self._to_release.items():
            if query in records and records[query].run == run:
                _order(records[query], (), turn)
        self._to_release.clear()

    @staticmethod
    def failed(event: ev.ActionFailed, memory: QueryMemory) -> None:
        """Process a failed order, which is not repeated: what Spark cannot do now, it cannot do later."""
        if event.action == memory.throttle:
            memory.throttled, memory.unlimited = (), True

    @staticmethod
    def limit(
        query: QueryMetrics, record: QueryRecord, memory: QueryMemory, wanted: int | None, turn: Turn
    ) -> None:
        """Limit a query's micro-batches to the `wanted` rows, and report the limit if more rows wait."""
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
    # The limit has to be in place before the query's first micro-batch, so it goes before the start.
    turn.actions.insert(next(starts, len(turn.actions)), order)
    return action
