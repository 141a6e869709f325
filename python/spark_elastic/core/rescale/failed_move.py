"""Remembers a count that a query could not be given, so that not every micro-batch tries it again.

What has failed may work later, as where the storage of the checkpoint was away. So it is tried again after a
minute, and after twice as long each further time, an hour at most. Where slots or bounds change it is tried
at once.
"""

from __future__ import annotations

from attrs import define

FIRST_PAUSE_MS = 60_000
LONGEST_PAUSE_MS = 3_600_000


@define(kw_only=True)
class FailedMove:
    """`count` is what could not be brought about, `again_at` when it may be tried again (epoch ms).

    `failures` counts since the last move that worked.
    """

    count: int | None = None
    again_at: int = 0
    failures: int = 0

    def failed(self, count: int | None, now: int) -> None:
        """Take in that the query could not be given `count`; a failure that is told of twice counts once."""
        if count is None or count == self.to_avoid(now):
            return
        pause_ms = FIRST_PAUSE_MS << min(self.failures, 10)
        self.count, self.again_at = count, now + min(pause_ms, LONGEST_PAUSE_MS)
        self.failures += 1

    def to_avoid(self, now: int) -> int | None:
        """Return the count that is not to be tried yet, None if there is none."""
        return self.count if now < self.again_at else None

    def may_try_again(self) -> None:
        """Let it be tried at once; another failure is followed by the longer pause."""
        self.count, self.again_at = None, 0

    def validate(self) -> None:
        """Check that a pause belongs to a failure. Raises AssertionError."""
        assert self.count is None or (self.failures >= 1 and self.again_at > 0)
