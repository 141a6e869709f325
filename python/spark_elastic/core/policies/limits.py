"""What stands behind every policy: declared bounds, and the limits that the policies before it state.

How many executors there may be: `cluster/quota.py`. A wish that goes too far is granted as far as it may be,
with the reason; nothing is refused as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve, frozen

from spark_elastic.core.bounds.requirements import Requirements
from spark_elastic.core.policies.policy import QueryWish, Wish
from spark_elastic.core.policies.view import ClusterView, QueryMetrics, SlotLimits, allowed


@frozen(kw_only=True)
class Granted:
    """What a query is given of a wish: so many `slots`.

    `reason` says why these are not those that were wanted, None: they are. `by` is who has stated the limit
    that they meet, "" for a declared bound.
    """

    slots: int
    wish: QueryWish
    reason: str | None = None
    by: str = ""


def grant(wish: Wish, view: ClusterView) -> Mapping[str, Granted]:
    """Trim what is wanted for each query to its limits; what is wanted for unknown queries is left out."""
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
    """Return what was declared for a query with a demand of no more than `slots`, None: than `limits` allow.

    Its bounds stay as they are, so its state is moved only where that pays. Sources that share slots with the
    shuffle demand none of their own.
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
