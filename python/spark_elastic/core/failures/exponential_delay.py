"""Restart after a delay that grows with each failure, and start again small after a quiet time.

Rule: the delay after `a` earlier attempts is ``trunc(initial * multiplier ** a)`` plus a jitter, from the
initial to the longest backoff; failures until the planned restart belong to the same attempt; the series
starts anew if that restart was at least the threshold ago. After Flink's
``restart-strategy.exponential-delay``.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, frozen

from spark_elastic.core.keys import restarts
from spark_elastic.core.keys.key import of

Jitter = Callable[[int], int]
"""Draws a number from -bound to bound, for a bound from 0 up."""

# Where the power ends: no clock counts further, and a float soon ends too.
_LONGEST_MS = (1 << 63) - 1
_MASK = (1 << 64) - 1


@frozen(kw_only=True)
class ExponentialDelay:
    """All that can be chosen: durations in ms from 1 up, `initial_backoff_ms` not above `max_backoff_ms`.

    `backoff_multiplier` is above 1, `jitter_factor` from 0 to 1 is the share of a backoff by which it may be
    off. `attempts_before_reset_backoff` from 1 up limits the restarts of one series; None: no limit.
    """

    initial_backoff_ms: int = of(restarts.INITIAL_BACKOFF_MS)
    max_backoff_ms: int = of(restarts.MAX_BACKOFF_MS)
    backoff_multiplier: float = of(restarts.BACKOFF_MULTIPLIER)
    reset_backoff_threshold_ms: int = of(restarts.RESET_BACKOFF_THRESHOLD_MS)
    jitter_factor: float = of(restarts.JITTER_FACTOR)
    attempts_before_reset_backoff: int | None = of(restarts.ATTEMPTS_BEFORE_RESET_BACKOFF)


@define(kw_only=True)
class SeededJitter:
    """Draw evenly, and after the same `seed` always the same: a replay must wait as long as the original.

    The generator is SplitMix64, whose whole state is one 64 bit number.
    """

    seed: int

    def __call__(self, bound: int) -> int:
        """Return a number from -`bound` to `bound`. Raises ValueError for a negative bound."""
        if bound < 0:
            raise ValueError(f"the bound of a jitter is from 0 up, not {bound}")
        self.seed = (self.seed + 0x9E3779B97F4A7C15) & _MASK
        mixed = ((self.seed ^ (self.seed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        return (mixed ^ (mixed >> 31)) % (2 * bound + 1) - bound


@define(kw_only=True)
class ExponentialDelayStrategy:
    """Count the attempts of the present series; `restart_at` is when the last one is due."""

    policy: ExponentialDelay
    jitter: Jitter
    attempts: int = 0
    restart_at: int | None = None

    def notify_failure(self, at: int) -> bool:
        """Plan a restart for the failure at `at`; return False if the planned one is still to come."""
        if self.restart_at is not None:
            if at <= self.restart_at:
                return False
            if at - self.restart_at >= self.policy.reset_backoff_threshold_ms:
                self.attempts = 0
        self.restart_at = at + self._delay_ms()
        self.attempts += 1
        return True

    def can_restart(self, at: int) -> bool:
        """Say whether the series has an attempt left for the failures so far."""
        limit = self.policy.attempts_before_reset_backoff
        return limit is None or self.attempts <= limit

    def backoff_ms(self, at: int) -> int:
        """Return the time from `at` to the planned restart, at least 0.

        Raises RuntimeError before any failure.
        """
        if self.restart_at is None:
            raise RuntimeError("there was no failure after which to restart")
        return max(0, self.restart_at - at)

    def _delay_ms(self) -> int:
        policy = self.policy
        try:
            grown = policy.initial_backoff_ms * policy.backoff_multiplier**self.attempts
        except OverflowError:
            grown = _LONGEST_MS
        current = int(min(grown, _LONGEST_MS))
        # The jitter of a backoff beyond the longest one is not cut to it first: that is the rule.
        jittered = current + self.jitter(int(current * policy.jitter_factor))
        return max(policy.initial_backoff_ms, min(jittered, policy.max_backoff_ms))

    def validate(self) -> None:
        """Check the ranges, and that a restart was planned for each attempt. Raises AssertionError."""
        policy = self.policy
        assert 1 <= policy.initial_backoff_ms <= policy.max_backoff_ms
        assert policy.backoff_multiplier > 1
        assert policy.reset_backoff_threshold_ms >= 1
        assert 0 <= policy.jitter_factor <= 1
        assert policy.attempts_before_reset_backoff is None or policy.attempts_before_reset_backoff >= 1
        assert self.attempts >= 0
        assert (self.attempts == 0) == (self.restart_at is None)
