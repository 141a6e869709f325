"""Never restart: the first failure ends the query, as in plain Spark.

Rule: always refuse. After Flink's ``restart-strategy.type: none``.
"""

from __future__ import annotations

from attrs import define, frozen


@frozen(kw_only=True)
class NoRestart:
    """The policy has nothing to set."""


@define(kw_only=True)
class NoRestartStrategy:
    """Refuse every restart."""

    policy: NoRestart

    def notify_failure(self, at: int) -> bool:
        """Count nothing; each failure is an attempt of its own."""
        return True

    def can_restart(self, at: int) -> bool:
        """Refuse."""
        return False

    def backoff_ms(self, at: int) -> int:
        """Return 0: nobody waits for a restart that does not come."""
        return 0

    def validate(self) -> None:
        """Check nothing: there is no state."""
