"""What is counted of each query since this policy process began, which never falls.

The scheduler counts for each run of a query. One that is started again by its application begins there with
nothing, and continues here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping

from attrs import define, evolve, field, frozen

from spark_elastic.core.query.transitions import FINISHED
from spark_elastic.core.query.view import QueryView


@frozen(kw_only=True)
class Tally:
    """Totals of one query: starts after failures, moves of its state, and milliseconds.

    `paused_ms` is for how long rescales and retries that have ended kept it from running, `stayed_ms` how
    long it was in each state that it has left.
    """

    restarted: int = 0
    rescaled: int = 0
    paused_ms: int = 0
    stayed_ms: Mapping[str, int] = field(factory=dict)


@define
class Tallies:
    """The totals of all queries that are known."""

    # What the runs before the last one add up to, and what was seen last.
    _before: dict[str, Tally] = field(factory=dict)
    _seen: dict[str, QueryView] = field(factory=dict)
    _paused_ms: Counter[str] = field(factory=Counter)
    _totals: dict[str, Tally] = field(factory=dict)

    def take(self, query: str, view: QueryView) -> None:
        """Take in what the scheduler counts of a query by now."""
        seen = self._seen.get(query)
        if seen is not None and _begins_anew(seen, view):
            self._before[query] = _end(self._totals[query], seen, began=_begin(view))
        self._seen[query] = view
        before = self._before.get(query, Tally())
        self._totals[query] = Tally(
            restarted=before.restarted + view.restarted,
            rescaled=before.rescaled + view.rescaled,
            paused_ms=self._paused_ms[query],
            stayed_ms=_sum(before.stayed_ms, view.stayed_ms),
        )

    def paused(self, query: str, ms: int) -> None:
        """Add a pause that has ended."""
        self._paused_ms[query] += ms

    def keep_only(self, queries: Container[str]) -> None:
        """Forget all others."""
        for query in [query for query in self._seen if query not in queries]:
            for kept in (self._before, self._seen, self._paused_ms, self._totals):
                kept.pop(query, None)

    def all(self) -> Mapping[str, Tally]:
        """Return the totals by the id of the query."""
        return dict(self._totals)


def _begins_anew(seen: QueryView, view: QueryView) -> bool:
    """Say whether another run is counted than before: what is counted of one run does not fall."""
    return _begin(view) > _begin(seen)


def _begin(view: QueryView) -> int:
    """Compute when the counting of this run has begun (epoch ms)."""
    return view.entered - sum(view.stayed_ms.values())


def _end(total: Tally, seen: QueryView, *, began: int) -> Tally:
    """Add the stay in the state that a run was in when the next one began."""
    if seen.state == FINISHED:
        return total
    return evolve(total, stayed_ms=_sum(total.stayed_ms, {seen.state: max(0, began - seen.entered)}))


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> Mapping[str, int]:
    return other if not one else dict(sorted((Counter(one) + Counter(other)).items()))
