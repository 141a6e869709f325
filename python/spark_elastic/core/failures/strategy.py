"""What all restart strategies have in common, and the way from a user's choice to one.

All times are epoch ms and come from the caller, as does the seed of chance: the same calls give the same
answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from spark_elastic.core.failures.exponential_delay import (
    ExponentialDelay,
    ExponentialDelayStrategy,
    Jitter,
    SeededJitter,
)
from spark_elastic.core.failures.failure_rate import FailureRate, FailureRateStrategy
from spark_elastic.core.failures.fixed_delay import FixedDelay, FixedDelayStrategy
from spark_elastic.core.failures.none import NoRestart, NoRestartStrategy
from spark_elastic.core.keys.restarts import StrategyName

__all__ = [
    "POLICIES",
    "ExponentialDelay",
    "FailureRate",
    "FixedDelay",
    "Jitter",
    "NoRestart",
    "RestartPolicy",
    "RestartStrategy",
    "new_strategy",
]

RestartPolicy = NoRestart | FixedDelay | FailureRate | ExponentialDelay
"""What a user chose; plain values, shared by all queries."""

POLICIES: Mapping[StrategyName, type[RestartPolicy]] = {
    "none": NoRestart,
    "fixed-delay": FixedDelay,
    "failure-rate": FailureRate,
    "exponential-delay": ExponentialDelay,
}
"""The class of each strategy's values."""


class RestartStrategy(Protocol):
    """The restarts of one query: tell it of each failure, then ask."""

    def notify_failure(self, at: int) -> bool:
        """Take in a failure at `at`; return False if it belongs to the attempt that is planned already."""

    def can_restart(self, at: int) -> bool:
        """Say whether a restart is allowed after the failures so far, seen from `at`."""

    def backoff_ms(self, at: int) -> int:
        """Return how many ms after `at` the restart should be, at least 0.

        May raise RuntimeError before any failure.
        """

    def validate(self) -> None:
        """Check the invariants. Raises AssertionError."""


STRATEGIES = (NoRestartStrategy, FixedDelayStrategy, FailureRateStrategy, ExponentialDelayStrategy)
"""The classes of all strategies."""


def new_strategy(policy: RestartPolicy, jitter: int | Jitter) -> RestartStrategy:
    """Begin the life of a query under `policy`; `jitter` is a seed (any whole number) or draws itself."""
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
