"""How queries start and rescale: the mode, the waits, what is worth moving state for."""

from __future__ import annotations

from typing import Literal

from spark_elastic.core.keys.key import Key, Kind, any_text, choice, duration, number, or_none, whole

Mode = Literal["reactive", "adaptive", "off"]
RescalePolicy = Literal["gain", "always"]
ExplicitParallelism = Literal["fixed", "upperBound", "ignore"]
StateStore = Literal["rescalable", "unchanged"]

EXPLICIT_MEANINGS: Kind[ExplicitParallelism] = choice("fixed", "upperBound", "ignore")

MODE = Key[Mode](
    "schedulerMode",
    choice("reactive", "adaptive", "off"),
    "reactive",
    "`reactive`: queries use all slots that are there. `adaptive`: queries keep within the bounds that "
    "are declared for them, and executors are requested for that. `off`: nothing is done but to read each "
    "checkpoint in the format that it was written in.",
    per_query="start",
)
PYTHON = Key[str | None](
    "python",
    any_text("command", "python3"),
    None,
    "Python that runs the policy process. None: the first of the driver's own "
    "(`spark.pyspark.driver.python`, `spark.pyspark.python`, their environment variables) whose name begins "
    "with `python`, else `python3`. In place of one before 3.10, the "
    "newest `python3.N` on `PATH` runs it.",
)
POLICY_RETRY_MS = Key(
    "policyRetryInterval",
    duration(),
    600_000,
    "How long the application runs as plain Spark, once the policy process has failed five times in ten "
    "minutes, before another one is tried. Twice as long each further time, at most an hour.",
)
WARM_UP_MS = Key(
    "warmUpTimeout",
    duration(),
    10_000,
    "How long a rescale waits at most, while its query keeps running, for executors that have just joined: "
    "these begin with small jobs of ours, so that no micro-batch meets a cold one. 0: they do not.",
)
START_WAIT_MS = Key(
    "startTimeout",
    duration(),
    10_000,
    "How long a query's start waits for the policy's answer before it starts as in plain Spark.",
)
RESOURCE_WAIT_MS = Key(
    "adaptiveScheduler.submission.resourceWaitTimeout",
    duration(forever=True),
    -1,
    "How long a query waits for the slots that its lower bound needs (in reactive mode that is one), at its "
    "start and after a failure. Then it fails. -1: it waits for as long as it takes. Set, it also ends a "
    "query that has run for so long without any executor, which otherwise waits as in plain Spark. Where "
    "`spark.dynamicAllocation.enabled` brings executors for tasks that wait, nothing waits here.",
    aliases=("adaptiveScheduler.resourceWaitTimeout",),
    adaptive=300_000,
    per_query="always",
)
SUBMISSION_STABILIZATION_MS = Key(
    "adaptiveScheduler.submission.resourceStabilizationTimeout",
    duration(),
    0,
    "How long a query's start waits for more executors once it has enough to run.",
    aliases=("adaptiveScheduler.resourceStabilizationTimeout",),
    adaptive=10_000,
    per_query="always",
)
COOLDOWN_MS = Key(
    "adaptiveScheduler.executing.cooldownAfterRescaling",
    duration(),
    30_000,
    "Shortest time between two rescales that move a query's state.",
    aliases=("adaptiveScheduler.scalingInterval.min",),
    per_query="always",
)
EXECUTING_STABILIZATION_MS = Key(
    "adaptiveScheduler.executing.resourceStabilizationTimeout",
    duration(),
    10_000,
    "How long a rescale that moves a query's state waits for more executors to come.",
    per_query="always",
)
MAX_DELAY_MS = Key[int | None](
    "adaptiveScheduler.rescaleTrigger.maxDelay",
    or_none(duration()),
    None,
    "Longest time between a change of the executors and its evaluation. None: one trigger interval more "
    "than `adaptiveScheduler.rescaleTrigger.maxCheckpointFailures`.",
    per_query="always",
)
MAX_CHECKPOINT_FAILURES = Key(
    "adaptiveScheduler.rescaleTrigger.maxCheckpointFailures",
    whole(1),
    2,
    "Number of micro-batches that fail after a change of executors or bounds before it is evaluated without "
    "a committed one. One that fails before it is planned, or on slots that were just lost, does not count.",
    per_query="always",
)
MIN_PARALLELISM_INCREASE = Key(
    "adaptiveScheduler.minParallelismIncrease",
    whole(1),
    1,
    "Smallest growth that is worth moving a query's state, added up over its vertices: its shuffle and each "
    "of its sources.",
    per_query="always",
)
MAX_CONCURRENT_RESCALES = Key(
    "adaptiveScheduler.maxConcurrentRescales",
    whole(1),
    4,
    "Most queries whose state is moved at once. The others run on and wait, the one that gains most is next.",
)
SCALING_INTERVAL_MAX_MS = Key[int | None](
    "adaptiveScheduler.scalingInterval.max",
    or_none(duration()),
    None,
    "After this time since the last rescale a query grows to what its slots allow, whatever that gains. "
    "None: never.",
    per_query="always",
)
RESCALE_POLICY = Key[RescalePolicy](
    "adaptiveScheduler.rescalePolicy",
    choice("gain", "always"),
    "gain",
    "`gain`: move a query's state only if that saves more than it costs. `always`: whenever the slots "
    "change.",
    per_query="always",
)
EXPLICIT_PARALLELISM = Key[ExplicitParallelism](
    "explicitParallelism",
    EXPLICIT_MEANINGS,
    "ignore",
    "What the user's own `spark.sql.shuffle.partitions` means to streaming queries: never touched, the most "
    "to use, nothing.",
    adaptive="upperBound",
    per_query="always",
)
STATE_STORE = Key[StateStore](
    "stateStore",
    choice("rescalable", "unchanged"),
    "rescalable",
    "`rescalable`: new queries whose user chose no state store get RocksDB and checkpoint format 2, so "
    "that their state can be re-partitioned.",
    per_query="start",
)
MAX_PARALLELISM = Key(
    "maxParallelism",
    whole(1, 32_768),
    32_768,
    "Most partitions that a query is given.",
    per_query="always",
)


# Whether and when a failed query is started again: the strategy, and the values of each.


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
