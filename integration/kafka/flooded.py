"""A query over a Kafka topic with micro-batches that take equally long anywhere, and a flood for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from integration.kafka.token_provider import kafka_jars
from integration.streaming.http import Client
from integration.streaming.launch import AT_ONCE, WITH_PLUGIN
from integration.streaming.waiting import eventually
from spark_elastic_lab.demo.broker import Broker

TOPIC = "lines"
USUAL = 120
# Each row makes its task wait this long, so that micro-batches take equally long on any machine.
_ROW_MS = 4
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
}


class Flooded:
    """A query over the topic, to which `put` sends more rows; `sent` counts them."""

    def __init__(
        self,
        spark: SparkSession,
        broker: Broker,
        folder: Path,
        name: str,
        sent: int = 0,
        interval_s: int = 1,
        **options: str,
    ) -> None:
        self._spark, self._out, self.sent = spark, str(folder / "out"), sent
        self._topic = {"kafka.bootstrap.servers": broker.servers, "topic": TOPIC}
        url = spark.sparkContext.uiWebUrl
        assert url is not None
        self._api = Client(url, "/elastic/api/v1")
        rows = spark.readStream.format("kafka").options(
            **{"kafka.bootstrap.servers": broker.servers, "subscribe": TOPIC}, **options
        )
        slow = f"reflect('java.lang.Thread', 'sleep', {_ROW_MS}L) slept"
        writer = rows.load().selectExpr("partition", "offset", slow).writeStream.format("parquet")
        self.query: StreamingQuery = (
            writer.queryName(name)
            .trigger(processingTime=f"{interval_s} seconds")
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

    def decisions(self) -> str:
        return self._api.get(f"/decisions?query={self.query.id}").text

    def learn(self) -> None:
        """Send micro-batches of varying size until the policy has a model of their duration."""

        def known() -> bool:
            self.put(USUAL * (1 + self.sent // USUAL % 3))
            self.query.processAllAvailable()
            model = self.policy().get("model")
            return model is not None and float(model["confidence"]) >= 0.7

        eventually(known, "it is known what its batches take")

    def flood(self, rows: int) -> list[int]:
        """Send all rows at once; return the number of rows that each following micro-batch reads."""
        before = self.query.lastProgress
        assert before is not None
        self.put(rows)
        self.query.processAllAvailable()
        later = [p for p in self.query.recentProgress if p.batchId > before.batchId and p.numInputRows]
        return [progress.numInputRows for progress in later]

    def check_rows(self) -> None:
        """Check that each row was written exactly once."""
        written = self._spark.read.parquet(self._out)
        assert (written.count(), written.distinct().count()) == (self.sent, self.sent)
