"""Tests of Spark's own suites that prove nothing about the plugin, each with the reason.

Some assert a behaviour that the plugin changes on purpose, some also fail in plain Spark now and then.
"""

from __future__ import annotations

from collections.abc import Mapping

_STREAMING = "org.apache.spark.sql.streaming."
_EXECUTION = "org.apache.spark.sql.execution."
_OWN_NUMBER = "asserts the number of partitions that it has set"
_OF_OWN_NUMBER = "asserts what Spark makes of the number of partitions that it has set"
_COALESCED = (
    "SPARK-21977: coalesce(1) with aggregation should still be repartitioned when it has non-empty "
    "grouping keys"
)

Differences = dict[str, str]

#: With `spark.elastic.explicitParallelism` ignore, by suite and test. With `fixed`, none differ.
_IGNORING: Mapping[str, Differences] = {
    f"{_STREAMING}StreamingQuerySuite": {
        "SPARK-53942: changing the number of stateless shuffle partitions via config": _OWN_NUMBER,
    },
    f"{_STREAMING}StreamingAggregationSuite": {
        f"{_COALESCED} - state format version 1": _OWN_NUMBER,
        f"{_COALESCED} - state format version 2": _OWN_NUMBER,
        "SPARK-35896: metrics in StateOperatorProgress are output correctly": _OWN_NUMBER,
    },
    f"{_STREAMING}StreamingDeduplicationSuite": {
        "Partition key extraction - Dedupe": "asserts one key of state for each partition that it has set",
    },
    f"{_EXECUTION}streaming.sources.ForeachBatchSinkSuite": {
        "SPARK-52008: foreachBatch with show() should fail with appropriate error": _OWN_NUMBER,
    },
    f"{_EXECUTION}adaptive.AdaptiveQueryExecSuite": {
        "SPARK-31220, SPARK-32056: repartition by expression with AQE": _OWN_NUMBER,
        "SPARK-31220, SPARK-32056: repartition using sql and hint with AQE": _OWN_NUMBER,
        "SPARK-29544: adaptive skew join with different join types": _OF_OWN_NUMBER,
        "metrics of the shuffle read": _OF_OWN_NUMBER,
    },
    f"{_EXECUTION}streaming.MicroBatchExecutionSuite": {
        "Query cannot be started if there's an unfinished repartition batch": (
            "the plugin completes the interrupted re-partitioning, and the query starts"
        ),
    },
    f"{_EXECUTION}CoalesceShufflePartitionsSuite": {
        "determining the number of reducers: complex query 2": _OF_OWN_NUMBER,
    },
}


_COMMITS_TAKEN_AWAY = "takes commits away, in which format 2 names the state; plain Spark with it fails, too"
_OTHER_MESSAGE = "asserts the message of format 1; plain Spark with format 2 has another"

#: Also with `spark.elastic.stateStore` rescalable: new queries have RocksDB and checkpoint format 2.
_RESCALABLE: Mapping[str, Differences] = {
    f"{_STREAMING}StreamingQuerySuite": {
        "SPARK-53942: changing the number of stateful shuffle partitions via config": _OWN_NUMBER,
    },
    f"{_STREAMING}StreamingAggregationSuite": {
        f"prune results by {what}, complete mode - state format version {version}": _COMMITS_TAKEN_AWAY
        for what in ("current_date", "current_time or localtimestamp")
        for version in (1, 2)
    },
    f"{_EXECUTION}streaming.sources.ForeachBatchSinkSuite": {
        f"StateStore commit validation with {what}": _OTHER_MESSAGE
        for what in (
            "AvailableNow trigger",
            "multiple swallowed exceptions",
            "swallowed exceptions in foreachBatch",
        )
    },
}

_STOPPED_AT_ANY_POINT = (
    "stops a query right after a trigger; where that trigger's offsets were logged already, its batch fails"
    " at the next start before the test expects it (9 of 36 runs did, with the plugin and without)"
)

#: By suite and test: tests that pass or fail by chance without the plugin, so they are in no baseline.
BY_CHANCE: Mapping[str, Differences] = {
    f"{_STREAMING}TransformWithStateUnsafeRowSuite": {
        "test that introducing TTL after restart fails query (encoding = UnsafeRow)"
        f" ({changelog} changelog checkpointing)": _STOPPED_AT_ANY_POINT
        for changelog in ("with", "without")
    },
}


def differences(suite: str, settings: Mapping[str, str]) -> Differences:
    """Return the tests of a suite that may fail with the plugin and these settings, and why."""
    found: Differences = {}
    if settings.get("spark.elastic.explicitParallelism") == "ignore":
        found |= _IGNORING.get(suite, {})
    if settings.get("spark.elastic.stateStore") == "rescalable":
        found |= _RESCALABLE.get(suite, {})
    return found
