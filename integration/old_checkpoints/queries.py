"""Queries with every stateful operator of Spark 3.5 to 4.3, whose micro-batches repeat exactly.

Each reads a folder of JSON files, a file per micro-batch, and depends on the clock in nothing that it emits:
what expires in processing time does so in the next micro-batch, or never.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from attrs import field, frozen
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

SCHEMA = "key int, name string, value long, seconds long"
_NEVER_MS = 10_000 * 24 * 3_600_000
_STATE = "spark.sql.streaming"


class Source:
    """The input of one query in one session."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self._folder = folder

    def rows(self) -> DataFrame:
        """Return a stream of all rows."""
        stream = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        rows = stream.json(str(self._folder))
        return rows.select("key", "name", "value", F.timestamp_seconds("seconds").alias("time"))

    def timed(self) -> DataFrame:
        """Return a stream of all rows with a watermark."""
        return self.rows().withWatermark("time", "10 seconds")

    def of_java(self, program: str, method: str, rows: DataFrame, *arguments: str) -> DataFrame:
        """Return what a method of a Java program of this folder makes of a stream."""
        program_in_jvm = getattr(self.spark._jvm, program)
        made = getattr(program_in_jvm, method)(rows._jdf, *arguments)
        return DataFrame(made, self.spark)


@frozen
class Query:
    """A query, and how it ran when its checkpoint was written.

    `once` is for a query that would run micro-batches without input forever. Spark can start a new one
    `since` one version and `until` another. One with `rocksdb` runs with no other store. One with `snapshots`
    writes one sooner than Spark usually does, and with RocksDB changes in between.
    """

    build: Callable[[Source], DataFrame]
    mode: str = "append"
    conf: Mapping[str, str] = field(factory=dict)
    once: bool = False
    since: tuple[int, int] = (3, 5)
    until: tuple[int, int] = (4, 3)
    rocksdb: bool = False
    snapshots: bool = False


# ---- Aggregation


def _totals(rows: DataFrame, *keys: Column | str) -> DataFrame:
    return rows.groupBy(*keys).agg(F.count("*").alias("n"), F.sum("value").alias("total"))


def _of_many_types(source: Source) -> DataFrame:
    """Group by keys of many types, some of them null; aggregate into values of fixed and of any length."""
    key, value = F.col("key") % 60, F.col("value")
    keys = source.rows().select(
        F.when(value % 3 > 0, F.concat(F.lit("name "), value % 3)).alias("name"),
        F.when(key % 3 > 0, key.cast("decimal(30, 2)")).alias("decimal"),
        (key % 2 == 0).alias("flag"),
        F.when(key % 7 > 0, F.date_add(F.lit("2020-01-01"), key % 50)).alias("day"),
        F.when(key % 5 == 0, F.lit(float("nan"))).otherwise(key / F.lit(-8.0)).alias("double"),
        F.struct((key % 4).alias("a"), F.concat(F.lit("b"), key).alias("b")).alias("both"),
        "value",
    )
    return keys.groupBy("name", "decimal", "flag", "day", "double", "both").agg(
        F.max(F.struct("value", "day")).alias("newest"),
        F.sum(value.cast("decimal(38, 4)")).alias("sum"),
        F.avg("value").alias("mean"),
        F.max(F.concat(F.lit("text "), value)).alias("text"),
        F.approx_count_distinct("value").alias("about"),
        F.sort_array(F.collect_set("value")).alias("all"),
    )


def _windows(rows: DataFrame) -> DataFrame:
    return _totals(rows, F.window("time", "20 seconds", "10 seconds"), (F.col("key") % 40).alias("k"))


def _sessions(source: Source) -> DataFrame:
    # Some sessions end, others are extended by each micro-batch.
    some = source.timed().where("key % 2 = 0 OR value % 300 < 100")
    sessions = _totals(some, F.session_window("time", "12 seconds"), (F.col("key") % 60).alias("k"))
    return sessions.select("session_window.*", "k", "n", "total")


def _distinct(source: Source) -> DataFrame:
    """Return distinct rows; only the size of its state tells whether it knows them."""
    return source.rows().select("key", (F.col("value") % 2).alias("odd")).distinct()


# ---- Deduplication


