"""Tests of a long outage of the broker, a recreated topic, and queries with a restart strategy."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from integration.kafka.token_provider import kafka_jars
from integration.streaming.driver import driver
from integration.streaming.launch import WITH_PLUGIN
from integration.streaming.waiting import eventually
from spark_elastic_lab.demo.broker import Broker

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(240)]

TOPIC = "words"
AWAY_S = 60.0


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    jars = kafka_jars()
    conf = {
        **WITH_PLUGIN,
        "spark.jars": ",".join(map(str, jars)),
        "spark.elastic.restartStrategy.type": "fixed-delay",
        "spark.elastic.restartStrategy.fixedDelay.attempts": "1000",
        "spark.elastic.restartStrategy.fixedDelay.delay": "500ms",
    }
    with driver(tmp_path_factory.mktemp("retries") / "driver", jars) as jvm, jvm.session(conf) as running:
        yield running


def send(spark: SparkSession, broker: Broker, topic: str, first: int, count: int) -> None:
    rows = spark.range(first, first + count).selectExpr("cast(id % 10 as string) value")
    writer = rows.write.format("kafka").option("kafka.bootstrap.servers", broker.servers)
    writer.option("topic", topic).save()


def count(spark: SparkSession, broker: Broker, topic: str, totals: dict[str, int]) -> StreamingQuery:
    """Start a query that keeps the newest count of each value in `totals`."""

    def note(batch: DataFrame, number: int) -> None:
        totals.update({row.value: row["count"] for row in batch.collect()})

    reader = spark.readStream.format("kafka").option("subscribe", topic).option("startingOffsets", "earliest")
    options: dict[str, str] = {
        "bootstrap.servers": str(broker.servers),
        "request.timeout.ms": "2000",
        "default.api.timeout.ms": "3000",
    }
    for key, value in options.items():
        reader = reader.option(f"kafka.{key}", value)
    values = reader.load().selectExpr("cast(value as string) value")
    return values.groupBy("value").count().writeStream.outputMode("update").foreachBatch(note).start()


def test_the_query_outlives_it_and_counts_each_record_once(spark: SparkSession, broker: Broker) -> None:
    totals: dict[str, int] = {}
    send(spark, broker, TOPIC, 0, 100)
    query = count(spark, broker, TOPIC, totals)
    eventually(lambda: sum(totals.values()) == 100, "the first records")
    run = query.runId
    broker.stop()
    back = monotonic() + AWAY_S
    eventually(lambda: "restarting from the checkpoint" in query.status["message"], "it has failed")
    eventually(lambda: monotonic() > back, "so long the broker is away", 2 * AWAY_S)
    assert query.isActive
    broker.start()
    send(spark, broker, TOPIC, 100, 100)
    eventually(lambda: sum(totals.values()) == 200, "all records")
    assert totals == {str(n): 20 for n in range(10)}
    assert query.isActive
    assert query.exception() is None
    assert query.runId == run
    query.stop()


def test_a_topic_that_was_made_anew_ends_the_query_as_it_would_in_plain_spark(
    spark: SparkSession, broker: Broker
) -> None:
    """Its offsets start over, so records are lost, and a retry cannot change that."""
    totals: dict[str, int] = {}
    broker.create_topic("again", 1)
    send(spark, broker, "again", 0, 100)
    query = count(spark, broker, "again", totals)
    eventually(lambda: sum(totals.values()) == 100, "the first records")
    broker.delete_topic("again")
    broker.create_topic("again", 1)
    send(spark, broker, "again", 0, 50)
    eventually(lambda: not query.isActive, "it has ended")
    exception = query.exception()
    assert exception is not None
    assert "Some data may have been lost" in str(exception)
    assert sum(totals.values()) == 100
