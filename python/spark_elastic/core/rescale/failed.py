"""Counts failed micro-batches in place of a committed one.

A committed micro-batch is a good moment to evaluate a change of executors or bounds. While none can be
committed, a number of failed ones serves as well, as failed checkpoints do in Flink. The first change begins
the count and a committed micro-batch ends it; further changes do not restart it.
"""

from __future__ import annotations

from attrs import define


@define(kw_only=True)
class FailedBatches:
    """`left` is the number of failures still needed, None without a change; `is_due`: enough have failed."""

    left: int | None = None
    is_due: bool = False

    def changed(self, limit: int) -> None:
        """Begin to count `limit` failures (at least 1), unless a count has begun."""
        if self.left is None:
            self.left = limit

    def failed(self) -> None:
        """Count a failed micro-batch."""
        if self.left is not None:
            self.left -= 1
            if self.left == 0:
                self.left = None
                self.is_due = True

    def committed(self) -> None:
        """End the count: the change is evaluated now."""
        self.left = None
        self.is_due = False

    def take_due(self) -> bool:
        """Return once whether enough have failed since a change."""
        due, self.is_due = self.is_due, False
        return due

    def validate(self) -> None:
        """Check that the remaining failures are still possible. Raises AssertionError."""
        assert self.left is None or self.left >= 1


# Remembers a count that could not be put in force, so that not every micro-batch tries it again.
# A failed change may succeed later, for example if the storage of the checkpoint was unavailable. So it is
# tried again after a minute, and after twice as long each further time. A failed move has read and written
# much of the state, so one that has failed for half an hour is left alone. It is tried at once when slots or
# bounds change.


FIRST_PAUSE_MS = 60_000
PAUSES = 5


@define(kw_only=True)
class FailedMove:
    """`count` could not be put in force, and may be tried again at `again_at` (epoch ms).

    With `again_at` None, the passing of time allows no other attempt. `failures` counts since the last
    successful move.
    """

    count: int | None = None
    again_at: int | None = None
    failures: int = 0

    def failed(self, count: int | None, now: int) -> None:
        """Record that `count` could not be put in force; a failure that is reported twice counts once."""
        if count is None or count == self.to_avoid(now):
            return
        self.count, self.again_at = count, None
        if self.failures < PAUSES:
            self.again_at = now + (FIRST_PAUSE_MS << self.failures)
        self.failures += 1

    def to_avoid(self, now: int) -> int | None:
        """Return the count that may not be tried yet, None if there is none."""
        return None if self.again_at is not None and self.again_at <= now else self.count

    def may_try_again(self) -> None:
        """Allow an attempt at once; another failure is followed by the longer pause, or by none."""
        self.count, self.again_at = None, None

    def validate(self) -> None:
        """Check that a pause has a count, and a count a failure. Raises AssertionError."""
        assert self.count is not None or self.again_at is None
        assert self.count is None or self.failures >= 1
        assert self.again_at is None or self.failures <= PAUSES
