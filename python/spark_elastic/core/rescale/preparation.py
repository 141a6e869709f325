"""A prepared move: its state is copied while micro-batches run, so that only the switch is a pause."""

from __future__ import annotations

from attrs import evolve, frozen


@frozen(kw_only=True)
class Preparation:
    """A copy of a query's state with another number of `partitions`.

    It was ordered at `since` (epoch ms) by the action `order`, and took `copy_ms`, None while it is under
    way. `slowdown_ms` is what it has taken from the micro-batches beside it.
    """

    partitions: int
    since: int
    order: str
    slowdown_ms: int = 0
    copy_ms: int | None = None

    def slowed(self, duration_ms: int, usual_ms: float | None) -> Preparation:
        """Add a micro-batch that ran beside the copy; without a usual duration it says nothing."""
        if usual_ms is None:
            return self
        return evolve(self, slowdown_ms=self.slowdown_ms + max(0, round(duration_ms - usual_ms)))
