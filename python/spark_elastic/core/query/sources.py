"""Keeps the sources of a query within their bounds: orders it, and reports what is impossible.

The bounds are an order of their own (`BoundSources`): they cost nothing, so they wait for nothing, and the
shim keeps them with the query.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from spark_elastic.core.actions import BoundSources, SourceBounds
from spark_elastic.core.bounds.requirements import Bounds, Requirements, source_vertex
from spark_elastic.core.load.reading import Reading
from spark_elastic.core.reasons import catalogue
from spark_elastic.core.settings import CoreSettings
from spark_elastic.core.turn import Number, Turn

if TYPE_CHECKING:
    from spark_elastic.core.query.record import QueryRecord


def bound_sources(
    record: QueryRecord,
    before: Requirements | None,
    now: Requirements,
    turn: Turn,
    settings: CoreSettings,
    *,
    found: bool = False,
) -> None:
    """Put changed bounds of the sources in force; `before` is None if there were none.

    A query that was `found` in a snapshot may have bounds that an earlier policy process ordered.
    """
    facts = record.facts
    old = dict(enumerate(before.sources)) if before else {}
    new = dict(enumerate(now.sources))
    open_ = Bounds(upper=settings.max_parallelism)
    changed = {number: bounds for number, bounds in new.items() if old.get(number, open_) != bounds}
    if not changed:
        if found:
            repeat_bounds(record, turn, settings)
        return
    shown = ", ".join(
        f"{source_vertex(number)} is read in {bounds.lower} to {bounds.upper} tasks"
        for number, bounds in changed.items()
    )
    message = catalogue.advised(catalogue.message("source_bounds", bounds=shown), only=settings.hands_off)
    turn.publish(
        "source_bounds", message, query=facts.query, before=None, after=None, numbers={"bounds": shown}
    )
    for number, bounds in changed.items():
        source = facts.sources[number]
        if bounds.lower > 1 and not source.divisible:
            numbers: dict[str, Number] = {
                "source": source_vertex(number),
                "what": source.name,
                "least": bounds.lower,
            }
            message = catalogue.message("source_not_divisible", **numbers)
            turn.publish(
                "source_not_divisible", message, query=facts.query, before=None, after=None, numbers=numbers
            )
    order_bounds(record, now, turn, settings)


def repeat_bounds(record: QueryRecord, turn: Turn, settings: CoreSettings) -> None:
    """Repeat the order where the bounds in force are unknown, without reporting them again.

    This includes open bounds: they lift what was ordered before.
    """
    if record.requirements.sources or record.load.reads is not None:
        order_bounds(record, record.requirements, turn, settings)


def order_bounds(record: QueryRecord, now: Requirements, turn: Turn, settings: CoreSettings) -> None:
    """Order how sources are read: within their bounds, with one task per slot where they follow the slots."""
    if settings.hands_off:
        return
    facts = record.facts
    open_ = Bounds(upper=settings.max_parallelism)
    bounds = now.sources or (open_,) * len(facts.sources)
    reading = Reading(facts.sources, settings.divide_ordered, record.load.reads)
    sources = tuple(
        SourceBounds(
            least=bound.lower,
            most=bound.upper,
            wanted=(reading.tasks or 0) if reading.follows(source) else 0,
        )
        for bound, source in zip(bounds, facts.sources, strict=True)
    )
    action = turn.next_action()
    record.orders.put_aside(action, "sources_not_bounded")
    turn.emit(BoundSources(id=action, cause=turn.cause, query=facts.query, run=record.run, sources=sources))
