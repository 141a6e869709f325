"""The common part of all restart strategies, and their creation from the user's choice.

All times are epoch ms and come from the caller, as does the random seed: the same calls give the same
answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from attrs import define, field, frozen

from spark_elastic.core.keys import rescaling
from spark_elastic.core.keys.key import of
from spark_elastic.core.keys.rescaling import StrategyName

# Restart after a delay that grows with each failure, and start small again after a quiet time.
# Rule: the delay after `a` earlier attempts is ``trunc(initial * multiplier ** a)`` plus a jitter, from the
# initial to the longest backoff; failures until the planned restart belong to the same attempt; the series
# starts over if that restart was at least the threshold ago. After Flink's
# ``restart-strategy.exponential-delay``.


Jitter = Callable[[int], int]
"""Draws a number from -bound to bound, for a bound of at least 0."""

# Limit of the power: no clock counts further, and a float overflows soon after.
_LONGEST_MS = (1 << 63) - 1
_MASK = (1 << 64) - 1


@frozen(kw_only=True)
class ExponentialDelay:
    """The parameters: durations in ms of at least 1, `initial_backoff_ms` not above `max_backoff_ms`.

    `backoff_multiplier` is above 1. `jitter_factor`, from 0 to 1, is the largest jitter as a share of the
    backoff. `attempts_before_reset_backoff`, at least 1, limits the restarts of one series; None: no limit.
    """

    initial_backoff_ms: int = of(rescaling.INITIAL_BACKOFF_MS)
    max_backoff_ms: int = of(rescaling.MAX_BACKOFF_MS)
    backoff_multiplier: float = of(rescaling.BACKOFF_MULTIPLIER)
    reset_backoff_threshold_ms: int = of(rescaling.RESET_BACKOFF_THRESHOLD_MS)
    jitter_factor: float = of(rescaling.JITTER_FACTOR)
    attempts_before_reset_backoff: int | None = of(rescaling.ATTEMPTS_BEFORE_RESET_BACKOFF)


@define(kw_only=True)
class SeededJitter:
    """Draws evenly, and always the same after the same `seed`: a replay must wait as long as the original.

    The generator is SplitMix64; its whole state is one 64-bit number.
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
    """Counts the attempts of the present series; `restart_at` is the time of the last planned restart."""

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
        """Return whether the series has an attempt left for the failures so far."""
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
        # By Flink's rule, the jitter is computed before the backoff is cut to the longest one.
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


# ---- Restart as long as failures are rare enough, always after the same delay. Rule: remember the last n + 1
# failures; refuse if there are n + 1 and the oldest is not older than the interval. After Flink's
# ``restart-strategy.failure-rate``.


@frozen(kw_only=True)
class FailureRate:
    """The most failures (at least 1) in any `interval_ms` (at least 1), and the ms before each restart."""

    max_failures_per_interval: int = of(rescaling.FAILURE_RATE_MAX_FAILURES)
    interval_ms: int = of(rescaling.FAILURE_RATE_INTERVAL_MS)
    delay_ms: int = of(rescaling.FAILURE_RATE_DELAY_MS)


@define(kw_only=True)
class FailureRateStrategy:
    """Remembers the failures that count: one more than allowed, the oldest first."""

    policy: FailureRate
    failures: list[int] = field(factory=list)

    def notify_failure(self, at: int) -> bool:
        """Remember the failure at `at`; each is an attempt of its own."""
        self.failures.append(at)
        del self.failures[: -(self.policy.max_failures_per_interval + 1)]
        return True

    def can_restart(self, at: int) -> bool:
        """Return whether the failures seen from `at` are few enough."""
        if len(self.failures) <= self.policy.max_failures_per_interval:
            return True
        return at - self.failures[0] > self.policy.interval_ms

    def backoff_ms(self, at: int) -> int:
        """Return the delay, which is constant."""
        return self.policy.delay_ms

    def validate(self) -> None:
        """Check the ranges and that memory is bounded. Raises AssertionError."""
        assert self.policy.max_failures_per_interval >= 1
        assert self.policy.interval_ms >= 1
        assert self.policy.delay_ms >= 0
        assert len(self.failures) <= self.policy.max_failures_per_interval + 1


