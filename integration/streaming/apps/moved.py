"""Run a query with state over Parquet files of keys and values, and write what it emits, batch by batch.

The setting `spark.moved.operator` says which: `totals` (count and sum of each key), `memories` (the same by
transformWithState), or `pairs` (the values of each key, joined with each other). With `spark.moved.steady`, a
query goes on until the process ends. Else each reads all available input and ends; they run one after
another. A repeated micro-batch replaces its first output. The error of a query that cannot run is written
to OUTPUT/error.

usage: moved.py INPUT CHECKPOINT OUTPUT [CHECKPOINT OUTPUT]...
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

if TYPE_CHECKING:
    import pandas as pd

source, *places = sys.argv[1:]
spark = SparkSession.builder.appName("moved").getOrCreate()
rows = spark.readStream.schema("key long, value long").option("maxFilesPerTrigger", 1).parquet(source)


class Memory(StatefulProcessor):
    """Keeps count and sum in two variables."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._count = handle.getValueState("count", "n long")
        self._sums = handle.getMapState("sums", "kind int", "total long")

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        import pandas as pd

        known = self._count.get() if self._count.exists() else None
        count = known[0] if known else 0
        before = self._sums.getValue((0,)) if self._sums.containsKey((0,)) else None
        total = before[0] if before else 0
        for piece in rows:
            count += len(piece)
            total += int(piece["value"].sum())
        self._count.update((count,))
        self._sums.updateValue((0,), (total,))
        yield pd.DataFrame({"key": [key[0]], "n": [count], "total": [total]})

    def close(self) -> None:
        pass


def memories() -> DataFrame:
    schema = "key long, n long, total long"
    return rows.groupBy("key").transformWithStateInPandas(Memory(), schema, "update", "none")


def totals() -> DataFrame:
    return rows.groupBy("key").agg(F.count("*").alias("n"), F.sum("value").alias("total"))


def pairs() -> DataFrame:
    one, other = (rows.withColumnRenamed("value", name) for name in ("one", "other"))
    return one.join(other, "key")


def writer_to(output: str) -> Callable[[DataFrame, int], None]:
    def write(batch: DataFrame, number: int) -> None:
        batch.write.mode("overwrite").parquet(f"{output}/{number:05d}")

    return write


operator = spark.conf.get("spark.moved.operator")
steady = spark.conf.get("spark.moved.steady", "false") == "true"
result = {"totals": totals, "memories": memories, "pairs": pairs}[str(operator)]()
for checkpoint, output in zip(places[::2], places[1::2], strict=True):
    Path(output).mkdir(exist_ok=True)
    writer = result.writeStream.outputMode("append" if operator == "pairs" else "update")
    writer = writer.option("checkpointLocation", checkpoint).foreachBatch(writer_to(output))
    often = writer.trigger(processingTime="100 milliseconds")
    try:
        (often if steady else writer.trigger(availableNow=True)).start().awaitTermination()
    except Exception as error:
        Path(output, "error").write_text(str(error))
spark.stop()
