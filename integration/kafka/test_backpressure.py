"""What has piled up in Kafka is read in micro-batches that last about as long as their trigger interval."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from integration.kafka.token_provider import kafka_jars
from integration.streaming.driver import driver
from integration.streaming.http import Client
from integration.streaming.launch import AT_ONCE, WITH_PLUGIN
from integration.streaming.waiting import eventually
from spark_elastic.demo.broker import Broker

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(400)]

TOPIC = "lines"
# Each row keeps its task waiting for so long: what batches take is the same on any machine.
ROW_MS = 4
USUAL, FLOOD = 120, 3_000
CONF = {
    **WITH_PLUGIN,
    **AT_ONCE,
    "spark.master": "local-cluster[1,2,1024]",
    "spark.ui.enabled": "true",
    "spark.executor.memory": "512m",
    "spark.jars": ",".join(map(str, kafka_jars())),
    "spark.elastic.schedulerMode": "adaptive",
    "spark.elastic.policy": "autoscale",
    "spark.elastic.minExecutors": "1",
    "spark.elastic.maxExecutors": "1",
    "spark.elastic.query.free.autoscale.backpressure": "false",
}


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    folder = tmp_path_factory.mktemp("backpressure") / "driver"
    with driver(folder, kafka_jars()) as jvm, jvm.session(CONF) as running:
        yield running


class Flooded:
    """A query over the topic, of which `put` makes more rows come."""

    def __init__(self, spark: SparkSession, broker: Broker, folder: Path, name: str, **options: str) -> None:
        self._spark, self._out, self.sent = spark, str(folder / "out"), 0
        self._topic = {"kafka.bootstrap.servers": broker.servers, "topic": TOPIC}
        url = spark.sparkContext.uiWebUrl
        assert url is not None
        self._api = Client(url, "/elastic/api/v1")
        rows = spark.readStream.format("kafka").options(
            **{"kafka.bootstrap.servers": broker.servers, "subscribe": TOPIC}, **options
        )
        slow = f"reflect('java.lang.Thread', 'sleep', {ROW_MS}L) slept"
        writer = rows.load().selectExpr("partition", "offset", slow).writeStream.format("parquet")
        self.query: StreamingQuery = (
            writer.queryName(name)
            .trigger(processingTime="1 second")
            .option("checkpointLocation", str(folder / "checkpoint"))
            .start(self._out)
        )
        eventually(
            lambda: self.query.status["message"] == "Waiting for data to arrive", "its sources are there"
        )

    def put(self, rows: int) -> None:
        values = self._spark.range(rows).selectExpr("cast(id % 2 as int) partition", "'same' value")
        values.write.format("kafka").options(**self._topic).save()
        self.sent += rows

    def policy(self) -> Any:
        return self._api.get(f"/queries/{self.query.id}").json["policy"] or {}

    def learn(self) -> None:
        """Let its batches have some more and some fewer rows until the policy knows what they take."""

        def known() -> bool:
            self.put(USUAL * (1 + self.sent // USUAL % 3))
            self.query.processAllAvailable()
            model = self.policy().get("model")
            return model is not None and float(model["confidence"]) >= 0.7

        eventually(known, "it is known what its batches take")

    def flood(self, rows: int) -> list[int]:
        """Let all come at once; return how many rows each batch has read from then on."""
        before = self.query.lastProgress
        assert before is not None
        self.put(rows)
        self.query.processAllAvailable()
        later = [p for p in self.query.recentProgress if p.batchId > before.batchId and p.numInputRows]
        return [progress.numInputRows for progress in later]

    def check_rows(self) -> None:
        """Each row was written, and once."""
        written = self._spark.read.parquet(self._out)
        assert (written.count(), written.distinct().count()) == (self.sent, self.sent)


@pytest.fixture
def started() -> Iterator[list[Flooded]]:
    queries: list[Flooded] = []
    yield queries
    for query in queries:
        query.query.stop()


def test_what_comes_at_once_is_read_in_several_micro_batches(
    spark: SparkSession, broker: Broker, tmp_path: Path, started: list[Flooded]
) -> None:
    flooded = Flooded(spark, broker, tmp_path, "flooded")
    started.append(flooded)
    flooded.learn()
    limit = eventually(lambda: flooded.policy()["mostRows"], "its micro-batches are limited")
    read = flooded.flood(3 * limit)
    assert sum(read) == 3 * limit
    # It follows what batches take, so it may have become another one.
    assert max(read) <= 2 * limit, read
    url = spark.sparkContext.uiWebUrl
    assert url is not None
    decisions = Client(url, "/elastic/api/v1").get(f"/decisions?query={flooded.query.id}").text
    assert "autoscale_backpressure" in decisions
    flooded.check_rows()


def test_a_limit_of_the_user_stays(
    spark: SparkSession, broker: Broker, tmp_path: Path, started: list[Flooded]
) -> None:
    own = Flooded(spark, broker, tmp_path, "own", maxOffsetsPerTrigger=str(FLOOD))
    started.append(own)
    own.learn()
    read = own.flood(2 * FLOOD)
    assert max(read) == FLOOD, read
    assert own.policy()["mostRows"] is None
    own.check_rows()


def test_without_backpressure_all_of_it_is_read_at_once(
    spark: SparkSession, broker: Broker, tmp_path: Path, started: list[Flooded]
) -> None:
    free = Flooded(spark, broker, tmp_path, "free")
    started.append(free)
    free.learn()
    assert max(free.flood(2 * FLOOD)) > FLOOD
    assert free.policy()["mostRows"] is None
    free.check_rows()
