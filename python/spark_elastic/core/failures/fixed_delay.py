"""Restart a fixed number of times, always after the same delay.

Rule: allowed while failures <= attempts. After Flink's ``restart-strategy.fixed-delay``.
"""

from __future__ import annotations

from attrs import define, frozen

from spark_elastic.core.keys import restarts
from spark_elastic.core.keys.key import of


@frozen(kw_only=True)
class FixedDelay:
    """How often a query is restarted in its life (`attempts`, from 0 up), and after how many ms."""

    attempts: int = of(restarts.FIXED_DELAY_ATTEMPTS)
    delay_ms: int = of(restarts.FIXED_DELAY_MS)


@define(kw_only=True)
class FixedDelayStrategy:
    """Count the failures."""

    policy: FixedDelay
    failures: int = 0

    def notify_failure(self, at: int) -> bool:
        """Count the failure; each is an attempt of its own."""
        self.failures += 1
        return True

    def can_restart(self, at: int) -> bool:
        """Say whether an attempt is left for the failures so far."""
        return self.failures <= self.policy.attempts

    def backoff_ms(self, at: int) -> int:
        """Return the delay, whenever it is asked for."""
        return self.policy.delay_ms

    def validate(self) -> None:
        """Check the ranges. Raises AssertionError."""
        assert self.policy.attempts >= 0
        assert self.policy.delay_ms >= 0
        assert self.failures >= 0
