"""The start and the rescales of queries: the mode, the waits, and when moving state pays."""

from __future__ import annotations

from typing import Literal

from spark_elastic.core.keys.key import (
    BOOL,
    Key,
    Kind,
    any_text,
    choice,
    duration,
    number,
    or_none,
    size,
    whole,
)

Mode = Literal["reactive", "adaptive", "off"]
RescalePolicy = Literal["gain", "always"]
ExplicitParallelism = Literal["fixed", "upperBound", "ignore"]
StateStore = Literal["rescalable", "unchanged"]
Convert = Literal["ask", "atStart", "never"]

EXPLICIT_MEANINGS: Kind[ExplicitParallelism] = choice("fixed", "upperBound", "ignore")

MODE = Key[Mode](
    "schedulerMode",
    choice("reactive", "adaptive", "off"),
    "reactive",
    "`reactive`: queries use all available slots. `adaptive`: queries stay within their declared "
    "bounds, and executors are requested accordingly. `off`: nothing is changed, except that each "
    "checkpoint is read in the format it was written in.",
    per_query="start",
)
PYTHON = Key[str | None](
    "python",
    any_text("command", "python3"),
    None,
    "Python that runs the policy process. None: the first of the driver's own settings "
    "(`spark.pyspark.driver.python`, `spark.pyspark.python`, their environment variables) whose command "
    "starts with `python`, otherwise `python3`. If that is older than 3.10, the newest `python3.N` on "
    "`PATH`.",
)
POLICY_RETRY_MS = Key(
    "policyRetryInterval",
    duration(),
    600_000,
    "How long the application runs as plain Spark after the policy process has failed five times in ten "
    "minutes, before it is started again. Doubles each time, up to an hour.",
)
WARM_UP_MS = Key(
    "warmUpTimeout",
    duration(),
    10_000,
    "How long a rescale waits at most for new executors to warm up, while its query keeps running. "
    "Small jobs warm them up, so that no micro-batch meets a cold executor. 0: no warm-up.",
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
    "How long a query waits, at its start and after a failure, for the slots of its lower bound (one in "
    "reactive mode), before it fails. -1: no limit. If set, it also ends a running query that has had "
    "no executor for this long, which would otherwise wait as in plain Spark. With "
    "`spark.dynamicAllocation.enabled` queries do not wait, because Spark requests executors only for "
    "waiting tasks.",
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
    "Shortest time from a query's start, or its last rescale that moved state, to the next such rescale.",
    aliases=("adaptiveScheduler.scalingInterval.min",),
    per_query="always",
)
EXECUTING_STABILIZATION_MS = Key(
    "adaptiveScheduler.executing.resourceStabilizationTimeout",
    duration(),
    10_000,
    "How long a rescale that moves a query's state waits for more executors.",
    per_query="always",
)
MAX_DELAY_MS = Key[int | None](
    "adaptiveScheduler.rescaleTrigger.maxDelay",
    or_none(duration()),
    None,
    "Longest time between a change of executors and its evaluation. None: one trigger interval more "
    "than `adaptiveScheduler.rescaleTrigger.maxCheckpointFailures`.",
    per_query="always",
)
MAX_CHECKPOINT_FAILURES = Key(
    "adaptiveScheduler.rescaleTrigger.maxCheckpointFailures",
    whole(1),
    2,
    "Number of failed micro-batches after which a change of executors or bounds is evaluated without a "
    "committed one. Batches that fail before planning, or on slots that were just lost, do not count.",
    per_query="always",
)
MIN_PARALLELISM_INCREASE = Key(
    "adaptiveScheduler.minParallelismIncrease",
    whole(1),
    1,
    "Smallest growth for which a query's state is moved, summed over its shuffle and its sources.",
    per_query="always",
)
MAX_CONCURRENT_RESCALES = Key(
    "adaptiveScheduler.maxConcurrentRescales",
    whole(1),
    4,
    "Max queries whose state is moved at once. The others keep running and wait; the one that gains "
    "most is next.",
)
PREPARE_MOVES = Key(
    "adaptiveScheduler.prepareMoves",
    BOOL,
    True,
    "Copy a query's state to its new partitions while its micro-batches run, so that only the switch pauses "
    "it. Needs state in RocksDB with checkpoint format 2 and changelogs. `false`: the state is moved in a "
    "pause.",
    per_query="always",
)
MAX_COPY_TASKS = Key[int | None](
    "adaptiveScheduler.maxCopyTasks",
    or_none(whole(1)),
    None,
    "Max tasks that copy a query's state at once while its micro-batches run. None: as many as it has slots "
    "beyond its partitions; at least one.",
    per_query="always",
)
MAX_COPY_RATE = Key[int | None](
    "adaptiveScheduler.maxCopyRate",
    or_none(size(1)),
    None,
    "Max bytes per second, on average, at which a query's state is copied while its micro-batches run. "
    "None: no limit.",
    per_query="always",
)
SCALING_INTERVAL_MAX_MS = Key[int | None](
    "adaptiveScheduler.scalingInterval.max",
    or_none(duration()),
    None,
    "After this time without a rescale, a query grows to what its slots allow, even if it gains little. "
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
    "What the user's own `spark.sql.shuffle.partitions` means for streaming queries. `fixed`: it is "
    "kept. `upperBound`: max partitions. `ignore`: nothing.",
    adaptive="upperBound",
    per_query="always",
)
STATE_STORE = Key[StateStore](
    "stateStore",
    choice("rescalable", "unchanged"),
    "rescalable",
    "`rescalable`: new queries get RocksDB and checkpoint format 2 unless the user chose a state store, "
    "so that their state can be re-partitioned. `unchanged`: they keep Spark's default.",
    per_query="start",
)
CONVERT = Key[Convert](
    "stateStore.convert",
    choice("ask", "atStart", "never"),
    "ask",
    "What happens to a checkpoint whose state is in Spark's HDFS-backed store, or in RocksDB with checkpoint "
    "format 1. `atStart`: it is converted to the form of new queries when its query starts, unless the user "
    "chose a state store. `ask`: for the former, the log, the Elastic tab and `doctor --live` say how to "
    "convert it. `never`: they do not.",
    per_query="start",
)
KEEP_ORIGINAL_MS = Key(
    "stateStore.keepOriginal",
    duration(),
    86_400_000,
    "How long the files of a converted checkpoint's original state are kept after the converted one has "
    "committed a micro-batch.",
    per_query="start",
)
MAX_PARALLELISM = Key(
    "maxParallelism",
    whole(1, 32_768),
    32_768,
    "Max partitions of a query.",
    per_query="always",
)