def _repeated(rows: DataFrame) -> DataFrame:
    """Return values of which about half come again in later files."""
    value = F.col("value")
    return rows.select(F.when(value % 7 == 0, value).otherwise(value % 500).alias("value"), "time")


def _few(source: Source) -> DataFrame:
    """Return rows with few keys: at the times that two files share, many of them come again."""
    return source.timed().withColumn("key", F.col("key") % 5)


# ---- Joins


def _joined(source: Source, how: str) -> DataFrame:
    left = source.timed().where("value % 3 > 0").select("key", "value", "time")
    right = (
        source.timed()
        .where("value % 4 > 0")
        .select(
            F.col("key").alias("other"), (F.col("value") * 10).alias("tenfold"), F.col("time").alias("then")
        )
    )
    near = F.expr("key = other AND then BETWEEN time - INTERVAL 30 SECONDS AND time + INTERVAL 30 SECONDS")
    pairs = left.join(right, near, how)
    return pairs if how == "left_semi" else pairs.select("key", "value", "other", "tenfold")


def _joined_forever(source: Source) -> DataFrame:
    """Join without a watermark: state only grows. A key that is null never finds another one."""
    keys = [(F.col("key") % 50).alias("k"), F.when(F.col("value") % 11 > 0, F.lit("some")).alias("some")]
    left = source.rows().where("value % 5 = 0").select(*keys, "value")
    right = source.rows().where("value % 5 = 1").select(*keys, "time")
    return left.join(right, ["k", "some"])


def _join(how: str, version: int) -> Query:
    return Query(
        lambda source: _joined(source, how),
        conf={f"{_STATE}.join.stateFormatVersion": str(version)},
        since=(4, 1) if version == 3 else (3, 5),
        # Later ones only go on from a checkpoint of this format.
        until=(4, 0) if version == 1 else (4, 3),
        rocksdb=version == 3,
        snapshots=how == "full_outer",
    )


# ---- Functions


def _groups(method: str, timeout: str, version: int) -> Query:
    def build(source: Source) -> DataFrame:
        rows = source.timed() if timeout == "event time" else source.rows()
        return source.of_java("Grouped", method, rows, timeout)

    return Query(
        build,
        "update",
        {f"{_STATE}.flatMapGroupsWithState.stateFormatVersion": str(version)},
        once=timeout == "processing time",
        snapshots=timeout == "event time",
    )


