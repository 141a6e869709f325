"""Settings that users set for a session, with the tested values."""

from __future__ import annotations

from attrs import frozen
from hypothesis import strategies as st


@frozen
class Setting:
    """A setting and its values."""

    key: str
    values: st.SearchStrategy[str]


def _of(key: str, *values: str) -> Setting:
    return Setting(key, st.sampled_from(values))


SETTINGS = [
    _of("spark.sql.shuffle.partitions", "5", "1", "16", "40"),
    _of("spark.sql.adaptive.enabled", "false"),
    _of("spark.sql.adaptive.coalescePartitions.enabled", "false"),
    _of("spark.sql.adaptive.coalescePartitions.parallelismFirst", "false"),
    _of("spark.sql.adaptive.coalescePartitions.minPartitionSize", "64k", "8m"),
    _of("spark.sql.adaptive.coalescePartitions.minPartitionNum", "1", "4"),
    _of("spark.sql.adaptive.coalescePartitions.initialPartitionNum", "10", "100"),
    _of("spark.sql.adaptive.advisoryPartitionSizeInBytes", "10k", "1m", "256m"),
    _of("spark.sql.adaptive.localShuffleReader.enabled", "false"),
    _of("spark.sql.adaptive.skewJoin.enabled", "false"),
    _of("spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes", "1k"),
    _of("spark.sql.adaptive.applyFinalStageShuffleOptimizations", "false"),
    _of("spark.sql.adaptive.forceOptimizeSkewedJoin", "true"),
    _of("spark.sql.optimizer.canChangeCachedPlanOutputPartitioning", "false"),
    _of("spark.sql.autoBroadcastJoinThreshold", "-1", "1k"),
    _of("spark.sql.adaptive.autoBroadcastJoinThreshold", "-1"),
    _of("spark.sql.join.preferSortMergeJoin", "false"),
    _of("spark.sql.files.maxPartitionBytes", "16k", "1m"),
    _of("spark.sql.files.openCostInBytes", "0", "1k"),
    _of("spark.sql.files.minPartitionNum", "1", "30"),
    _of("spark.sql.files.maxPartitionNum", "2"),
    _of("spark.sql.leafNodeDefaultParallelism", "3"),
    _of("spark.sql.files.maxRecordsPerFile", "50"),
    _of("spark.sql.sources.useV1SourceList", ""),
    _of("spark.sql.sources.bucketing.autoBucketedScan.enabled", "false"),
    _of("spark.sql.exchange.reuse", "false"),
    _of("spark.sql.codegen.wholeStage", "false"),
    _of("spark.sql.ansi.enabled", "false"),
    _of("spark.sql.inMemoryColumnarStorage.batchSize", "100"),
    _of("spark.sql.execution.arrow.maxRecordsPerBatch", "10"),
    _of("spark.sql.execution.arrow.pyspark.enabled", "true"),
    _of("spark.sql.requireAllClusterKeysForCoPartition", "false"),
    _of("spark.sql.shuffledHashJoinFactor", "1"),
    _of("spark.sql.limit.initialNumPartitions", "3"),
]