# ---- Restart a fixed number of times, always after the same delay. Rule: allowed while failures <= attempts.
# After Flink's ``restart-strategy.fixed-delay``.


@frozen(kw_only=True)
class FixedDelay:
    """The number of restarts in a query's life (`attempts`, at least 0), and the ms before each."""

    attempts: int = of(rescaling.FIXED_DELAY_ATTEMPTS)
    delay_ms: int = of(rescaling.FIXED_DELAY_MS)


@define(kw_only=True)
class FixedDelayStrategy:
    """Counts the failures."""

    policy: FixedDelay
    failures: int = 0

    def notify_failure(self, at: int) -> bool:
        """Count the failure; each is an attempt of its own."""
        self.failures += 1
        return True

    def can_restart(self, at: int) -> bool:
        """Return whether an attempt is left for the failures so far."""
        return self.failures <= self.policy.attempts

    def backoff_ms(self, at: int) -> int:
        """Return the delay, which is constant."""
        return self.policy.delay_ms

    def validate(self) -> None:
        """Check the ranges. Raises AssertionError."""
        assert self.policy.attempts >= 0
        assert self.policy.delay_ms >= 0
        assert self.failures >= 0


# ---- Never restart: the first failure ends the query, as in plain Spark. Rule: always refuse. After Flink's
# ``restart-strategy.type: none``.


@frozen(kw_only=True)
class NoRestart:
    """The policy without parameters."""


@define(kw_only=True)
class NoRestartStrategy:
    """Refuses every restart."""

    policy: NoRestart

    def notify_failure(self, at: int) -> bool:
        """Count nothing; each failure is an attempt of its own."""
        return True

    def can_restart(self, at: int) -> bool:
        """Refuse."""
        return False

    def backoff_ms(self, at: int) -> int:
        """Return 0: there is no restart to wait for."""
        return 0

    def validate(self) -> None:
        """Check nothing: there is no state."""


RestartPolicy = NoRestart | FixedDelay | FailureRate | ExponentialDelay
"""The user's choice; plain values, shared by all queries."""

POLICY_TYPES: Mapping[StrategyName, type[RestartPolicy]] = {
    "none": NoRestart,
    "fixed-delay": FixedDelay,
    "failure-rate": FailureRate,
    "exponential-delay": ExponentialDelay,
}
"""The class of each strategy's values."""


class RestartStrategy(Protocol):
    """The restarts of one query: notify it of each failure, then ask."""

    def notify_failure(self, at: int) -> bool:
        """Record a failure at `at`; return False if it belongs to the attempt that is planned already."""

    def can_restart(self, at: int) -> bool:
        """Return whether a restart is allowed after the failures so far, seen from `at`."""

    def backoff_ms(self, at: int) -> int:
        """Return the ms from `at` to the restart, at least 0.

        May raise RuntimeError before any failure.
        """

    def validate(self) -> None:
        """Check the invariants. Raises AssertionError."""


STRATEGIES = (NoRestartStrategy, FixedDelayStrategy, FailureRateStrategy, ExponentialDelayStrategy)
"""The classes of all strategies."""


def new_strategy(policy: RestartPolicy, jitter: int | Jitter) -> RestartStrategy:
    """Create a query's strategy for `policy`; `jitter` is a seed (any whole number) or a draw function."""
    match policy:
        case NoRestart():
            return NoRestartStrategy(policy=policy)
        case FixedDelay():
            return FixedDelayStrategy(policy=policy)
        case FailureRate():
            return FailureRateStrategy(policy=policy)
        case ExponentialDelay():
            draw = SeededJitter(seed=jitter) if isinstance(jitter, int) else jitter
            return ExponentialDelayStrategy(policy=policy, jitter=draw)
