"""Write checkpoints with the Spark beside this Python.

usage: python -m integration.old_checkpoints.write FOLDER STORE QUERY...

`make.py` starts it with each Spark. The checkpoint of a query is FOLDER/QUERY.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from integration.jdk_tools import compile_java
from integration.old_checkpoints.queries import QUERIES
from integration.old_checkpoints.running import PARTITIONS, write
from integration.spark_minor import SPARK_MINOR

STORES = {"hdfs": "HDFSBackedStateStoreProvider", "rocksdb": "RocksDBStateStoreProvider"}
_HERE = Path(__file__).parent
_STATE_STORE = "spark.sql.streaming.stateStore"


def compile_programs(classes: Path) -> None:
    """Compile the programs in Java that this Spark can run. Raises CalledProcessError."""
    classes.mkdir(parents=True, exist_ok=True)
    for name in ("Grouped.java", *(("Processors.java",) if SPARK_MINOR >= (4, 0) else ())):
        compile_java(_HERE / name, classes)


def settings(name: str, store: str) -> dict[str, str]:
    """Return what the application that wrote the checkpoint has set."""
    query = QUERIES[name]
    conf = {
        f"{_STATE_STORE}.providerClass": (f"org.apache.spark.sql.execution.streaming.state.{STORES[store]}"),
        "spark.sql.shuffle.partitions": str(PARTITIONS),
        **query.conf,
    }
    if query.snapshots:
        conf[f"{_STATE_STORE}.minDeltasForSnapshot"] = "2"
        conf[f"{_STATE_STORE}.rocksdb.changelogCheckpointing.enabled"] = "true"
    return conf


def write_all(folder: Path, store: str, names: list[str]) -> None:
    """Write the checkpoints of these queries."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="checkpoints-") as scratch:
        classes = Path(scratch) / "classes"
        compile_programs(classes)
        with _session(classes, Path(scratch)) as spark:
            for name in names:
                began = time.monotonic()
                _write_one(spark, name, store, Path(scratch), folder / name)
                print(f"{name}: {time.monotonic() - began:.1f} s", flush=True)


def _write_one(spark: SparkSession, name: str, store: str, scratch: Path, checkpoint: Path) -> None:
    session = spark.newSession()
    for key, value in settings(name, store).items():
        session.conf.set(key, value)
    write(session, name, scratch / "in" / name, checkpoint)


@contextmanager
def _session(classes: Path, scratch: Path) -> Iterator[SparkSession]:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.driver.extraClassPath", str(classes))
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.local.dir", str(scratch / "local"))
        .config("spark.sql.warehouse.dir", str(scratch / "warehouse"))
        .config(f"{_STATE_STORE}.maintenanceInterval", "300ms")
    )
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    try:
        yield spark
    finally:
        spark.stop()


if __name__ == "__main__":
    target, chosen_store, *chosen = sys.argv[1:]
    write_all(Path(target), chosen_store, chosen)
