"""Tests that a shim that does not fit its Spark does no harm to the application."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from integration.batch.plans import PATIENT
from integration.jar.each_jar import INSTALLED, each_spark, jar_for
from integration.streaming.driver import PLUGIN, driver, policies_of
from integration.streaming.files import SCHEMA, Inbox
from integration.streaming.launch import WITH_PLUGIN
from integration.streaming.totals import Totals
from integration.streaming.waiting import eventually
from spark_elastic.jar import jar_path
from spark_versions import SparkVersion, supported

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

PROPERTIES = "spark-elastic.properties"
PACKAGE = "org/apache/spark/"


def changed(to: Path, change: Callable[[str, bytes], bytes | None]) -> Path:
    """Copy the shim's jar with each file changed by `change`, or left out where that returns None."""
    with zipfile.ZipFile(jar_path()) as ours, zipfile.ZipFile(to, "w") as copy:
        for file in ours.infolist():
            content = change(file.filename, ours.read(file))
            if content is not None:
                copy.writestr(file, content)
    return to


def of_another_spark(name: str, content: bytes) -> bytes:
    if name != PROPERTIES:
        return content
    lines = (b"spark=9.9.0" if line.startswith(b"spark=") else line for line in content.splitlines())
    return b"\n".join(lines)


def without(*classes: str) -> Callable[[str, bytes], bytes | None]:
    """Leave classes out as if Spark lacked them: code that needs them causes a linkage error."""
    missing = {f"{PACKAGE}{name}.class" for name in classes}
    return lambda name, content: None if name in missing else content


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (of_another_spark, "the jar is for Spark 9.9 with Scala"),
        (without("sql/elastic/QueryControl"), "could not start, the application continues as plain Spark"),
        (
            without(
                "sql/elastic/CheckpointFacts$", "sql/elastic/ProgressFacts$", "sql/elastic/ExpectedBytes$"
            ),
            "starts as plain Spark",
        ),
    ],
    ids=["of_another_spark", "cannot_start", "fails_later"],
)
def test_the_application_runs_as_without_it(
    tmp_path: Path, change: Callable[[str, bytes], bytes | None], said: str
) -> None:
    jar = changed(tmp_path / "unfit.jar", change)
    with driver(tmp_path / "driver", jar=jar) as jvm:
        conf = {**WITH_PLUGIN, "spark.sql.shuffle.partitions": "2"}
        with jvm.session(conf) as spark:
            stream_and_batch_agree(spark, tmp_path)
        eventually(lambda: any(said in line for line in jvm.said()), "it is said")


@pytest.mark.matrix
def test_a_checkpoint_that_we_began_is_read_where_nothing_else_of_ours_can_start(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path / "in")
    totals = Totals(inbox, tmp_path / "checkpoint")
    inbox.put()
    with driver(tmp_path / "fit") as jvm, jvm.session({**PLUGIN, **PATIENT}) as spark:
        partitions = totals.count(spark)
    inbox.put()
    jar = changed(tmp_path / "unfit.jar", without("elastic/PolicyGateway"))
    with driver(tmp_path / "unfit", jar=jar) as jvm:
        with jvm.session(PLUGIN) as spark:
            assert totals.count(spark) == partitions
        assert any("could not start, the application continues as plain Spark" in said for said in jvm.said())
    assert totals.now == inbox.totals()


# In the matrix, the jar for the default Spark runs on each other one: on 3.5 it is for another Scala, too.
@pytest.mark.timeout(600)  # one that is not cached is compiled
@pytest.mark.parametrize("row", each_spark(without=[INSTALLED], matrix=supported()[:1]))
def test_the_jar_of_another_spark_names_the_one_that_fits(tmp_path: Path, row: SparkVersion) -> None:
    jar = jar_for(row)
    with driver(tmp_path / "driver", jar=jar) as jvm:
        with jvm.session({**WITH_PLUGIN, "spark.sql.shuffle.partitions": "2"}) as spark:
            stream_and_batch_agree(spark, tmp_path)
            assert policies_of(jvm.pid) == []
        (said,) = (line for line in jvm.said() if "spark-elastic: " in line)
    assert "spark-elastic: off, the application continues as plain Spark: " in said
    assert f"the jar is for Spark {row.minor} with Scala {row.scala_binary}, " in said
    assert said.endswith(f"take {jar_path().name}, as `spark-elastic jar` prints it")


def stream_and_batch_agree(spark: SparkSession, folder: Path) -> None:
    inbox = Inbox(folder / "in")
    inbox.put(3)
    rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(inbox.folder))
    counts = rows.groupBy("key").agg(F.count("*").alias("n"))
    query = counts.writeStream.format("memory").queryName("counts").outputMode("complete").start()
    query.processAllAvailable()
    batch = spark.read.schema(SCHEMA).json(str(inbox.folder)).groupBy("key").agg(F.count("*").alias("n"))
    assert sorted(spark.table("counts").collect()) == sorted(batch.collect())
    assert query.exception() is None
    query.stop()
