"""Queries of several kinds over the same JSON files, side by side, and regular batch jobs.

Every batch of a query is a line of OUTPUT/QUERY.jsonl with its number, the time and its rows; a batch that is
repeated adds another line. The query `copies` writes into Spark's own file sink instead, in the folder SINK.
While the file OUTPUT/ill-QUERY exists, the query's batches fail with its text. If the file OUTPUT/again-QUERY
exists, the query is stopped and started again, and the file is removed. While the query is stopped,
OUTPUT/stopped-QUERY exists. If the file OUTPUT/over-QUERY exists, two more are started on the query's
checkpoint, and each of them ends the one before. A failure of such an order is a line of OUTPUT/again.jsonl,
and the order is tried again. A waiter that does not return is a line there, too.
With the setting spark.chaos.queries there are only the queries that it names. The others, spark.chaos.*,
make the application one whose checkpoints plain Spark has begun: `rocksdb` names the queries whose user has
chosen RocksDB in format 1. `back` names those whose state the application brings back before it starts them
again, to a store in format 1 and that many `partitions`. Each outcome is a line of OUTPUT/back.jsonl.
The address of the UI is in OUTPUT/ui. The application ends when the file OUTPUT/_done exists and the queries
have read all input before it, or at once when the file OUTPUT/_stop exists.

usage: side_by_side.py INCOMING CHECKPOINTS OUTPUT SINK
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

if TYPE_CHECKING:
    import pandas as pd

PAUSE_S, LOOK_S, RETURN_S, ONCE_S = 3.0, 0.05, 30.0, 20
JOB_ROWS, JOB_KEYS = 26_000, 13
STORE = "spark.sql.streaming.stateStore"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def copies(rows: DataFrame) -> DataFrame:
    """Keep no state, but shuffle; each row is written once."""
    return rows.repartition("key").select("value")


def totals(rows: DataFrame) -> DataFrame:
    return rows.groupBy("key").agg(F.count("*").alias("n"), F.sum("value").alias("total"))


def firsts(rows: DataFrame) -> DataFrame:
    return rows.select(F.expr("value div 7").alias("code")).dropDuplicates(["code"])


def pairs(rows: DataFrame) -> DataFrame:
    """Join each third value with the one that is 120 larger, which arrives two seconds later."""
    timed = rows.withColumn("time", F.timestamp_seconds("second")).withWatermark("time", "60 seconds")
    later = timed.select(F.col("value").alias("one"), "time")
    earlier = timed.where("value % 3 = 0").select(
        (F.col("value") + 120).alias("other"), F.col("time").alias("then")
    )
    near = F.expr("one = other AND then BETWEEN time - INTERVAL 10 SECONDS AND time")
    return later.join(earlier, near).select("one")


class Memory(StatefulProcessor):
    """Keeps count and sum of a key, and the frequency of its values modulo 5."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._sums = handle.getValueState("sums", "n long, total long")
        self._often = handle.getMapState("often", "digit int", "n long")

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame], timerValues: Any
    ) -> Iterator[pd.DataFrame]:
        import pandas as pd

        n, total = self._sums.get() or (0, 0) if self._sums.exists() else (0, 0)
        for value in (int(value) for piece in rows for value in piece["value"]):
            n, total, digit = n + 1, total + value, (value % 5,)
            (before,) = self._often.getValue(digit) or (0,) if self._often.containsKey(digit) else (0,)
            self._often.updateValue(digit, (before + 1,))
        self._sums.update((n, total))
        # The map must agree with the sum, or a part of the state is lost.
        counted = sum(times for _, (times,) in self._often.iterator())
        yield pd.DataFrame({"key": [key[0]], "n": [n], "total": [total if counted == n else -1]})

    def close(self) -> None:
        pass


def memories(rows: DataFrame) -> DataFrame:
    """Keep the same totals in Python, in two kinds of state."""
    return rows.groupBy("key").transformWithStateInPandas(
        statefulProcessor=Memory(),
        outputStructType="key int, n long, total long",
        outputMode="Update",
        timeMode="None",
    )


QUERIES: dict[str, tuple[Callable[[DataFrame], DataFrame], str]] = {
    "copies": (copies, "append"),
    "totals": (totals, "update"),
    "firsts": (firsts, "append"),
    "pairs": (pairs, "append"),
    "memories": (memories, "update"),
}


