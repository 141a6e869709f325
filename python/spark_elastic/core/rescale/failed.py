"""Counts micro-batches that fail, where one that is committed is waited for.

A committed micro-batch is a good moment to look at a change of executors or bounds. While none can be
committed, so many failed ones are as good: that is what the model makes of checkpoints that fail. The first
change begins the count, a committed micro-batch ends it; what changes meanwhile does not begin it anew.
"""

from __future__ import annotations

from attrs import define


@define(kw_only=True)
class FailedBatches:
    """`left` is how many are still to fail, None if nothing has changed; `is_due`: enough have failed."""

    left: int | None = None
    is_due: bool = False

    def changed(self, limit: int) -> None:
        """Begin to count `limit` failures (at least 1), unless that has begun."""
        if self.left is None:
            self.left = limit

    def failed(self) -> None:
        """Count a micro-batch that has failed."""
        if self.left is not None:
            self.left -= 1
            if self.left == 0:
                self.left = None
                self.is_due = True

    def committed(self) -> None:
        """End the count: it is looked at now."""
        self.left = None
        self.is_due = False

    def take_due(self) -> bool:
        """Say whether enough have failed since a change, once."""
        due, self.is_due = self.is_due, False
        return due

    def validate(self) -> None:
        """Check that what is left can still fail. Raises AssertionError."""
        assert self.left is None or self.left >= 1


# Remembers a count that a query could not be given, so that not every micro-batch tries it again.
# What has failed may work later, as where the storage of the checkpoint was away. So it is tried again after
# a minute, and after twice as long each further time. A move that fails has read and written much of the
# state, so one that has failed for half an hour is left alone. Where slots or bounds change it is tried at
# once.


FIRST_PAUSE_MS = 60_000
PAUSES = 5


@define(kw_only=True)
class FailedMove:
    """`count` is what could not be brought about, `again_at` when it may be tried again (epoch ms).

    None for `again_at` means: not because time has passed. `failures` counts since the last move that worked.
    """

    count: int | None = None
    again_at: int | None = None
    failures: int = 0

    def failed(self, count: int | None, now: int) -> None:
        """Take in that the query could not be given `count`; a failure that is told of twice counts once."""
        if count is None or count == self.to_avoid(now):
            return
        self.count, self.again_at = count, None
        if self.failures < PAUSES:
            self.again_at = now + (FIRST_PAUSE_MS << self.failures)
        self.failures += 1

    def to_avoid(self, now: int) -> int | None:
        """Return the count that is not to be tried yet, None if there is none."""
        return None if self.again_at is not None and self.again_at <= now else self.count

    def may_try_again(self) -> None:
        """Let it be tried at once; another failure is followed by the longer pause, or by none."""
        self.count, self.again_at = None, None

    def validate(self) -> None:
        """Check that a pause belongs to a count, and that to a failure. Raises AssertionError."""
        assert self.count is not None or self.again_at is None
        assert self.count is None or self.failures >= 1
        assert self.again_at is None or self.failures <= PAUSES
