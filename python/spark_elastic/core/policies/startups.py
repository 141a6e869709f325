"""How long executors take to come: each is taken for the one that has been waited for longest."""

from __future__ import annotations

from attrs import define

_KEPT = 10
_WAITING = 64


@define
class StartUps:
    """What was requested and has not come, and how long the last ones took.

    `waiting` has the totals that were requested, each more than the one before, with when (epoch ms).
    `took_ms` are the times from a request until the executor was there, the newest last.
    """

    waiting: tuple[tuple[int, int], ...] = ()
    took_ms: tuple[int, ...] = ()

    def lost(self) -> None:
        """Note that nobody knows what has become of the requests."""
        self.waiting = ()

    def requested(self, at: int, total: int | None, here: int) -> None:
        """Take in the total that is requested now, None: none; so many executors are here."""
        if total is None or total <= here:
            self.waiting = ()
            return
        # One that was asked for with an earlier request, and is wanted still, has been waited for since then.
        since = next((when for earlier, when in self.waiting if earlier >= total), at)
        fewer = [one for one in self.waiting if one[0] < total]
        self.waiting = (*fewer, (total, since))[-_WAITING:]

    def came(self, at: int, here: int) -> None:
        """Take in that an executor has come; with it so many are here."""
        since = next((when for total, when in self.waiting if total >= here), None)
        if since is not None:
            self.took_ms = (*self.took_ms, max(0, at - since))[-_KEPT:]
        self.waiting = tuple(one for one in self.waiting if one[0] > here)

    def validate(self) -> None:
        """Check that it is bounded and in order. Raises AssertionError."""
        assert len(self.took_ms) <= _KEPT
        assert len(self.waiting) <= _WAITING
        assert [total for total, _ in self.waiting] == sorted({total for total, _ in self.waiting})
