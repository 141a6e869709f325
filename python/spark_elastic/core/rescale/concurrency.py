"""The number of queries that move their state at once, and which one is next.

New slots are a reason to rescale for every stateful query of an application. Each move reads and writes all
of a query's state, on the executors that run the micro-batches of the others. So at most `limit` queries move
at once; the others keep running and wait. The next one decides again, with the slots at that time.

- Every move counts, whatever its reason: those at the start of a query and into its bounds load the executors
  as well. A start does not wait for a move: without room it begins with the previous count, and is rescaled
  later.
- No move needs to jump the queue. Fewer executors mean more waves, not an end; bounds come first.
- A move lasts from its order, or that of the copy before it, to the outcome, even if another order has
  replaced the first: that one may be under way. After `PATIENCE_MS` it no longer counts, as its micro-batch
  may never end.
- Changes in place, and starts after a failure, move no state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import define, field, frozen

from spark_elastic.core.rescale.situation import HORIZON_MS

PATIENCE_MS = HORIZON_MS
"""A rescale has to pay for itself within this time, so no wait may be longer.

A move that has not completed by then no longer keeps others from beginning. A candidate that has waited this
long precedes all that have not.
"""


@frozen(kw_only=True)
class Candidate:
    """A move to `partitions` that may begin, and has been awaited since `since` (epoch ms).

    `gain_ms` is the time that it saves within the horizon beyond its cost, None if no micro-batch was
    measured. `into_bounds` says that the present count is outside the bounds, whatever another one gains.
    """

    since: int
    partitions: int
    into_bounds: bool
    gain_ms: float | None

    def rank(self, now: int) -> tuple[int, float, float]:
        """Return the sort key of a candidate; the smallest one moves first.

        Candidates that have lost patience come first, so that none waits forever. Those outside their bounds
        follow, then those with a measured gain, and last those without any measurement. Among measured gains
        the largest one counts, in each other group the longest wait.
        """
        gain_ms = self.gain_ms or 0.0
        if now - self.since >= PATIENCE_MS:
            return 0, self.since, -gain_ms
        if self.into_bounds:
            return 1, self.since, -gain_ms
        return (3, self.since, 0.0) if self.gain_ms is None else (2, -gain_ms, self.since)


@define
class MoveQueue:
    """The queries that move their state, and the candidates. Derived from their states, and cached.

    `stale` says that a query may begin, or must be notified that it waits: the latter are `unanswered`.

    Because it is derived, a policy process that resumes counts correctly. One that starts over does not know
    the moves under way; the cooldown of each query covers that.
    """

    limit: int
    moving: set[str] = field(factory=set)
    waiting: dict[str, Candidate] = field(factory=dict)
    unanswered: set[str] = field(factory=set)
    stale: bool = False

    @property
    def has_room(self) -> bool:
        """Whether one more query may move its state."""
        return len(self.moving) < self.limit

    def has_room_for(self, query: str) -> bool:
        """Return whether this query may move its state; one that already moves may."""
        return self.has_room or query in self.moving

    def look(self, query: str, *, moving: bool, candidate: Candidate | None) -> None:
        """Record whether a query now moves its state, or waits to do so."""
        if moving:
            self.moving.add(query)
        elif query in self.moving:
            self.moving.remove(query)
            self.stale = True
        if candidate is None:
            self.waiting.pop(query, None)
            return
        before = self.waiting.get(query)
        self.waiting[query] = candidate
        if before is None or before.partitions != candidate.partitions:
            self.unanswered.add(query)
            self.stale = True

    def next(self, now: int) -> Iterator[str]:
        """Yield the queries that may move their state, one by one, as long as there is room."""
        waiting = self.waiting if self.has_room else ()
        for query in sorted(waiting, key=lambda query: (self.waiting[query].rank(now), query)):
            yield query
            if not self.has_room:
                return

    def settle(self) -> list[str]:
        """Return the queries still to be notified that they wait."""
        told = sorted(query for query in self.unanswered if query in self.waiting)
        self.unanswered.clear()
        self.stale = False
        return told

    def validate(self, moving: set[str], waiting: Mapping[str, Candidate]) -> None:
        """Compare with the states of the queries. Raises AssertionError."""
        assert self.moving == moving
        assert self.waiting == waiting
        assert not moving & waiting.keys()
        assert len(moving) <= self.limit
        assert not waiting or not self.has_room
        assert not self.stale
        assert not self.unanswered
