"""Tests that Kafka's partitions are divided among more tasks than there are partitions, and read exactly
once.

Where the order of the records may matter they are not divided, unless the user allows it.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain, product
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from integration.kafka.token_provider import kafka_jars
from integration.streaming.driver import Driver, driver
from integration.streaming.http import Client
from integration.streaming.launch import WITH_PLUGIN
from integration.streaming.scrape import metric
from integration.streaming.waiting import eventually
from spark_elastic.core.load.reading import BATCHES
from spark_elastic_lab.demo.broker import Broker

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(240)]

TOPIC = "numbers"
RECORDS = 1_000

CONF = {
    **WITH_PLUGIN,
    "spark.master": "local-cluster[1,4,1024]",
    "spark.ui.enabled": "true",
    "spark.executor.memory": "512m",
}
ADAPTIVE = {
    "spark.elastic.scheduler-mode": "adaptive",
    "spark.elastic.adaptiveScheduler.submission.resourceStabilizationTimeout": "0",
    "spark.elastic.adaptiveScheduler.submission.resourceWaitTimeout": "30s",
    "spark.elastic.query.divided.source-0.lowerBound": "2",
    "spark.elastic.source.divideOrdered": "true",
}
REACTIVE = {"spark.elastic.scheduler-mode": "reactive"}


@pytest.fixture(scope="module")
def jvm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    with driver(tmp_path_factory.mktemp("sources") / "driver", kafka_jars()) as started:
        yield started


@pytest.fixture(scope="module")
def spark(request: pytest.FixtureRequest, jvm: Driver) -> Iterator[SparkSession]:
    """Start an application in adaptive mode, or with the settings that a test names."""
    more = getattr(request, "param", ADAPTIVE)
    with jvm.session({**CONF, "spark.jars": ",".join(map(str, kafka_jars())), **more}) as running:
        yield running


@pytest.fixture(scope="module")
def filled(spark: SparkSession, broker: Broker) -> Mapping[str, str]:
    """Send records to one of the topic's two partitions; return the options to read them."""
    # They have one key.
    keyed = spark.range(RECORDS).selectExpr("'same' key", "cast(id as string) value")
    keyed.write.format("kafka").option("kafka.bootstrap.servers", broker.servers).option(
        "topic", TOPIC
    ).save()
    return {
        "kafka.bootstrap.servers": broker.servers,
        "subscribe": TOPIC,
        "startingOffsets": "earliest",
    }


def shares(rows: Sequence[Row]) -> list[int]:
    """Check that each record is there once, and return the number that each task has read."""
    assert sorted(int(row["value"]) for row in rows) == list(range(RECORDS))
    return sorted(Counter(row["task"] for row in rows).values())


READ = ("cast(value as string) value", "spark_partition_id() task", "partition")


def test_one_partition_is_read_by_as_many_tasks_as_the_lower_bound_says(
    spark: SparkSession, filled: Mapping[str, str], tmp_path: Path
) -> None:
    stream = spark.readStream.format("kafka").options(**filled).load().selectExpr(*READ)
    query = (
        stream.writeStream.format("parquet")
        .queryName("divided")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start(str(tmp_path / "out"))
    )
    eventually(lambda: query.lastProgress is not None, "a batch is through")
    query.processAllAvailable()
    query.stop()
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert shares(rows) == [RECORDS / 2, RECORDS / 2]


def test_the_metrics_say_how_much_has_not_been_read(
    spark: SparkSession, filled: Mapping[str, str], tmp_path: Path
) -> None:
    url, first = spark.sparkContext.uiWebUrl, 300
    assert url is not None
    limited = spark.readStream.format("kafka").options(**filled, maxOffsetsPerTrigger=str(first)).load()
    query = (
        limited.writeStream.format("noop")
        .queryName("limited")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        # So there is one micro-batch and no second one.
        .trigger(processingTime="24 hours")
        .start()
    )
    try:
        backlog = partial(metric, url, "query_backlog_records", query=str(query.id))
        assert eventually(backlog, "a batch is through") == RECORDS - first
        # All are in one of the two partitions.
        assert metric(url, "query_records_behind", query=str(query.id)) == RECORDS - first
    finally:
        query.stop()


def batch(spark: SparkSession, options: Mapping[str, str], **more: str) -> list[Row]:
    return spark.read.format("kafka").options(**options, **more).load().selectExpr(*READ).collect()


def test_a_batch_query_with_a_known_end_reads_it_in_a_task_per_slot(
    spark: SparkSession, filled: Mapping[str, str]
) -> None:
    ends = json.dumps({TOPIC: {"0": RECORDS, "1": 0}}), json.dumps({TOPIC: {"0": 0, "1": RECORDS}})
    known = ends[batch(spark, filled)[0]["partition"]]
    divided = eventually(
        lambda: len(found := shares(batch(spark, filled, endingOffsets=known))) > 1 and found,
        "the policy knows the slots",
    )
    assert divided == [RECORDS / 4] * 4


def test_a_batch_query_up_to_the_latest_offset_is_left_as_it_is(
    spark: SparkSession, filled: Mapping[str, str]
) -> None:
    assert shares(batch(spark, filled)) == [RECORDS]


def test_what_the_application_has_set_counts(spark: SparkSession, filled: Mapping[str, str]) -> None:
    assert shares(batch(spark, filled, minPartitions="5")) == [RECORDS / 5] * 5


