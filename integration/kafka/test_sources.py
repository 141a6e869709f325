"""Kafka's partitions are divided between more tasks than they are, and each record is read once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession

from integration.kafka.token_provider import kafka_jars
from integration.streaming.driver import driver
from integration.streaming.launch import WITH_PLUGIN
from integration.streaming.scrape import metric
from integration.streaming.waiting import eventually
from spark_elastic.demo.broker import Broker

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(240)]

TOPIC = "numbers"
RECORDS = 1_000


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    jars = kafka_jars()
    conf = {
        **WITH_PLUGIN,
        "spark.jars": ",".join(map(str, jars)),
        "spark.master": "local-cluster[1,4,1024]",
        "spark.ui.enabled": "true",
        "spark.executor.memory": "512m",
        "spark.elastic.scheduler-mode": "adaptive",
        "spark.elastic.adaptiveScheduler.submission.resourceStabilizationTimeout": "0",
        "spark.elastic.adaptiveScheduler.submission.resourceWaitTimeout": "30s",
        "spark.elastic.query.divided.source-0.lowerBound": "2",
        "spark.elastic.source.divideOrdered": "true",
    }
    with driver(tmp_path_factory.mktemp("sources") / "driver", jars) as jvm, jvm.session(conf) as running:
        yield running


@pytest.fixture(scope="module")
def filled(spark: SparkSession, broker: Broker) -> Mapping[str, str]:
    """Put records into one of the two partitions of the topic; give the options to read them."""
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
    """Check that each record is there once, and return how many each task has read."""
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
        .trigger(processingTime="1 hour")
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
