"""Keeps the sources of a query within their bounds: orders it, and says what cannot be had."""

from __future__ import annotations

from spark_elastic.core import reasons
from spark_elastic.core.actions import BoundSources, SourceBounds
from spark_elastic.core.bounds.requirements import Bounds, Requirements, source_vertex
from spark_elastic.core.events import QueryFacts
from spark_elastic.core.sentences import fill
from spark_elastic.core.settings import CoreSettings
from spark_elastic.core.turn import Number, Turn


def bound_sources(
    facts: QueryFacts,
    run: str,
    before: Requirements | None,
    now: Requirements,
    turn: Turn,
    settings: CoreSettings,
    *,
    found: bool = False,
) -> None:
    """Put the bounds of the sources in force where they have changed; `before` None: there were none.

    A query that was `found` in a snapshot may have those that a policy process before this one has ordered.
    """
    old = dict(enumerate(before.sources)) if before else {}
    new = dict(enumerate(now.sources))
    open_ = Bounds(upper=settings.max_parallelism)
    changed = {number: bounds for number, bounds in new.items() if old.get(number, open_) != bounds}
    if not changed:
        if found:
            repeat_bounds(facts, run, now, turn, settings)
        return
    shown = ", ".join(
        f"{source_vertex(number)} is read in {bounds.lower} to {bounds.upper} tasks"
        for number, bounds in changed.items()
    )
    message = reasons.message("source_bounds", bounds=shown)
    if settings.hands_off:
        message = fill(reasons.ADVICE, message=message)
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
            message = reasons.message("source_not_divisible", **numbers)
            turn.publish(
                "source_not_divisible", message, query=facts.query, before=None, after=None, numbers=numbers
            )
    _order(facts, run, now, turn, settings)


def repeat_bounds(facts: QueryFacts, run: str, now: Requirements, turn: Turn, settings: CoreSettings) -> None:
    """Order the bounds again where nobody knows which are in force; nothing is said twice.

    Open ones, too: they lift what was ordered before.
    """
    if now.sources:
        _order(facts, run, now, turn, settings)


def _order(facts: QueryFacts, run: str, now: Requirements, turn: Turn, settings: CoreSettings) -> None:
    if not settings.hands_off:
        sources = tuple(SourceBounds(least=bounds.lower, most=bounds.upper) for bounds in now.sources)
        order = BoundSources(
            id=turn.next_action(), cause=turn.cause, query=facts.query, run=run, sources=sources
        )
        turn.emit(order)