SLOTS = 4
# For each partition in each micro-batch: twice the rows that are worth a task.
SHARE = 2_000


class Copy:
    """A query without a shuffle over a topic of two partitions, each with a share of every micro-batch."""

    def __init__(self, spark: SparkSession, broker: Broker, topic: str, folder: Path) -> None:
        self._spark = spark
        self._topic = {"kafka.bootstrap.servers": broker.servers, "topic": topic}
        self._out = str(folder / "out")
        self.batches = 0
        self._put()
        url = spark.sparkContext.uiWebUrl
        assert url is not None
        self._api = Client(url, "/elastic/api/v1")
        options = {
            "kafka.bootstrap.servers": broker.servers,
            "subscribe": topic,
            "startingOffsets": "earliest",
            # The records of a share become visible one after another.
            "minOffsetsPerTrigger": str(2 * SHARE),
        }
        rows = spark.readStream.format("kafka").options(**options).load()
        writer = rows.select("partition", "offset").writeStream.format("parquet").queryName("copy")
        self.query = writer.option("checkpointLocation", str(folder / "checkpoint")).start(self._out)

    def _put(self) -> None:
        """Send the rows of the next micro-batch."""
        rows = self._spark.range(2 * SHARE).selectExpr("cast(id % 2 as int) partition", "'same' value")
        rows.write.format("kafka").options(**self._topic).save()
        self.batches += 1

    def _shown(self) -> Any:
        return self._api.get(f"/queries/{self.query.id}").json

    def slots(self) -> int:
        return int(self._api.get("/overview").json["slots"]["now"])

    def read_in(self) -> int:
        """Return the number of tasks that read the next micro-batch."""
        if self.query.lastProgress is not None:
            self._put()
        self.query.processAllAvailable()
        number = self.batches - 1
        eventually(lambda: (self._shown()["lastBatch"] or {}).get("batch") == number, "the policy knows it")
        (source,) = self._shown()["lastBatch"]["sources"]
        return int(source["tasks"])

    def said(self, reason: str) -> list[Any]:
        """Return the messages of the query's decisions with this reason."""
        decisions = self._api.get(f"/decisions?query={self.query.id}").json["decisions"]
        return [decision["message"] for decision in decisions if decision["reason"] == reason]

    def files(self) -> list[int]:
        """Return, per micro-batch, the number of files with records of a partition, equal for both
        partitions.

        Each record must be there once, and the records of each file in order.
        """
        read = self._spark.read.parquet(self._out)
        rows = read.select("partition", "offset", "_metadata.file_name", "_metadata.row_index").collect()
        found: dict[tuple[int, int], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for row in sorted(rows, key=lambda row: (row["file_name"], row["row_index"])):
            found[row["partition"], row["offset"] // SHARE][row["file_name"]].append(row["offset"])
        assert sorted(found) == list(product((0, 1), range(self.batches)))
        for (_, batch), files in found.items():
            assert all(offsets == sorted(offsets) for offsets in files.values())
            assert sorted(chain(*files.values())) == list(range(batch * SHARE, (batch + 1) * SHARE))
        first, second = ([len(found[p, batch]) for batch in range(self.batches)] for p in (0, 1))
        assert first == second
        return first


@contextmanager
def copying(spark: SparkSession, broker: Broker, topic: str, folder: Path) -> Iterator[Copy]:
    """Start a query that copies a topic of its own; it ends with the block."""
    broker.create_topic(topic, 2)
    copy = Copy(spark, broker, topic, folder)
    try:
        yield copy
    finally:
        copy.query.stop()


@pytest.mark.parametrize("spark", [REACTIVE], indirect=True, ids=["reactive"])
def test_a_stream_keeps_the_order_of_each_partition_and_says_that_its_tasks_stay(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    with copying(spark, broker, "in-order", tmp_path) as copy:
        assert [copy.read_in() for _ in range(BATCHES)] == [2] * BATCHES
        eventually(lambda: copy.said("sources_stay"), "it is said")
        assert [copy.read_in() for _ in range(BATCHES)] == [2] * BATCHES
        (said,) = copy.said("sources_stay")
        assert "the query has no shuffle, and kafka" in said
        assert "spark.elastic.source.divideOrdered=true would let several tasks" in said
        assert copy.slots() == SLOTS
        assert not copy.said("sources_follow")
        # So the files of all micro-batches, one after another, have each partition in the order of the topic.
        assert copy.files() == [1] * copy.batches


@pytest.mark.parametrize(
    "spark", [{**REACTIVE, "spark.elastic.source.divideOrdered": "true"}], indirect=True, ids=["divided"]
)
def test_a_stream_whose_order_does_not_matter_is_read_in_a_task_per_slot(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    with copying(spark, broker, "divided", tmp_path) as copy:
        assert [copy.read_in() for _ in range(BATCHES)] == [2] * BATCHES
        eventually(lambda: copy.said("sources_follow"), "they follow")
        eventually(lambda: copy.read_in() == SLOTS, "a task for each slot")
        assert copy.read_in() == SLOTS
        assert copy.slots() == SLOTS
        assert not copy.said("sources_stay")
        files = copy.files()
        assert (files[0], files[-1]) == (1, SLOTS // 2)
