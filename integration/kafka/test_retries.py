"""A broker that is away for longer than its clients wait, and a query with a restart strategy."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import DataFrame, SparkSession

from integration.kafka.token_provider import kafka_jars
from integration.streaming.driver import driver
from integration.streaming.launch import WITH_PLUGIN
from integration.streaming.waiting import eventually
from spark_elastic.demo.broker import Broker

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(240)]

TOPIC = "words"


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


def send(spark: SparkSession, broker: Broker, first: int, count: int) -> None:
    rows = spark.range(first, first + count).selectExpr("cast(id % 10 as string) value")
    writer = rows.write.format("kafka").option("kafka.bootstrap.servers", broker.servers)
    writer.option("topic", TOPIC).save()


def test_the_query_outlives_it_and_counts_each_record_once(spark: SparkSession, broker: Broker) -> None:
    totals: dict[str, int] = {}

    def note(batch: DataFrame, number: int) -> None:
        totals.update({row.value: row["count"] for row in batch.collect()})

    send(spark, broker, 0, 100)
    reader = spark.readStream.format("kafka").option("subscribe", TOPIC).option("startingOffsets", "earliest")
    options: dict[str, str] = {
        "bootstrap.servers": str(broker.servers),
        "request.timeout.ms": "2000",
        "default.api.timeout.ms": "3000",
    }
    for key, value in options.items():
        reader = reader.option(f"kafka.{key}", value)
    values = reader.load().selectExpr("cast(value as string) value")
    query = values.groupBy("value").count().writeStream.outputMode("update").foreachBatch(note).start()
    eventually(lambda: sum(totals.values()) == 100, "the first records")
    run = query.runId
    broker.stop()
    eventually(lambda: "starts again from its checkpoint" in query.status["message"], "it has failed")
    broker.start()
    send(spark, broker, 100, 100)
    eventually(lambda: sum(totals.values()) == 200, "all records")
    assert totals == {str(n): 20 for n in range(10)}
    assert query.isActive
    assert query.exception() is None
    assert query.runId == run
    query.stop()