# ---- Whether and when a failed query is restarted: the strategy, and the parameters of each one.


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
    "Whether and when a failed query is restarted; the other `restartStrategy` settings belong to one "
    "strategy each. `none`: never, as in plain Spark.",
    aliases=("restartStrategy",),
    adaptive="exponential-delay",
    per_query="always",
)
FIXED_DELAY_ATTEMPTS = Key(
    "restartStrategy.fixedDelay.attempts",
    whole(0),
    1,
    "`fixed-delay`: max restarts of a query.",
    per_query="always",
)
FIXED_DELAY_MS = Key(
    "restartStrategy.fixedDelay.delay",
    duration(),
    1_000,
    "`fixed-delay`: time from a failure to the restart.",
    per_query="always",
)
FAILURE_RATE_MAX_FAILURES = Key(
    "restartStrategy.failureRate.maxFailuresPerInterval",
    whole(1),
    1,
    "`failure-rate`: max failures in an interval after which a query is still restarted.",
    per_query="always",
)
FAILURE_RATE_INTERVAL_MS = Key(
    "restartStrategy.failureRate.failureRateInterval",
    duration(1),
    60_000,
    "`failure-rate`: interval in which failures are counted.",
    per_query="always",
)
FAILURE_RATE_DELAY_MS = Key(
    "restartStrategy.failureRate.delay",
    duration(),
    1_000,
    "`failure-rate`: time from a failure to the restart.",
    per_query="always",
)
INITIAL_BACKOFF_MS = Key(
    "restartStrategy.exponentialDelay.initialBackoff",
    duration(1),
    1_000,
    "`exponential-delay`: time from the first failure to the restart; later ones take longer.",
    per_query="always",
)
MAX_BACKOFF_MS = Key(
    "restartStrategy.exponentialDelay.maxBackoff",
    duration(1),
    60_000,
    "`exponential-delay`: longest time from a failure to the restart.",
    per_query="always",
)
BACKOFF_MULTIPLIER = Key(
    "restartStrategy.exponentialDelay.backoffMultiplier",
    number("above 1", lambda value: value > 1, "1.5"),
    1.5,
    "`exponential-delay`: factor by which the time grows with each failure.",
    per_query="always",
)
RESET_BACKOFF_THRESHOLD_MS = Key(
    "restartStrategy.exponentialDelay.resetBackoffThreshold",
    duration(1),
    3_600_000,
    "`exponential-delay`: time without a failure after which the initial backoff applies again.",
    per_query="always",
)
JITTER_FACTOR = Key(
    "restartStrategy.exponentialDelay.jitterFactor",
    number("from 0 to 1", lambda value: 0 <= value <= 1, "0.1"),
    0.1,
    "`exponential-delay`: largest share by which the time is randomly longer or shorter, so that "
    "queries do not all restart at once.",
    per_query="always",
)
ATTEMPTS_BEFORE_RESET_BACKOFF = Key[int | None](
    "restartStrategy.exponentialDelay.attemptsBeforeResetBackoff",
    or_none(whole(1)),
    None,
    "`exponential-delay`: max restarts without a time free of failures in between. None: no limit.",
    per_query="always",
)
