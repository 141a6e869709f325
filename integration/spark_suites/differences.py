"""Tests of Spark's own that assert what is decided here in another way, each with the reason."""

from __future__ import annotations

from collections.abc import Mapping

_STREAMING = "org.apache.spark.sql.streaming."
_OWN_NUMBER = "asserts the number of partitions that it has set"
_COALESCED = (
    "SPARK-21977: coalesce(1) with aggregation should still be repartitioned when it has non-empty "
    "grouping keys"
)

Differences = dict[str, str]

#: With `spark.elastic.explicitParallelism` ignore, by suite and test. With `fixed` there are none.
_IGNORING: Mapping[str, Differences] = {
    f"{_STREAMING}StreamingQuerySuite": {
        "SPARK-53942: changing the number of stateless shuffle partitions via config": _OWN_NUMBER,
    },
    f"{_STREAMING}StreamingAggregationSuite": {
        f"{_COALESCED} - state format version 1": _OWN_NUMBER,
        f"{_COALESCED} - state format version 2": _OWN_NUMBER,
        "SPARK-35896: metrics in StateOperatorProgress are output correctly": _OWN_NUMBER,
    },
    f"{_STREAMING}StreamingInnerJoinWithVCFSuite": {
        f"{test} (with changelog checkpointing = {on}) (with virtual column family joins)": _OWN_NUMBER
        for test in (
            "SPARK-35896: metrics in StateOperatorProgress are output correctly",
            "streaming join should require StatefulOpClusteredDistribution from children",
        )
        for on in ("false", "true")
    },
    f"{_STREAMING}StreamingDeduplicationSuite": {
        "Partition key extraction - Dedupe": "asserts one key of state for each partition that it has set",
    },
    "org.apache.spark.sql.execution.streaming.sources.ForeachBatchSinkSuite": {
        "SPARK-52008: foreachBatch with show() should fail with appropriate error": _OWN_NUMBER,
    },
}


def differences(suite: str, settings: Mapping[str, str]) -> Differences:
    """Return the tests of a suite that may fail with the plugin and these settings, and why."""
    ignoring = settings.get("spark.elastic.explicitParallelism") == "ignore"
    return _IGNORING.get(suite, {}) if ignoring else {}
