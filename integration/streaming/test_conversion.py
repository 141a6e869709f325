"""Tests of checkpoints in Spark's own store, or in format 1, that queries with the plugin start from."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from integration.batch.plans import PATIENT
from integration.spark_minor import MOVES_STATE
from integration.streaming.conversions import ORIGINAL, WORK
from integration.streaming.driver import PLUGIN, Driver
from integration.streaming.files import SCHEMA, Inbox
from integration.streaming.state_store import FORMAT_1
from integration.streaming.totals import Totals
from integration.streaming.waiting import eventually
from spark_elastic.core.keys.key import PREFIX

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not MOVES_STATE, reason="this Spark cannot convert a checkpoint"),
]

AT_START = {**PLUGIN, **PATIENT, "spark.elastic.stateStore.convert": "atStart"}
FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
MANY = "20"


class Checked(Totals):
    """Adds input before each run, and checks the totals after it."""

    def run(self, spark: SparkSession) -> dict[str, Any]:
        self.inbox.put()
        state = super().run(spark)
        assert self.now == self.inbox.totals()
        return state

    def fail(self, spark: SparkSession) -> None:
        """Leave a micro-batch that has begun and is not committed."""

        def refuse(batch: DataFrame, number: int) -> None:
            raise ValueError("the sink is full")

        self.inbox.put()
        with pytest.raises(StreamingQueryException, match="the sink is full"):
            self.start(spark, refuse).processAllAvailable()

    def files(self) -> set[str]:
        return {str(p.relative_to(self.checkpoint)) for p in self.checkpoint.rglob("*") if p.is_file()}


@pytest.fixture
def totals(inbox: Inbox, tmp_path: Path) -> Checked:
    return Checked(inbox, tmp_path / "checkpoint")


def is_in_rocksdb(state: dict[str, Any]) -> bool:
    return "rocksdbPutCount" in state["customMetrics"]


@pytest.mark.parametrize("begun", [False, True], ids=["all committed", "a batch has begun"])
def test_spark_s_own_store_is_converted_when_the_query_starts(
    jvm: Driver, totals: Checked, begun: bool
) -> None:
    with jvm.session({"spark.sql.shuffle.partitions": MANY}) as spark:
        assert not is_in_rocksdb(totals.run(spark))
        if begun:
            totals.fail(spark)
    said = len(jvm.said())
    with jvm.session(AT_START) as spark:
        state = totals.run(spark)
        assert is_in_rocksdb(state)
        assert state["numShufflePartitions"] == 2
        totals.run(spark)
    assert any(f"Convert the checkpoint to RocksDB, {MANY} -> 2" in line for line in jvm.said()[said:])
    # Spark gives each input to the sink once, under the number that it had before.
    assert totals.batches == ([0, 1, 2, 3] if begun else [0, 2, 3])
    with jvm.session({FORMAT: "2"}) as spark:
        assert totals.count(spark) == 2


def test_it_is_moved_later_as_one_that_we_began(jvm: Driver, totals: Checked) -> None:
    always = {f"{PREFIX}adaptiveScheduler.rescalePolicy": "always"}
    with jvm.session({"spark.sql.shuffle.partitions": MANY}) as spark:
        totals.run(spark)
    for slots in (2, 3, 1):
        with jvm.session({**AT_START, **always, "spark.master": f"local[{slots}]"}) as spark:
            assert totals.count(spark) == slots


def test_nothing_is_converted_unless_the_settings_say_so(jvm: Driver, totals: Checked) -> None:
    with jvm.session({"spark.sql.shuffle.partitions": "5"}) as spark:
        totals.run(spark)
    said = len(jvm.said())
    with jvm.session({**PLUGIN, **PATIENT}) as spark:
        state = totals.run(spark)
    assert (state["numShufflePartitions"], is_in_rocksdb(state)) == (5, False)
    (line,) = (line for line in jvm.said()[said:] if "in Spark's HDFS-backed store" in line)
    assert "spark.elastic.stateStore.convert=atStart" in line
    with jvm.session({}) as spark:
        assert totals.count(spark) == 5


def test_format_1_is_moved_as_it_is(jvm: Driver, totals: Checked) -> None:
    always = {f"{PREFIX}adaptiveScheduler.rescalePolicy": "always"}
    with jvm.session({**FORMAT_1, "spark.sql.shuffle.partitions": MANY}) as spark:
        totals.run(spark)
    for slots in (2, 4, 1, 3):
        with jvm.session(
            {**PLUGIN, **PATIENT, **FORMAT_1, **always, "spark.master": f"local[{slots}]"}
        ) as spark:
            assert totals.count(spark) == slots
            totals.run(spark)
    with jvm.session({}) as spark:
        assert totals.count(spark) == 3


def test_the_original_is_kept_as_long_as_the_settings_say(jvm: Driver, totals: Checked) -> None:
    with jvm.session({"spark.sql.shuffle.partitions": "5"}) as spark:
        totals.run(spark)
    before = {name for name in totals.files() if name.endswith((".delta", ".snapshot"))}
    with jvm.session(AT_START) as spark:
        totals.run(spark)
        assert before <= totals.files()
    with jvm.session({**AT_START, "spark.elastic.stateStore.keepOriginal": "0s"}) as spark:
        totals.run(spark)
        eventually(lambda: not before & totals.files(), "the original is deleted")
        eventually(lambda: not any("original" in name for name in totals.files()), "and its note")
        totals.run(spark)


def test_state_that_cannot_be_read_is_left_as_it_was(jvm: Driver, totals: Checked, tmp_path: Path) -> None:
    with jvm.session({"spark.sql.shuffle.partitions": "5"}) as spark:
        totals.run(spark)
    state = totals.checkpoint / "state" / "0" / "0" / "1.delta"
    kept = shutil.copy(state, tmp_path / "kept")
    state.write_bytes(b"damaged")
    said = len(jvm.said())
    with jvm.session(AT_START) as spark, pytest.raises(StreamingQueryException):
        totals.run(spark)
    assert any("not moved to 2 partitions" in line for line in jvm.said()[said:])
    assert not any(".spark-elastic" in name or name.endswith(".zip") for name in totals.files())
    shutil.copy(kept, state)
    with jvm.session({}) as spark:
        assert totals.count(spark) == 5


def test_the_log_of_a_file_sink_has_no_gap(jvm: Driver, inbox: Inbox, tmp_path: Path) -> None:
    output = tmp_path / "output"

    def run(spark: SparkSession, batches: int) -> None:
        rows = spark.readStream.schema(SCHEMA).json(str(inbox.folder)).dropDuplicates(["value"])
        writer = rows.writeStream.format("json").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.start(str(output))
        for _ in range(batches):
            inbox.put()
            query.processAllAvailable()
        query.stop()

    with jvm.session({"spark.sql.shuffle.partitions": "5"}) as spark:
        run(spark, 2)
    with jvm.session(AT_START) as spark:
        run(spark, 12)  # Spark compacts the log at each tenth batch
    with jvm.session({}) as spark:
        rows = spark.read.schema(SCHEMA).json(str(output)).collect()
    assert sorted(row.value for row in rows) == inbox.values()


@pytest.mark.parametrize("marks", [("forget",), ("undo", "over")], ids="-".join)
def test_the_original_that_was_being_deleted_is_deleted_by_the_next_start(
    jvm: Driver, totals: Checked, marks: tuple[str, ...]
) -> None:
    with jvm.session({"spark.sql.shuffle.partitions": MANY}) as spark:
        totals.run(spark)
    with jvm.session(AT_START) as spark:
        totals.run(spark)
    # As a crash in the midst leaves it: some of the files are gone, and of the second also the note.
    original = totals.checkpoint / ORIGINAL
    for mark in marks:
        (original / mark).write_text("0")
    if "over" in marks:
        (original / "note").unlink()
    else:
        (totals.checkpoint / "state/0/0/1.delta").unlink()
    with jvm.session({**PLUGIN, **PATIENT}) as spark:
        totals.run(spark)
    assert totals.batches == [0, 2, 3]
    assert not original.exists()
    assert bool([name for name in totals.files() if name.endswith(".delta")]) == ("over" in marks)


def test_what_is_left_of_a_finished_conversion_harms_nothing(jvm: Driver, totals: Checked) -> None:
    with jvm.session({"spark.sql.shuffle.partitions": MANY}) as spark:
        totals.run(spark)
        totals.fail(spark)
    with jvm.session(AT_START) as spark:
        totals.run(spark)
    # As a crash leaves it that comes while the folder is deleted: its logs still have the converted batch.
    work = totals.checkpoint / WORK
    for log in ("offsets", "commits"):
        (work / log).mkdir(parents=True)
        shutil.copy(totals.checkpoint / log / "0", work / log / "1")
    with jvm.session({**PLUGIN, **PATIENT}) as spark:
        totals.run(spark)
    assert not work.exists()
    assert (totals.checkpoint / ORIGINAL / "note").exists()