def _in_pandas(source: Source, timeout: str) -> DataFrame:
    def add(key: Any, pieces: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        n, total = state.get if state.exists else (0, 0)
        if state.hasTimedOut:
            state.remove()
            yield pd.DataFrame({"name": [key[0]], "n": [n], "total": [-total]})
            return
        for piece in pieces:
            n, total = n + len(piece), total + int(piece["value"].sum())
        state.update((n, total))
        if timeout == GroupStateTimeout.EventTimeTimeout:
            state.setTimeoutTimestamp(state.getCurrentWatermarkMs() + (20_000 if n % 2 else 90_000))
        else:
            state.setTimeoutDuration(1 if n % 2 else _NEVER_MS)
        yield pd.DataFrame({"name": [key[0]], "n": [n], "total": [total]})

    rows = source.timed() if timeout == GroupStateTimeout.EventTimeTimeout else source.rows()
    return rows.groupBy("name").applyInPandasWithState(
        add, "name string, n long, total long", "n long, total long", "update", timeout
    )


def _processor(method: str, **more: Any) -> Query:
    def build(source: Source) -> DataFrame:
        rows = source.timed() if method == "timers" else source.rows()
        return source.of_java("Processors", method, rows)

    once = method in ("expiring", "lasting")
    return Query(build, "update", once=once, since=(4, 0), rocksdb=True, **more)


def _processor_in_pandas(source: Source, expires: bool) -> DataFrame:
    # Only from Spark 4.0 on there is something to import.
    from integration.old_checkpoints.processor import Memory

    rows = source.rows() if expires else source.timed()
    return rows.groupBy("key").transformWithStateInPandas(
        statefulProcessor=Memory(expires),
        outputStructType="key int, why string, known string",
        outputMode="Update",
        timeMode="ProcessingTime" if expires else "EventTime",
    )


# ---- Several operators


def _window_after_deduplication(source: Source) -> DataFrame:
    return _windows(_few(source).dropDuplicates(["key", "time"]))


def _window_after_join(source: Source) -> DataFrame:
    left = source.timed().select("key", "value", "time")
    right = (
        source.timed().where("value % 4 = 0").select(F.col("key").alias("other"), F.col("time").alias("then"))
    )
    near = F.expr("key = other AND then BETWEEN time AND time + INTERVAL 20 SECONDS")
    return _windows(left.join(right, near, "left_outer").drop("then"))


def _windows_of_windows(source: Source) -> DataFrame:
    small = _totals(source.timed(), F.window("time", "5 seconds"), (F.col("key") % 20).alias("k"))
    large = small.groupBy(F.window("window", "20 seconds"), (F.col("k") % 4).alias("k4"))
    return large.agg(F.count("*").alias("windows"), F.sum("n").alias("n"))


_AVRO = {f"{_STATE}.stateStore.encodingFormat": "avro"}
_EVENT, _PROCESSING = GroupStateTimeout.EventTimeTimeout, GroupStateTimeout.ProcessingTimeTimeout

QUERIES: dict[str, Query] = {
    "aggregation_update": Query(lambda source: _totals(source.rows(), "key"), "update", snapshots=True),
    "aggregation_complete": Query(lambda source: _totals(source.rows(), "name"), "complete"),
    "aggregation_format_1": Query(
        lambda source: _totals(source.rows(), "name", F.col("key") % 3),
        "update",
        {f"{_STATE}.aggregation.stateFormatVersion": "1"},
    ),
    "aggregation_without_keys": Query(lambda source: _totals(source.rows()), "complete"),
    "aggregation_many_types": Query(_of_many_types, "update"),
    "distinct": Query(_distinct, "update"),
    "window_append": Query(lambda source: _windows(source.timed())),
    "window_update": Query(lambda source: _windows(source.timed()), "update"),
    "session_window": Query(_sessions, snapshots=True),
    "deduplication": Query(lambda source: _repeated(source.rows()).dropDuplicates(["value"])),
    "deduplication_watermark": Query(
        lambda source: _few(source).dropDuplicates(["key", "time"]), snapshots=True
    ),
    "deduplication_within_watermark": Query(
        lambda source: source.timed().dropDuplicatesWithinWatermark(["key"])
    ),
    "limit": Query(lambda source: source.rows().where("key % 3 = 0").limit(200)),
    "join_forever": Query(_joined_forever),
    **{
        f"join_{how}_format_{version}": _join(how, version)
        for version, kinds in {
            1: ("inner",),
            2: ("inner", "left_outer", "right_outer", "full_outer", "left_semi"),
            3: ("inner", "left_outer", "full_outer", "left_semi"),
        }.items()
        for how in kinds
    },
    **{
        f"{method}_groups_{timeout.replace(' ', '_')}_format_{version}": _groups(method, timeout, version)
        for method in ("flat", "map")
        for timeout in ("no time", "event time", "processing time")
        for version in (1, 2)
        # Spark cannot read its own state of format 1 with such times: it has too few bits for them.
        if (timeout, version) != ("processing time", 1)
    },
    "pandas_groups_event_time": Query(lambda source: _in_pandas(source, _EVENT), "update"),
    "pandas_groups_processing_time": Query(
        lambda source: _in_pandas(source, _PROCESSING), "update", once=True
    ),
    "processor": _processor("plain"),
    "processor_timers": _processor("timers", snapshots=True),
    "processor_expiring": _processor("expiring"),
    "processor_lasting": _processor("lasting", snapshots=True),
    "processor_avro": _processor("timers", conf=_AVRO),
    "processor_in_pandas_timers": Query(
        lambda source: _processor_in_pandas(source, False), "update", since=(4, 0), rocksdb=True
    ),
    "processor_in_pandas_expiring": Query(
        lambda source: _processor_in_pandas(source, True), "update", once=True, since=(4, 0), rocksdb=True
    ),
    "deduplication_then_window": Query(_window_after_deduplication),
    "join_then_window": Query(_window_after_join),
    "window_then_window": Query(_windows_of_windows),
}
