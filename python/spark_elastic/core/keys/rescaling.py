"""How queries start and rescale: the mode, the waits, what is worth moving state for."""

from __future__ import annotations

from typing import Literal

from spark_elastic.core.keys.key import Key
from spark_elastic.core.keys.kinds import Kind, any_text, choice, duration, or_none, whole

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
