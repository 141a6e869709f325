"""Tests of Delta Lake tables: an application with rules, a catalog and sources of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from integration import delta
from integration.batch.plans import PATIENT, PLAIN, asked, decisions
from integration.streaming.driver import PLUGIN, Driver, driver
from integration.streaming.files import Inbox
from integration.streaming.waiting import eventually
from integration.streaming.world import stream, totals
from spark_elastic.core.batch.questions import SplitSize

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.timeout(400),
    pytest.mark.skipif(not delta.FITS, reason="there is no Delta Lake for this Spark"),
]

ROWS, KEYS = 60_000, 500


@pytest.fixture(scope="module")
def jvm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    with driver(tmp_path_factory.mktemp("delta") / "driver", delta.jars()) as running:
        yield running


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("journal")


@pytest.fixture(scope="module")
def spark(jvm: Driver, journal: Path) -> Iterator[SparkSession]:
    conf = {**PLUGIN, **PLAIN, **PATIENT, **delta.CONF, "spark.elastic.journal.dir": str(journal)}
    with jvm.session(conf) as session:
        eventually(lambda: asked(session), "a batch stage is decided about")
        yield session


@pytest.fixture
def inbox(tmp_path: Path) -> Inbox:
    return Inbox(tmp_path / "in")


def test_the_files_of_a_table_are_shared_out_and_a_merge_is_as_in_plain_spark(
    spark: SparkSession, journal: Path, tmp_path: Path
) -> None:
    table = tmp_path / "numbers"
    numbers = spark.range(0, ROWS, 1, 4).select("id", (F.col("id") % KEYS).alias("key"))
    numbers.write.format("delta").save(str(table))
    before = len(decisions(journal))
    counts = spark.read.format("delta").load(str(table)).groupBy("key").count().collect()
    assert {row["count"] for row in counts} == {ROWS // KEYS}

    def splits() -> list[str]:
        """Return the reason for how the files of the table are split."""
        entries = [entry for entry in decisions(journal)[before:] if isinstance(entry.question, SplitSize)]
        return [e.answer["record"]["reason"] for e in entries if ":numbers" in str(e.question)]

    assert eventually(splits, "the scan is in the journal") == ["split_from_bytes"]
    spark.sql(
        f"MERGE INTO delta.`{table}` t USING (SELECT id + {ROWS - 100} id, -1L key FROM range(200)) s"
        " ON t.id = s.id WHEN MATCHED THEN UPDATE SET key = s.key WHEN NOT MATCHED THEN INSERT *"
    )
    merged = spark.read.format("delta").load(str(table))
    assert (merged.count(), merged.where("key = -1").count()) == (ROWS + 100, 200)


def test_totals_are_merged_batch_by_batch_into_a_table(
    spark: SparkSession, inbox: Inbox, tmp_path: Path
) -> None:
    table = str(tmp_path / "totals")
    spark.sql(f"CREATE TABLE delta.`{table}` (key INT, n LONG, total LONG) USING delta")

    def merge(batch: DataFrame, _: int) -> None:
        batch.createOrReplaceTempView("changed")
        batch.sparkSession.sql(
            f"MERGE INTO delta.`{table}` t USING changed s ON t.key = s.key"
            " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )

    writer = totals(spark, inbox).writeStream.outputMode("update").foreachBatch(merge)
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    for _ in range(3):
        inbox.put(rows=30)
        query.processAllAvailable()
    query.stop()
    # The state of this checkpoint could be moved, and each of its partitions was committed.
    assert "RocksDB" in (tmp_path / "checkpoint" / "offsets" / "0").read_text()
    found = spark.read.format("delta").load(table).collect()
    assert {row["key"]: (row["n"], row["total"]) for row in found} == inbox.totals()


def test_one_query_writes_a_table_that_another_one_reads(
    spark: SparkSession, inbox: Inbox, tmp_path: Path
) -> None:
    table, copied = str(tmp_path / "table"), str(tmp_path / "copied")

    def start(rows: DataFrame, form: str, to: str) -> StreamingQuery:
        return rows.writeStream.format(form).option("checkpointLocation", f"{to}-checkpoint").start(to)

    writes = start(stream(spark, inbox), "delta", table)
    inbox.put()
    writes.processAllAvailable()
    reads = start(spark.readStream.format("delta").load(table), "parquet", copied)
    for _ in range(3):
        inbox.put(files=2)
        for query in (writes, reads):
            query.processAllAvailable()
    for query in (writes, reads):
        query.stop()
    assert sorted(row["value"] for row in spark.read.parquet(copied).collect()) == inbox.values()
