"""How many queries move their state at once, and which one is next.

New slots are a reason to rescale for every stateful query of an application, and each move reads and writes
all of a query's state, on the executors that run the micro-batches of the others. So at most `limit` queries
move at once; the others run on and wait. Whoever is next decides anew, with the slots of then.

- Every move counts, whatever its reason: those at the start of a query and into its bounds load the executors
  as well. A start does not wait for that: without room it begins with what it had, and is rescaled later.
- No move has to jump the queue. Fewer executors mean more waves, not an end; bounds come first.
- A move lasts from its order to the outcome, though another order may have replaced the first: that one may
  be under way. After `PATIENCE_MS` it no longer counts, as its micro-batch may never end.
- In place, and in a start after a failure, no state is moved.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import define, field, frozen

from spark_elastic.core.rescale.situation import HORIZON_MS

PATIENCE_MS = HORIZON_MS
"""In this time a rescale has to pay for itself, so no wait may be longer.

A move that is not through by then keeps no other one from beginning, and who has waited for so long comes
before all that have not.
"""


@frozen(kw_only=True)
class Candidate:
    """A move to `partitions` that may begin, and that is waited for since `since` (epoch ms).

    `gain_ms` is what it saves within the horizon beyond its cost, None if no micro-batch was measured;
    `into_bounds` says that nobody wants the present count, whatever another one gains.
    """

    since: int
    partitions: int
    into_bounds: bool
    gain_ms: float | None

    def rank(self, now: int) -> tuple[int, float, float]:
        """Return what candidates are sorted by, the first to move being the smallest.

        Who has lost patience comes first, so that nobody waits for ever; then who is outside of its bounds;
        then those that gain something, and at last those of which nothing was measured. Among those that gain
        the largest gain counts, in each other group who has waited longest.
        """
        gain_ms = self.gain_ms or 0.0
        if now - self.since >= PATIENCE_MS:
            return 0, self.since, -gain_ms
        if self.into_bounds:
            return 1, self.since, -gain_ms
        return (3, self.since, 0.0) if self.gain_ms is None else (2, -gain_ms, self.since)


@define
class MoveQueue:
    """The queries that move their state, and the candidates. Derived from their states, and kept.

    `stale` says that somebody may begin, or is to be told that it waits: those are `unanswered`.
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
        """Say whether this query may move its state; one that does already may."""
        return self.has_room or query in self.moving

    def look(self, query: str, *, moving: bool, candidate: Candidate | None) -> None:
        """Take in whether a query moves its state by now, or waits for that."""
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
        """Give those that may move their state, one by one, as long as there is room."""
        waiting = self.waiting if self.has_room else ()
        for query in sorted(waiting, key=lambda query: (self.waiting[query].rank(now), query)):
            yield query
            if not self.has_room:
                return

    def settle(self) -> list[str]:
        """Return who has still to be told that it waits: all others have been told."""
        told = sorted(query for query in self.unanswered if query in self.waiting)
        self.unanswered.clear()
        self.stale = False
        return told

    def validate(self, moving: set[str], waiting: Mapping[str, Candidate]) -> None:
        """Compare with what the states of the queries say. Raises AssertionError."""
        assert self.moving == moving
        assert self.waiting == waiting
        assert not moving & waiting.keys()
        assert len(moving) <= self.limit
        assert not waiting or not self.has_room
        assert not self.stale
        assert not self.unanswered
