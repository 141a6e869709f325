"""Settings of Spark for streaming state."""

REPARTITIONABLE = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
}
"""What a query needs whose state is to be re-partitioned."""
