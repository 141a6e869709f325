"""Asks several policies one after the other, and makes one wish of theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve, frozen

from spark_elastic.core.policies.policy import Policy
from spark_elastic.core.policies.slot_limits import SlotLimits
from spark_elastic.core.policies.view import ClusterView
from spark_elastic.core.policies.wish import QueryWish, Wish


@frozen
class Chain:
    """Policies in the order in which they are asked; a policy itself.

    Each sees the view with the limits of those before it. Limits add up, and the first stated counts most. Of
    numbers of slots for a query the last one counts, of numbers of executors the largest, of times to be
    asked again the earliest.
    """

    members: Sequence[Policy]

    def decide(self, view: ClusterView) -> Wish:
        """Return what all of them want together."""
        queries: dict[str, QueryWish] = {}
        limits: dict[str, tuple[SlotLimits, ...]] = {}
        together = Wish()
        for member in self.members:
            wish = member.decide(view)
            queries.update(wish.queries)
            stated = {query: more for query, more in wish.limits.items() if more and query in view.queries}
            for query, more in stated.items():
                limits[query] = (*limits.get(query, ()), *more)
            view = _limited(view, stated)
            together = joined(together, wish)
        return evolve(together, queries=queries, limits=limits)


def _limited(view: ClusterView, stated: Mapping[str, tuple[SlotLimits, ...]]) -> ClusterView:
    """Show the queries with further limits."""
    if not stated:
        return view
    queries = {
        id: evolve(query, limits=(*query.limits, *stated[id])) if id in stated else query
        for id, query in view.queries.items()
    }
    return evolve(view, queries=queries)


def joined(one: Wish, other: Wish) -> Wish:
    """Put together what two wishes say of the whole application; what they say of queries is left out."""
    times = [until for until in (one.until, other.until) if until is not None]
    most = max(one, other, key=lambda wish: -1 if wish.executors is None else wish.executors)
    return Wish(
        executors=most.executors,
        executors_by=most.executors_by,
        until=min(times, default=None),
        batch=one.batch if other.batch is None else other.batch,
    )
