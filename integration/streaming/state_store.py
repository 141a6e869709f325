"""Spark's settings for streaming state."""

REPARTITIONABLE = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
}
"""The settings of a query whose state will be re-partitioned."""

FORMAT_1 = {**REPARTITIONABLE, "spark.sql.streaming.stateStore.checkpointFormatVersion": "1"}
"""The settings of one whose files of state have no ids of their own, as in plain Spark by default."""
