"""What stands behind every policy: declared bounds, and how many executors an application may have.

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


@frozen(kw_only=True)
class ExecutorLimits:
    """How many executors an application may have: from `least` up to `most`, None without a limit.

    `limited_by` names the setting that `most` comes from. With contradicting limits the upper one counts.
    """

    least: int = 0
    most: int | None = None
    limited_by: str = ""

    def within(self, executors: int) -> int:
        """Return as many executors as are allowed of those that are wanted."""
        wanted = max(executors, self.least)
        return wanted if self.most is None else min(wanted, self.most)


def executor_limits(
    *, least: int, most: int | None, quota_cores: int | None, cores: int, quota_bytes: int | None, memory: int
) -> ExecutorLimits:
    """Put limits together; an executor has so many `cores` (1 or more) and so many bytes of `memory`.

    A `memory` of 0 is not known: the quota of it is left out.
    """
    limits: list[tuple[int, str]] = []
    if most is not None:
        limits.append((most, "spark.elastic.maxExecutors"))
    if quota_cores is not None:
        limits.append((quota_cores // max(1, cores), "spark.elastic.quota.cores"))
    if quota_bytes is not None and memory > 0:
        limits.append((quota_bytes // memory, "spark.elastic.quota.memory"))
    if not limits:
        return ExecutorLimits(least=least)
    fewest, name = min(limits)
    return ExecutorLimits(least=least, most=fewest, limited_by=name)


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
