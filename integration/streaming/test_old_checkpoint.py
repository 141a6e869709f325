"""Tests of older checkpoints: one of plain Spark with the plugin, and one of ours without the policy."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from integration.batch.plans import PATIENT
from integration.streaming.driver import PLUGIN, Driver
from integration.streaming.files import SCHEMA, Inbox
from integration.streaming.state_store import REPARTITIONABLE
from integration.streaming.totals import Totals
from spark_elastic.installation import installed_spark
from spark_elastic_tools.cli import checks

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

SLOTS = 2
TIP = re.compile(r"to start from it without the plugin, set (\S+)=(\d+), or type (.*)$")
# Enough to make re-partitioning pay; Spark's default of 200 would show the same, but take a minute.
MANY = 50


def test_its_state_gets_as_many_partitions_as_there_are_slots(
    jvm: Driver, inbox: Inbox, tmp_path: Path
) -> None:
    totals = Totals(inbox, tmp_path / "checkpoint")
    inbox.put()
    with jvm.session({**REPARTITIONABLE, "spark.sql.shuffle.partitions": str(MANY)}) as spark:
        assert totals.count(spark) == MANY
    inbox.put()
    with jvm.session({**PLUGIN, **PATIENT}) as spark:
        assert totals.count(spark) <= SLOTS
    assert totals.now == inbox.totals()


@pytest.mark.parametrize(
    "conf",
    [{"spark.elastic.schedulerMode": "off"}, {"spark.elastic.python": "/no/such/python"}],
    ids=["off", "policy cannot be started"],
)
def test_one_that_we_began_is_read_without_the_policy(
    jvm: Driver, inbox: Inbox, tmp_path: Path, conf: dict[str, str]
) -> None:
    totals = Totals(inbox, tmp_path / "checkpoint")
    inbox.put()
    with jvm.session({**PLUGIN, **PATIENT}) as spark:
        partitions = totals.count(spark)
    inbox.put()
    # Spark itself does not detect the format.
    kept = tmp_path / "kept"
    shutil.copytree(tmp_path / "checkpoint", kept)
    with jvm.session({}) as spark, pytest.raises(StreamingQueryException):
        Totals(inbox, kept).run(spark)
    with jvm.session({**PLUGIN, **conf}) as spark:
        assert totals.count(spark) == partitions
    assert totals.now == inbox.totals()


def test_the_log_says_once_what_one_that_we_began_needs_in_plain_spark(
    jvm: Driver, inbox: Inbox, tmp_path: Path
) -> None:
    totals = Totals(inbox, tmp_path / "checkpoint")
    said = len(jvm.said())
    for _ in range(2):
        inbox.put()
        with jvm.session({**PLUGIN, **PATIENT}) as spark:
            partitions = totals.count(spark)
    (tip,) = filter(None, map(TIP.search, jvm.said()[said:]))
    # `spark-elastic doctor` gives the same advice.
    assert checks.checkpoints({}, installed_spark()).found.endswith(f" {tip[1]}={tip[2]}, or {tip[3]}")
    inbox.put()
    with jvm.session({tip[1]: tip[2]}) as spark:
        assert totals.count(spark) == partitions
    assert totals.now == inbox.totals()


def test_state_without_keys_stays_where_spark_looks_for_it(jvm: Driver, inbox: Inbox, tmp_path: Path) -> None:
    """Spark's re-partitioning moves it by the hash of no key, to a partition that is never read again."""
    counts: list[int] = []

    def count(spark: SparkSession) -> None:
        rows = spark.readStream.schema(SCHEMA).json(str(inbox.folder)).groupBy().count()
        writer = rows.writeStream.outputMode("complete").option("checkpointLocation", str(tmp_path / "cp"))
        query = writer.foreachBatch(lambda batch, _: counts.append(batch.collect()[0][0])).start()
        query.processAllAvailable()
        query.stop()

    inbox.put()
    with jvm.session({**REPARTITIONABLE, "spark.sql.shuffle.partitions": "2"}) as spark:
        count(spark)
    inbox.put()
    said = len(jvm.said())
    always = {"spark.elastic.adaptiveScheduler.rescalePolicy": "always", "spark.master": "local[4]"}
    with jvm.session({**PLUGIN, **PATIENT, **always}) as spark:
        count(spark)
    assert counts == [counts[0], 2 * counts[0]]
    assert any("an operator without keys" in line for line in jvm.said()[said:])