def note(file: Path, **said: object) -> None:
    """Append a line."""
    with file.open("a") as lines:
        lines.write(json.dumps({"at": time.time_ns() // 1_000_000, **said}) + "\n")


def writer(output: Path, name: str) -> Callable[[DataFrame, int], None]:
    ill = output / f"ill-{name}"

    def write(batch: DataFrame, number: int) -> None:
        if ill.exists():
            raise ValueError(ill.read_text())
        note(output / f"{name}.jsonl", batch=number, rows=[list(row) for row in batch.collect()])

    return write


def job(spark: SparkSession, output: Path) -> None:
    """Count in two stages; the result is known in advance."""
    counted = spark.range(0, JOB_ROWS, 1, 4).groupBy((F.col("id") % JOB_KEYS).alias("key")).count()
    try:
        right = {row["count"] for row in counted.collect()} == {JOB_ROWS // JOB_KEYS}
        note(output / "jobs.jsonl", right=right)
    except Exception as error:
        note(output / "jobs.jsonl", error=str(error))


def in_format_1(spark: SparkSession) -> SparkSession:
    """Return a session whose user has chosen a store for state."""
    session = spark.newSession()
    session.conf.set(f"{STORE}.providerClass", ROCKSDB)
    session.conf.set(f"{STORE}.checkpointFormatVersion", "1")
    return session


def wait_for(query: StreamingQuery) -> None:
    """Wait for the end of a query, with or without an error."""
    with suppress(Exception):
        query.awaitTermination()


class Running:
    """The running queries, by name."""

    def __init__(self, spark: SparkSession, incoming: str, checkpoints: str, output: Path, sink: str) -> None:
        self._spark, self._incoming, self._checkpoints = spark, incoming, checkpoints
        self._output, self._sink = output, sink
        conf = spark.sparkContext.getConf()
        self._chosen = set(str(conf.get("spark.chaos.rocksdb", "")).split(","))
        back = str(conf.get("spark.chaos.back", "")).split(",")
        self._back = dict(of.split("=") for of in back if of)
        self._partitions = int(conf.get("spark.chaos.partitions", "0"))
        self._queries: dict[str, StreamingQuery] = {}
        self._waiters: dict[str, threading.Thread] = {}
        self._replaced: list[tuple[str, threading.Thread]] = []
        self._lock = threading.Lock()
        for name in str(conf.get("spark.chaos.queries", ",".join(QUERIES))).split(","):
            self.start(name)

    def start(self, name: str, shown: str | None = None, **trigger: Any) -> None:
        build, mode = QUERIES[name]
        session = in_format_1(self._spark) if name in self._chosen else self._spark
        files = session.readStream.schema("key int, value long, second long")
        rows = build(files.option("maxFilesPerTrigger", 20).json(self._incoming))
        query = rows.writeStream.queryName(shown or name).outputMode(mode)
        query = query.trigger(**(trigger or {"processingTime": "1 second"}))
        query = query.option("checkpointLocation", f"{self._checkpoints}/{name}")
        if name == "copies":
            query = query.format("json").option("path", self._sink)
        else:
            query = query.foreachBatch(writer(self._output, name))
        self._queries[name] = query.start()
        if name in self._waiters:
            self._replaced.append((name, self._waiters[name]))
        self._waiters[name] = threading.Thread(target=wait_for, args=(self._queries[name],), daemon=True)
        self._waiters[name].start()

    def obey(self) -> None:
        """Stop and start queries on request, until the whole application should stop."""
        while not (self._output / "_stop").exists():
            for wanted in (*self._output.glob("again-*"), *self._output.glob("over-*")):
                try:
                    with self._lock:
                        self._again(wanted)
                except Exception as error:
                    note(self._output / "again.jsonl", error=str(error))
            time.sleep(LOOK_S)
        self._spark.stop()

    def _again(self, wanted: Path) -> None:
        order, _, name = wanted.name.partition("-")
        stopped = self._output / f"stopped-{name}"
        if order == "again":
            self._queries[name].stop()
            stopped.touch()
            if name in self._back:
                self._bring_back(name)
        elif self._queries[name].name == name:  # else the first of the two has already been started
            self.start(name, f"{name}-too")
        self.start(name)
        while self._replaced:
            of, waiter = self._replaced.pop()
            waiter.join(RETURN_S)
            if waiter.is_alive():
                note(self._output / "again.jsonl", waits=of)
        stopped.unlink(missing_ok=True)
        wanted.unlink()

    def _bring_back(self, name: str) -> None:
        """Give a checkpoint the form of plain Spark's again, behind a batch that has begun."""
        jvm: Any = self._spark._jvm
        rewrite = jvm.org.apache.spark.sql.elastic.OfflineCheckpoint.rewrite
        place = f"{self._checkpoints}/{name}"
        try:
            self.start(name, availableNow=True)
            self._queries[name].awaitTermination(ONCE_S)
            self._queries[name].stop()
            batch = rewrite(self._spark._jsparkSession, place, self._partitions, self._back[name])
            note(self._output / "back.jsonl", query=name, batch=batch)
        except Exception as error:
            note(self._output / "back.jsonl", query=name, error=str(error)[:300])

    def end(self) -> None:
        """Let all queries read their remaining input, and stop them."""
        with self._lock:
            for query in self._queries.values():
                query.processAllAvailable()
                query.stop()


def main(incoming: str, checkpoints: str, place: str, sink: str) -> None:
    """Run the queries until the input is marked as complete."""
    output = Path(place)
    spark = SparkSession.builder.appName("side-by-side").getOrCreate()
    running = Running(spark, incoming, checkpoints, output, sink)
    obeying = threading.Thread(target=running.obey, daemon=True)
    obeying.start()
    hidden = output / ".ui"
    hidden.write_text(str(spark.sparkContext.uiWebUrl))
    hidden.rename(output / "ui")
    while obeying.is_alive() and not (output / "_done").exists():
        try:
            job(spark, output)
        except Exception:
            if not (output / "_stop").exists():
                raise  # the driver has ended
        obeying.join(PAUSE_S)
    if not obeying.is_alive():
        return
    running.end()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
