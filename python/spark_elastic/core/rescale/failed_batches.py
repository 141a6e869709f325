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
