"""Tests of queries that start from a savepoint: their state, what they refuse, and interrupted starts."""

from __future__ import annotations

import json
import os
import re
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import frozen
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from integration.streaming.driver import Driver
from integration.streaming.files import SCHEMA, Inbox
from integration.streaming.test_savepoints import Asking, Totals, savepoints, session, start, starting_from
from integration.streaming.test_savepoints import asking as asking
from integration.streaming.test_storage_away import STORAGE, Storage
from integration.streaming.test_storage_away import jvm as jvm
from integration.streaming.test_storage_away import storage as storage
from integration.streaming.world import stream

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

NOTE = ".spark-elastic-restore"


def saved(jvm: Driver, asking: Asking, inbox: Inbox, folder: Path, batches: int = 4) -> Path:
    """Return a savepoint of the query `totals` after this many micro-batches."""
    with session(jvm, asking) as spark:
        query = start(spark, inbox, Totals(), folder / "checkpoint")
        inbox.put(batches)
        query.processAllAvailable()
        asking.savepoint(query, str(folder / "savepoints"))
        _, path = asking.taken()
        query.stop()
    return Path(path.removeprefix("file:"))


@frozen
class Sink:
    """A file sink, and settings of its log."""

    format: str
    conf: dict[str, str]
    parts: tuple[str, ...] = ()
    earlier: int = 0
    """The number of micro-batches of another query in its folder."""


LOG = "spark.sql.streaming.fileSink.log"
SINKS = {
    "as Spark has it": Sink("json", {}),
    "in partitions": Sink("parquet", {f"{LOG}.compactInterval": "3"}, ("half",)),
    "with another's output": Sink("csv", {f"{LOG}.compactInterval": "4"}, earlier=6),
    "that removes its old entries": Sink(
        "text",
        {
            f"{LOG}.compactInterval": "2",
            f"{LOG}.cleanupDelay": "0ms",
            "spark.sql.streaming.minBatchesToRetain": "1",
        },
    ),
}


@pytest.mark.parametrize(
    "kind",
    ["as Spark has it", *(pytest.param(kind, marks=pytest.mark.matrix) for kind in list(SINKS)[1:])],
)
def test_a_file_sink_goes_on_in_another_folder(
    jvm: Driver, asking: Asking, inbox: Inbox, tmp_path: Path, kind: str
) -> None:
    """Its log is compacted every few micro-batches, and is read completely from the last compaction on."""
    sink = SINKS[kind]

    def write(spark: SparkSession, checkpoint: str, out: str, name: str = "written") -> StreamingQuery:
        value = F.col("value").cast("string").alias("value")
        half = (F.col("value") % 2).alias("half")
        rows = stream(spark, inbox).select(value, *([half] if sink.parts else []))
        writer = rows.writeStream.format(sink.format).partitionBy(*sink.parts).queryName(name)
        return writer.option("checkpointLocation", str(tmp_path / checkpoint)).start(str(tmp_path / out))

    def values(spark: SparkSession) -> list[int]:
        found = spark.read.schema("value string").format(sink.format).load(str(tmp_path / "second"))
        return sorted(int(row.value) for row in found.select("value").collect())

    with session(jvm, asking, **sink.conf) as spark:
        if sink.earlier:
            inbox.put(sink.earlier)
            query = write(spark, "another", "second", "another")
            query.processAllAvailable()
            query.stop()
        inbox.put(13 - sink.earlier)
        query = write(spark, "checkpoint", "first")
        query.processAllAvailable()
        asking.savepoint(query, str(tmp_path / "savepoints"))
        batch, path = asking.taken()
        query.stop()
    earlier, before = inbox.values()[: sink.earlier * 10], inbox.rows
    assert batch == 12
    with session(jvm, asking, **sink.conf, **starting_from(path, "written")) as spark:
        query = write(spark, "other", "second")
        for _ in range(9):
            inbox.put()
            query.processAllAvailable()
            assert values(spark) == earlier + inbox.values()[before:]
        query.stop()
        # Both the writer and the reader of the log detect from its files how it is compacted.
        query = write(spark, "other", "second")
        inbox.put(9)
        query.processAllAvailable()
        assert values(spark) == earlier + inbox.values()[before:]
        query.stop()


