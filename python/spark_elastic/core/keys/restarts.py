"""Whether and when a failed query is started again: the strategy, and the values of each."""

from __future__ import annotations

from typing import Literal

from spark_elastic.core.keys.key import Key
from spark_elastic.core.keys.kinds import choice, duration, number, or_none, whole

StrategyName = Literal["none", "fixed-delay", "failure-rate", "exponential-delay"]

STRATEGY = Key[StrategyName](
    "restartStrategy.type",
    choice(
        "none",
        "fixed-delay",
        "failure-rate",
        "exponential-delay",
        also={
            "disable": "none",
            "off": "none",
            "fixeddelay": "fixed-delay",
            "failurerate": "failure-rate",
            "exponentialdelay": "exponential-delay",
        },
    ),
    "none",
    "Whether a query that fails is started again, and when; others of `restartStrategy` say more. "
    "`none`: never, as in plain Spark.",
    aliases=("restartStrategy",),
    adaptive="exponential-delay",
    per_query="always",
)
FIXED_DELAY_ATTEMPTS = Key(
    "restartStrategy.fixedDelay.attempts",
    whole(0),
    1,
    "`fixed-delay`: how often a query is started again.",
    per_query="always",
)
FIXED_DELAY_MS = Key(
    "restartStrategy.fixedDelay.delay",
    duration(),
    1_000,
    "`fixed-delay`: time from a failure to the next start.",
    per_query="always",
)
FAILURE_RATE_MAX_FAILURES = Key(
    "restartStrategy.failureRate.maxFailuresPerInterval",
    whole(1),
    1,
    "`failure-rate`: most failures in an interval after which a query is still started again.",
    per_query="always",
)
FAILURE_RATE_INTERVAL_MS = Key(
    "restartStrategy.failureRate.failureRateInterval",
    duration(1),
    60_000,
    "`failure-rate`: the interval in which failures are counted.",
    per_query="always",
)
FAILURE_RATE_DELAY_MS = Key(
    "restartStrategy.failureRate.delay",
    duration(),
    1_000,
    "`failure-rate`: time from a failure to the next start.",
    per_query="always",
)
INITIAL_BACKOFF_MS = Key(
    "restartStrategy.exponentialDelay.initialBackoff",
    duration(1),
    1_000,
    "`exponential-delay`: time from the first failure to the next start; later ones are longer.",
    per_query="always",
)
MAX_BACKOFF_MS = Key(
    "restartStrategy.exponentialDelay.maxBackoff",
    duration(1),
    60_000,
    "`exponential-delay`: longest time from a failure to the next start.",
    per_query="always",
)
BACKOFF_MULTIPLIER = Key(
    "restartStrategy.exponentialDelay.backoffMultiplier",
    number("above 1", lambda value: value > 1, "1.5"),
    1.5,
    "`exponential-delay`: by what the time grows with each failure.",
    per_query="always",
)
RESET_BACKOFF_THRESHOLD_MS = Key(
    "restartStrategy.exponentialDelay.resetBackoffThreshold",
    duration(1),
    3_600_000,
    "`exponential-delay`: after so long without a failure the time is the initial one again.",
    per_query="always",
)
JITTER_FACTOR = Key(
    "restartStrategy.exponentialDelay.jitterFactor",
    number("from 0 to 1", lambda value: 0 <= value <= 1, "0.1"),
    0.1,
    "`exponential-delay`: share of the time by which it is made longer or shorter at random, so that "
    "queries do not all start at once.",
    per_query="always",
)
ATTEMPTS_BEFORE_RESET_BACKOFF = Key[int | None](
    "restartStrategy.exponentialDelay.attemptsBeforeResetBackoff",
    or_none(whole(1)),
    None,
    "`exponential-delay`: how often a query is started again before a time without failures. None: "
    "without limit.",
    per_query="always",
)
