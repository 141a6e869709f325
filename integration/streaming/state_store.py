"""Spark's settings for streaming state."""

REPARTITIONABLE = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
}
"""The settings of a query whose state will be re-partitioned."""