@pytest.mark.matrix
def test_folders_may_have_any_name(jvm: Driver, asking: Asking, inbox: Inbox, tmp_path: Path) -> None:
    """A URI would escape most of this one."""
    place = tmp_path / "a b%20c#d ü:e"

    def write(spark: SparkSession, checkpoint: str, out: str) -> StreamingQuery:
        writer = stream(spark, inbox).writeStream.format("json").queryName("written")
        return writer.option("checkpointLocation", str(place / checkpoint)).start(str(place / out))

    with session(jvm, asking) as spark:
        query = write(spark, "checkpoint", "first")
        inbox.put(11)
        query.processAllAvailable()
        asking.savepoint(query, str(place / "savepoints"), within=str(place))
        query.processAllAvailable()
        asking.said(re.compile("Savepoint of micro-batch 10 complete: "))
        query.stop()
    (taken,) = savepoints(place / "savepoints")
    before = inbox.rows
    path = str(place / "savepoints" / taken)
    with session(jvm, asking, **starting_from(path, "written")) as spark:
        query = write(spark, "other", "second")
        inbox.put(12)
        query.processAllAvailable()
        query.stop()
        found = spark.read.schema(SCHEMA).json(str(place / "second"))
        assert sorted(row.value for row in found.collect()) == inbox.values()[before:]
    assert sorted(os.listdir(place)) == ["checkpoint", "first", "other", "savepoints", "second"]
    assert [name for name in os.listdir(tmp_path) if name.startswith("a b")] == [place.name]


@pytest.mark.matrix
def test_a_start_that_was_cut_short_by_an_older_version_is_begun_anew(
    jvm: Driver, asking: Asking, inbox: Inbox, tmp_path: Path
) -> None:
    savepoint = saved(jvm, asking, inbox, tmp_path)
    # Everything but the offsets had been copied when the driver died.
    half = tmp_path / "other"
    shutil.copytree(savepoint, half, ignore=shutil.ignore_patterns("offsets", "metadata"))
    (half / "metadata").write_text(json.dumps({"id": str(uuid.uuid4())}))
    again = Totals()
    with session(jvm, asking, **starting_from(str(savepoint))) as spark:
        query = start(spark, inbox, again, half)
        inbox.put(1)
        query.processAllAvailable()
        assert again.now == inbox.totals()
        assert again.batches == [4]
        query.stop()


def refuse_renames(jvm: Driver, _: Storage) -> None:
    jvm.jvm.java.lang.System.setProperty("away.keeps", "true")


CUTS: dict[str, Callable[[Driver, Storage], None]] = {
    "at the state": lambda _, storage: storage.fail_once("state"),
    "at the older offsets": lambda _, storage: storage.fail_once("offsets"),
    "at the newest offsets": refuse_renames,
}


@pytest.mark.parametrize(
    ("cut", "then"),
    [
        *((cut, "begun anew") for cut in CUTS),
        ("at the newest offsets", "begun with another one"),
        ("at the newest offsets", "taken back"),
    ],
)
def test_a_start_that_is_cut_short(
    jvm: Driver, storage: Storage, asking: Asking, inbox: Inbox, tmp_path: Path, cut: str, then: str
) -> None:
    older = saved(jvm, asking, inbox, tmp_path, batches=2)
    savepoint = saved(jvm, asking, inbox, tmp_path, batches=3)

    def begun(spark: SparkSession, sink: Totals) -> StreamingQuery:
        totals = (
            stream(spark, inbox).groupBy("key").agg(F.count("*").alias("n"), F.sum("value").alias("total"))
        )
        writer = totals.writeStream.outputMode("complete").foreachBatch(sink).queryName("totals")
        return writer.option("checkpointLocation", storage.place("other")).start()

    with session(jvm, asking, **STORAGE, **starting_from(str(savepoint))) as spark:
        CUTS[cut](jvm, storage)
        query = begun(spark, Totals())
        with pytest.raises(StreamingQueryException, match="cannot start from the savepoint"):
            query.awaitTermination()
    jvm.jvm.java.lang.System.clearProperty("away.keeps")
    named, first = {
        "begun anew": (starting_from(str(savepoint)), 5),
        "begun with another one": (starting_from(str(older)), 2),
        "taken back": ({}, 0),
    }[then]
    again = Totals()
    inbox.put(1)
    for _ in range(2):
        with session(jvm, asking, **STORAGE, **named) as spark:
            query = begun(spark, again)
            query.processAllAvailable()
            assert again.now == inbox.totals()
            query.stop()
        inbox.put(1)
    assert again.batches == list(range(first, 7))
    assert not (storage.folder("other") / NOTE).exists()


