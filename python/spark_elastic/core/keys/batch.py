"""The parallelism of batch stages and of what they read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from attrs import frozen

from spark_elastic.core.keys.key import BOOL, Key, choice, duration, or_none, size, whole
from spark_elastic.core.keys.rescaling import EXPLICIT_MEANINGS, ExplicitParallelism

# What the two presets decide differently: our own rules, and Flink's plain ones.


MIB = 1 << 20
PresetName = Literal["elastic", "flink"]


@frozen(kw_only=True)
class Preset:
    """A set of rules.

    `volume` is the bytes that one task should read. `even_split`: what is split by count, because no limit
    gives an allowed number of ranges, gets the number of tasks that its bytes ask for, or the most that are
    allowed.
    `fills_waves`: the number of tasks goes by the slots as well. `writes_most`: as many partitions are
    written as tasks may ever read. `default_parallelism`: ``spark.default.parallelism`` is an upper bound
    where the application has set no number for shuffles, as ``parallelism.default`` is in Flink; Spark's own
    shuffles do not look at it, and platforms set it for RDDs. `max_parallelism` None: goes by the slots.
    """

    volume: int
    even_split: Literal["by_volume", "most"]
    fills_waves: bool
    writes_most: bool
    default_parallelism: bool
    max_parallelism: int | None


ELASTIC = Preset(
    volume=64 * MIB,
    even_split="by_volume",
    fills_waves=True,
    writes_most=False,
    default_parallelism=False,
    max_parallelism=None,
)

FLINK = Preset(
    volume=16 * MIB,
    even_split="most",
    fills_waves=False,
    writes_most=True,
    default_parallelism=True,
    max_parallelism=128,
)

PRESETS: Mapping[PresetName, Preset] = {"elastic": ELASTIC, "flink": FLINK}


PRESET = Key[PresetName](
    "batch.preset",
    choice(*PRESETS),
    "elastic",
    "Rules for batch stages. `elastic`: our own. `flink`: those of Flink's adaptive batch scheduler.",
)
DECISION_WAIT_MS = Key(
    "batch.decisionTimeout",
    duration(1),
    200,
    "How long the planning of a batch stage waits for an answer before Spark's own rule decides.",
)
ENABLED = Key(
    "batch.autoParallelism.enabled",
    BOOL,
    True,
    "Whether the parallelism of batch stages is decided here. If not, they run as in plain Spark.",
)
MIN_PARALLELISM = Key(
    "batch.autoParallelism.minParallelism",
    whole(1, 32_768),
    1,
    "Fewest partitions that a batch shuffle writes, and fewest tasks that read as many.",
)
MAX_PARALLELISM = Key[int | None](
    "batch.autoParallelism.maxParallelism",
    or_none(whole(1, 32_768)),
    None,
    "Most partitions that a batch shuffle writes, and most tasks that read them. None: what "
    "`batch.explicitParallelism` makes of the user's own number, else 128 for each slot (preset `flink`: "
    "128).",
)
AVG_DATA_VOLUME_PER_TASK = Key[int | None](
    "batch.autoParallelism.avgDataVolumePerTask",
    or_none(size(1)),
    None,
    "Bytes that one task of a batch stage should read. None: what the application sets as "
    "spark.sql.adaptive.advisoryPartitionSizeInBytes, else 64m (preset `flink`: 16m).",
)
OWN_PARALLELISM = Key[ExplicitParallelism | None](
    "batch.explicitParallelism",
    or_none(EXPLICIT_MEANINGS),
    None,
    "What the user's own `spark.sql.shuffle.partitions` means to batch stages: never touched, the most "
    "partitions and tasks unless `batch.autoParallelism.maxParallelism` is set, nothing. None: `fixed` where "
    "`explicitParallelism` is, else `upperBound`. Preset `flink`: so does `spark.default.parallelism`.",
)
INITIAL_ENABLED = Key(
    "batch.initialCount.enabled",
    BOOL,
    True,
    "Whether the number of partitions that a batch shuffle writes is decided here.",
)
RANGES_ENABLED = Key(
    "batch.ranges.enabled",
    BOOL,
    True,
    "Whether it is decided here which partitions each task of a batch stage reads.",
)
DEFAULT_SOURCE_PARALLELISM = Key[int | None](
    "batch.autoParallelism.defaultSourceParallelism",
    or_none(whole(1, 32_768)),
    None,
    "Tasks that read a batch source of which nobody knows the size, as far as it can be divided, and the "
    "most that read any other. None: `batch.autoParallelism.maxParallelism` is the most.",
)
SOURCES_ENABLED = Key(
    "batch.sources.enabled",
    BOOL,
    True,
    "Whether it is decided here how many tasks share out what a batch query reads.",
)
DIVIDE_ORDERED = Key(
    "source.divideOrdered",
    BOOL,
    False,
    "Whether several tasks may share the records of one Kafka partition, in a batch query or in a "
    "micro-batch without a shuffle, where there are fewer partitions than slots. They may then be processed "
    "at once, and written in another order.",
)
KAFKA_LATEST = Key(
    "batch.sources.kafkaLatest",
    BOOL,
    False,
    "Whether that holds for reads of Kafka up to the latest offset, too. What is latest is then found "
    "out when a query is planned, and not by each of its runs: a DataFrame that is collected twice ends "
    "twice at the same offsets.",
)
