"""Tests of queries of one application with settings of their own, under the real policy."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from integration.batch.plans import decisions
from integration.spark_minor import MOVES_STATE, SPARK_MINOR
from integration.streaming.driver import PLUGIN, Driver
from integration.streaming.files import SCHEMA, Inbox
from integration.streaming.http import Client
from integration.streaming.test_failures import Flaky
from integration.streaming.waiting import PATIENCE_S, eventually
from spark_elastic.core.batch.questions import Ranges

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

# A number of partitions that the slots of local[2] would never lead to.
OWN_PARTITIONS = 5
QUERIES = "/elastic/api/v1/queries"
POLICY = """\
version: 1
queries:
  orders-*:
    restartStrategy.type: fixed-delay
    restartStrategy.fixedDelay.attempts: {attempts}
    restartStrategy.fixedDelay.delay: 100ms
"""


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    return tmp_path / "policy.yaml"


def allow(policy: Path, attempts: int) -> None:
    new = policy.with_suffix(".new")
    new.write_text(POLICY.format(attempts=attempts))
    new.replace(policy)


@pytest.fixture
def spark(jvm: Driver, policy: Path) -> Iterator[SparkSession]:
    allow(policy, attempts=2)
    conf = {
        **PLUGIN,
        "spark.ui.enabled": "true",
        "spark.sql.shuffle.partitions": str(OWN_PARTITIONS),
        "spark.elastic.policyFile": str(policy),
        "spark.elastic.journal.dir": str(policy.with_name("journal")),
        "spark.elastic.batch.decisionTimeout": "20s",
        "spark.elastic.query.old-*.schedulerMode": "off",
        "spark.elastic.query.as-spark-has-it.stateStore": "unchanged",
        "spark.elastic.query.narrow.maxParallelism": "1",
        "spark.elastic.query.own-count.explicitParallelism": "fixed",
        "spark.elastic.query.bounded.schedulerMode": "adaptive",
        "spark.elastic.query.bounded.upperBound": "1",
    }
    with jvm.session(conf) as session:
        yield session


def start(spark: SparkSession, inbox: Inbox, name: str, sink: Flaky, folder: Path) -> StreamingQuery:
    rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(inbox.folder))
    totals = rows.groupBy("key").agg(F.count("*").alias("n"), F.sum("value").alias("total"))
    writer = totals.writeStream.queryName(name).outputMode("update").foreachBatch(sink)
    return writer.option("checkpointLocation", str(folder / name)).start()


def url_of(spark: SparkSession) -> str:
    url = spark.sparkContext.uiWebUrl
    assert url is not None
    return str(url)


def state_of(query: StreamingQuery) -> tuple[int, str]:
    """Return the partitions of the state, and the class of the store's metrics, which names RocksDB."""
    progress = query.lastProgress
    assert progress is not None
    (operator,) = progress["stateOperators"]
    rocks = any(name.startswith("rocksdb") for name in operator["customMetrics"])
    return operator["numShufflePartitions"], "rocksdb" if rocks else "hdfs"


def test_a_query_that_is_off_runs_as_in_plain_spark_beside_one_that_does_not(
    spark: SparkSession, inbox: Inbox, tmp_path: Path
) -> None:
    inbox.put(2)
    sinks = {name: Flaky(failures=0) for name in ("old-totals", "orders-eu")}
    queries = {name: start(spark, inbox, name, sink, tmp_path) for name, sink in sinks.items()}
    for name, query in queries.items():
        query.processAllAvailable()
        assert sinks[name].result() == inbox.totals()
    assert state_of(queries["old-totals"]) == (OWN_PARTITIONS, "hdfs")
    assert state_of(queries["orders-eu"]) == (2, "rocksdb")

    shown = {one["name"]: one for one in Client(url_of(spark)).get(QUERIES).json["queries"]}
    assert (shown["old-totals"]["mode"], shown["old-totals"]["settings"]) == ("off", {"schedulerMode": "off"})
    assert shown["old-totals"]["lastDecision"]["reason"] == "untouched_off"
    assert shown["orders-eu"]["mode"] == "reactive"
    assert shown["orders-eu"]["settings"] == {
        "restartStrategy.type": "fixed-delay",
        "restartStrategy.fixedDelay.attempts": "2",
        "restartStrategy.fixedDelay.delay": "100ms",
    }


