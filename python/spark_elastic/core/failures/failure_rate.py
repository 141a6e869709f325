"""Restart as long as failures are rare enough, always after the same delay.

Rule: remember the last n + 1 failures; refuse if there are n + 1 and the oldest is not older than the
interval. After Flink's ``restart-strategy.failure-rate``.
"""

from __future__ import annotations

from attrs import define, field, frozen

from spark_elastic.core.keys import restarts
from spark_elastic.core.keys.key import of


@frozen(kw_only=True)
class FailureRate:
    """The most failures (from 1 up) in any `interval_ms` (from 1 up), and the ms before each restart."""

    max_failures_per_interval: int = of(restarts.FAILURE_RATE_MAX_FAILURES)
    interval_ms: int = of(restarts.FAILURE_RATE_INTERVAL_MS)
    delay_ms: int = of(restarts.FAILURE_RATE_DELAY_MS)


@define(kw_only=True)
class FailureRateStrategy:
    """Remember the failures that count: one more than allowed, the oldest first."""

    policy: FailureRate
    failures: list[int] = field(factory=list)

    def notify_failure(self, at: int) -> bool:
        """Remember the failure at `at`; each is an attempt of its own."""
        self.failures.append(at)
        del self.failures[: -(self.policy.max_failures_per_interval + 1)]
        return True

    def can_restart(self, at: int) -> bool:
        """Say whether the failures seen from `at` are few enough."""
        if len(self.failures) <= self.policy.max_failures_per_interval:
            return True
        return at - self.failures[0] > self.policy.interval_ms

    def backoff_ms(self, at: int) -> int:
        """Return the delay, whenever it is asked for."""
        return self.policy.delay_ms

    def validate(self) -> None:
        """Check the ranges and that memory is bounded. Raises AssertionError."""
        assert self.policy.max_failures_per_interval >= 1
        assert self.policy.interval_ms >= 1
        assert self.policy.delay_ms >= 0
        assert len(self.failures) <= self.policy.max_failures_per_interval + 1
