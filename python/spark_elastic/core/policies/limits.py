"""The limits behind every policy: the declared bounds, and the limits that earlier policies state.

Policies limit slots, not partitions: no state is moved into their limits and no lower bound is set aside for
them, so a start never waits for a limit. The number of executors is limited in `cluster/executors.py`. A wish
beyond a limit is granted up to that limit, with the reason; no wish is refused as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve, frozen

from spark_elastic.core.bounds.requirements import Requirements
from spark_elastic.core.policies.policy import QueryWish, Wish
from spark_elastic.core.policies.view import ClusterView, QueryMetrics, SlotLimits, allowed


@frozen(kw_only=True)
class Granted:
    """The slots that a query is granted in response to a wish.

    `reason` says why `slots` differ from the number that was wanted, None if they do not. `by` names who
    stated the limit that was reached, "" for a declared bound.
    """

    slots: int
    wish: QueryWish
    reason: str | None = None
    by: str = ""


def grant(wish: Wish, view: ClusterView) -> Mapping[str, Granted]:
    """Trim the wish for each query to the query's limits; leave out wishes for unknown queries."""
    return {
        query: _within(wanted, view.queries[query], wish.limits.get(query, ()))
        for query, wanted in wish.queries.items()
        if query in view.queries
    }


def _within(wish: QueryWish, query: QueryMetrics, limits: tuple[SlotLimits, ...]) -> Granted:
    may = allowed(query.lower, query.upper, limits)
    if wish.slots > may.upper:
        reason = "wish_above_bounds" if may.upper_by is None else "wish_above_limit"
        return Granted(slots=may.upper, wish=wish, reason=reason, by=may.upper_by or "")
    if wish.slots < may.lower:
        reason = "wish_below_bounds" if may.lower_by is None else "wish_below_limit"
        return Granted(slots=may.lower, wish=wish, reason=reason, by=may.lower_by or "")
    return Granted(slots=wish.slots, wish=wish)


def narrowed(declared: Requirements, slots: int | None, limits: tuple[SlotLimits, ...] = ()) -> Requirements:
    """Return a query's declared requirements, with its demand limited to `slots`, or to `limits` if None.

    The bounds stay as they are, so state is moved only where that pays. Sources in the slot-sharing group of
    the shuffle get the same limit, so they demand no slots of their own.
    """
    may = allowed(declared.lower, declared.upper, limits)
    least = may.lower if may.lower_by is not None else None
    if slots is None and may.upper_by is not None:
        slots = may.upper
    if slots is None and least is None:
        return declared
    group = declared.shuffle.group
    vertices = tuple(
        evolve(vertex, granted=slots, least=least) if vertex.group == group else vertex
        for vertex in declared.vertices
    )
    return Requirements(vertices=vertices, bound_by=declared.bound_by, priority=declared.priority)
