"""The parallelism of batch stages and of the sources that they read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from attrs import frozen

from spark_elastic.core.keys.key import BOOL, Key, choice, duration, or_none, size, whole
from spark_elastic.core.keys.rescaling import EXPLICIT_MEANINGS, ExplicitParallelism

# ---- The differences between the two presets: spark-elastic's own rules, and plain Flink's.


MIB = 1 << 20
PresetName = Literal["elastic", "flink"]


@frozen(kw_only=True)
class Preset:
    """A set of rules.

    `volume` is the bytes that one task should read. `even_split` applies to data that is split by count,
    because no limit gives an allowed number of ranges: it gets the number of tasks that its bytes ask for, or
    the largest allowed number. `fills_waves`: the number of tasks depends on the slots as well.
    `writes_most`: a shuffle writes as many partitions as tasks may ever read. `default_parallelism`:
    ``spark.default.parallelism`` is an upper bound where the application has set no number for shuffles, as
    ``parallelism.default`` is in Flink. Spark's own shuffles ignore it, and platforms set it for RDDs.
    `max_parallelism` None: it depends on the slots.

    The `volume` of `elastic` exceeds Flink's because the fixed cost of a task weighs more on Spark. Of the
    rules in Flink's vectors, which leave out broadcasts, pointwise inputs and split partitions, it changes
    only `even_split`; `tests/unit/core/batch/test_presets.py` lists where that shows.
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
    "Rules for batch stages. `elastic`: those of spark-elastic. `flink`: those of Flink's adaptive "
    "batch scheduler.",
)
DECISION_WAIT_MS = Key(
    "batch.decisionTimeout",
    duration(1),
    200,
    "How long planning waits for an answer about a batch stage before Spark's own rule decides.",
)
ENABLED = Key(
    "batch.autoParallelism.enabled",
    BOOL,
    True,
    "Whether spark-elastic chooses the parallelism of batch stages. If false, they run as in plain Spark.",
)
MIN_PARALLELISM = Key(
    "batch.autoParallelism.minParallelism",
    whole(1, 32_768),
    1,
    "Min partitions that a batch shuffle writes, and min tasks that read as many.",
)
MAX_PARALLELISM = Key[int | None](
    "batch.autoParallelism.maxParallelism",
    or_none(whole(1, 32_768)),
    None,
    "Max partitions that a batch shuffle writes, and max tasks that read them. None: the user's own "
    "number if `batch.explicitParallelism` says so, otherwise 128 per slot (preset `flink`: 128).",
)
AVG_DATA_VOLUME_PER_TASK = Key[int | None](
    "batch.autoParallelism.avgDataVolumePerTask",
    or_none(size(1)),
    None,
    "Bytes that one task of a batch stage should read. None: the application's "
    "spark.sql.adaptive.advisoryPartitionSizeInBytes, otherwise 64m (preset `flink`: 16m).",
)
OWN_PARALLELISM = Key[ExplicitParallelism | None](
    "batch.explicitParallelism",
    or_none(EXPLICIT_MEANINGS),
    None,
    "What the user's own `spark.sql.shuffle.partitions` means for batch stages. `fixed`: it is kept. "
    "`upperBound`: max partitions and tasks unless `batch.autoParallelism.maxParallelism` is set. "
    "`ignore`: nothing. None: `fixed` if `explicitParallelism` is, otherwise `upperBound`. With preset "
    "`flink`, `spark.default.parallelism` counts as well.",
)
INITIAL_ENABLED = Key(
    "batch.initialCount.enabled",
    BOOL,
    True,
    "Whether spark-elastic chooses the number of partitions that a batch shuffle writes.",
)
RANGES_ENABLED = Key(
    "batch.ranges.enabled",
    BOOL,
    True,
    "Whether spark-elastic chooses which partitions each task of a batch stage reads.",
)
DEFAULT_SOURCE_PARALLELISM = Key[int | None](
    "batch.autoParallelism.defaultSourceParallelism",
    or_none(whole(1, 32_768)),
    None,
    "Tasks that read a batch source of unknown size, as far as it can be divided, and max tasks that "
    "read any other. None: `batch.autoParallelism.maxParallelism` is the maximum.",
)
SOURCES_ENABLED = Key(
    "batch.sources.enabled",
    BOOL,
    True,
    "Whether spark-elastic chooses how many tasks read the sources of a batch query.",
)
DIVIDE_ORDERED = Key(
    "source.divideOrdered",
    BOOL,
    False,
    "Whether several tasks may share the records of one Kafka partition, in a batch query or in a "
    "micro-batch without a shuffle, if there are fewer partitions than slots. Records may then be "
    "processed in parallel and written in another order.",
)
KAFKA_LATEST = Key(
    "batch.sources.kafkaLatest",
    BOOL,
    False,
    "Whether Kafka reads up to the latest offset are divided as well. The latest offset is then looked "
    "up once, when the query is planned, and not by each run: a DataFrame that is collected twice ends "
    "twice at the same offsets.",
)