@pytest.mark.skipif(not MOVES_STATE, reason="what a new query starts with is another count")
def test_each_query_starts_as_its_own_settings_say(spark: SparkSession, inbox: Inbox, tmp_path: Path) -> None:
    expected = {
        # Its state is never moved, so it leaves room for more than two slots, up to the session's own count.
        "as-spark-has-it": (OWN_PARTITIONS, "hdfs"),
        "narrow": (1, "rocksdb"),
        "own-count": (OWN_PARTITIONS, "rocksdb"),
        "bounded": (1, "rocksdb"),
    }
    inbox.put(2)
    sinks = {name: Flaky(failures=0) for name in expected}
    queries = [start(spark, inbox, name, sink, tmp_path) for name, sink in sinks.items()]
    for query in queries:
        query.processAllAvailable()
    assert {query.name: state_of(query) for query in queries} == expected
    assert all(sink.result() == inbox.totals() for sink in sinks.values())
    modes = {one["name"]: one["mode"] for one in Client(url_of(spark)).get(QUERIES).json["queries"]}
    assert modes == {**dict.fromkeys(expected, "reactive"), "bounded": "adaptive"}


@pytest.mark.skipif(SPARK_MINOR < (4, 1), reason="Spark plans no micro-batch again while it runs before 4.1")
def test_what_the_micro_batches_of_a_query_that_is_off_run_is_not_shared_out(
    spark: SparkSession, inbox: Inbox, policy: Path, tmp_path: Path
) -> None:
    counted: dict[str, int] = {}

    def run(name: str) -> int:
        """Let a query group its rows in `foreachBatch`, and return when that began (epoch ms)."""

        def count(batch: DataFrame, _: int) -> None:
            counted[name] = sum(row["count"] for row in batch.groupBy("key").count().collect())

        began = round(time.time() * 1_000)
        rows = spark.readStream.schema(SCHEMA).json(str(inbox.folder))
        writer = rows.writeStream.queryName(name).foreachBatch(count)
        query = writer.option("checkpointLocation", str(tmp_path / name)).start()
        query.processAllAvailable()
        query.stop()
        return began

    inbox.put(rows=100)
    run("old-totals")
    began = run("orders-eu")
    assert counted == {"old-totals": 100, "orders-eu": 100}

    def shared_out() -> list[int]:
        found = decisions(policy.with_name("journal"))
        return [entry.written["at"] for entry in found if isinstance(entry.question, Ranges)]

    eventually(shared_out, "the stages of the other one are in the journal")
    assert min(shared_out()) >= began


def test_a_failure_ends_the_query_that_is_off_and_another_one_is_started_again(
    spark: SparkSession, inbox: Inbox, policy: Path, tmp_path: Path
) -> None:
    inbox.put()
    sick = Flaky(failures=1)
    legacy = start(spark, inbox, "old-totals", sick, tmp_path)
    with pytest.raises(StreamingQueryException, match="the sink is very ill"):
        legacy.awaitTermination(int(PATIENCE_S))
    assert sick.failed == 1

    recovers = Flaky(failures=2)
    orders = start(spark, inbox, "orders-eu", recovers, tmp_path)
    run = orders.runId
    orders.processAllAvailable()
    assert (recovers.failed, orders.runId) == (2, run)
    assert recovers.result() == inbox.totals()

    # More attempts while it runs: the two earlier ones are used up.
    allow(policy, attempts=4)
    eventually(
        lambda: (
            "4"
            in [
                one["settings"].get("restartStrategy.fixedDelay.attempts")
                for one in Client(url_of(spark)).get(QUERIES).json["queries"]
            ]
        ),
        "the new settings count",
    )
    recovers.left = 3
    inbox.put()
    orders.processAllAvailable()
    assert recovers.failed == 5
    assert recovers.result() == inbox.totals()
