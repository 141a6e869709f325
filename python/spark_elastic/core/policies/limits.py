"""What stands behind every policy: declared bounds. How many executors there may be: `cluster/quota.py`.

A wish that goes too far is granted as far as it may, with the reason; nothing is refused as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve, frozen

from spark_elastic.core.bounds.requirements import Requirements
from spark_elastic.core.policies.view import ClusterView, QueryFigures
from spark_elastic.core.policies.wish import QueryWish, Wish


@frozen(kw_only=True)
class Granted:
    """What a query is given of a wish: so many `slots`.

    `reason` says why these are not those that were wanted, None: they are.
    """

    slots: int
    wish: QueryWish
    reason: str | None = None


def grant(wish: Wish, view: ClusterView) -> Mapping[str, Granted]:
    """Trim what is wanted for each query to its bounds; what is wanted for unknown queries is left out."""
    return {
        query: _within_bounds(wanted, view.queries[query])
        for query, wanted in wish.queries.items()
        if query in view.queries
    }


def _within_bounds(wish: QueryWish, query: QueryFigures) -> Granted:
    if wish.slots > query.upper:
        return Granted(slots=query.upper, wish=wish, reason="wish_above_bounds")
    if wish.slots < query.lower:
        return Granted(slots=query.lower, wish=wish, reason="wish_below_bounds")
    return Granted(slots=wish.slots, wish=wish)


def narrowed(declared: Requirements, slots: int) -> Requirements:
    """Return what was declared for a query with a demand of no more than `slots`.

    Its bounds stay as they are, so its state is moved only where that pays. Sources that share slots with the
    shuffle demand none of their own.
    """
    group = declared.shuffle.group
    vertices = tuple(
        evolve(vertex, granted=slots) if vertex.group == group else vertex for vertex in declared.vertices
    )
    return Requirements(vertices=vertices, bound_by=declared.bound_by, priority=declared.priority)
