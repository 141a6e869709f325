"""What stands behind every policy: declared bounds. How many executors there may be: `cluster/quota.py`.

A wish that goes too far is granted as far as it may, with the reason; nothing is refused as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from spark_elastic.core.bounds.requirements import SHUFFLE, Bounds, Requirements, Vertex
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
    """Return what was declared for a query with `slots` as the upper bound, if that is lower.

    Sources that share slots with the shuffle are still read with as many tasks, but demand none of their own.
    """
    shuffle = declared.shuffle
    upper = max(shuffle.bounds.lower, min(shuffle.bounds.upper, slots))
    if upper == shuffle.bounds.upper:
        return declared
    vertices = tuple(_narrowed(vertex, shuffle.group, upper) for vertex in declared.vertices)
    return Requirements(
        vertices=vertices, bound_by="what spark.elastic.policy wants", priority=declared.priority
    )


def _narrowed(vertex: Vertex, group: str, upper: int) -> Vertex:
    bounds, demands = vertex.bounds, vertex.demands and vertex.group != group
    if vertex.id == SHUFFLE:
        bounds, demands = Bounds(lower=bounds.lower, upper=upper), True
    return Vertex(id=vertex.id, group=vertex.group, bounds=bounds, demands=demands, weight=vertex.weight)