def test_what_was_set_for_the_query_is_not_what_another_one_begins_with(
    jvm: Driver, asking: Asking, inbox: Inbox, tmp_path: Path
) -> None:
    kept = tmp_path / "checkpoint" / "_elastic"
    kept.mkdir(parents=True)
    for name in ("bounds", "batches"):
        (kept / name).write_text("{}")
    savepoint = saved(jvm, asking, inbox, tmp_path)
    assert not (savepoint / "_elastic").exists()
    # Older versions stored this folder in their savepoints.
    shutil.copytree(kept, savepoint / "_elastic")
    with session(jvm, asking, **starting_from(str(savepoint))) as spark:
        query = start(spark, inbox, Totals(), tmp_path / "other")
        inbox.put(1)
        query.processAllAvailable()
        query.stop()
    assert not (tmp_path / "other" / "_elastic" / "bounds").exists()


@pytest.mark.parametrize("mark", ["of an older version", "none"])
def test_one_without_its_mark_is_refused(
    jvm: Driver, asking: Asking, inbox: Inbox, tmp_path: Path, mark: str
) -> None:
    savepoint = saved(jvm, asking, inbox, tmp_path)
    file = savepoint / ".spark-elastic"
    text = file.read_text().split("\n")[0]
    savepoint.joinpath(".spark-elastic.crc").unlink(missing_ok=True)
    savepoint.joinpath("..spark-elastic.crc").unlink(missing_ok=True)
    file.unlink()
    if mark != "none":
        file.write_text(text)
    again = Totals()
    with session(jvm, asking, **starting_from(str(savepoint))) as spark:
        query = start(spark, inbox, again, tmp_path / "other")
        inbox.put(1)
        if mark == "none":
            with pytest.raises(
                StreamingQueryException, match=r"no file \.spark-elastic, which is written last"
            ):
                query.awaitTermination()
            assert not list((tmp_path / "other").rglob("state"))
        else:
            query.processAllAvailable()
            assert again.now == inbox.totals()
            assert again.batches == [4]
            query.stop()


def test_one_that_is_behind_its_file_sink_is_refused(
    jvm: Driver, asking: Asking, inbox: Inbox, tmp_path: Path
) -> None:
    """The sink would skip micro-batches with numbers that it already has."""

    def write(spark: SparkSession, checkpoint: str) -> StreamingQuery:
        rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(inbox.folder))
        writer = rows.writeStream.format("json").queryName("written")
        return writer.option("checkpointLocation", str(tmp_path / checkpoint)).start(str(tmp_path / "out"))

    with session(jvm, asking) as spark:
        query = write(spark, "checkpoint")
        inbox.put(2)
        query.processAllAvailable()
        asking.savepoint(query, str(tmp_path / "savepoints"))
        batch, path = asking.taken()
        inbox.put(3)
        query.processAllAvailable()
        query.stop()
    with session(jvm, asking, **starting_from(path, "written")) as spark:
        query = write(spark, "other")
        with pytest.raises(StreamingQueryException) as refused:
            query.processAllAvailable()
        said = f"it ends with micro-batch {batch} and the sink has all up to {batch + 3}"
        assert said in str(refused.value)
        assert "write to another folder" in str(refused.value)
        assert spark.read.schema(SCHEMA).json(str(tmp_path / "out")).count() == inbox.rows
    assert not [*(tmp_path / "other").rglob("offsets/*")]


def test_who_names_no_savepoint_is_told_so(jvm: Driver, asking: Asking, inbox: Inbox, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with session(jvm, asking, **starting_from(str(tmp_path / "empty"))) as spark:
        inbox.put(1)
        query = start(spark, inbox, Totals(), tmp_path / "checkpoint")
        with pytest.raises(StreamingQueryException, match=r"spark\.elastic\.query\.totals\.savepoint"):
            query.awaitTermination()
        other = start(spark, inbox, Totals(), tmp_path / "another", name="without")
        other.processAllAvailable()
        assert other.isActive
        other.stop()
