"""Tests that `autoscale` names the partition of a topic that has most of the rows, with its share."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest
from pyspark.sql.streaming.query import StreamingQuery

from integration.cluster.application import Application, application
from integration.cluster.lines import ROW_MS, SETTLED_S, autoscaled
from integration.kafka.offsets import read_up_to
from integration.kafka.token_provider import kafka_jars
from integration.streaming.driver import driver
from integration.streaming.waiting import eventually
from spark_elastic.core.actions import Decision
from spark_elastic.core.events import QueryProgress
from spark_elastic.runtime.entries import read_journal
from spark_elastic_lab.demo.broker import Broker, Producer
from spark_elastic_lab.demo.cluster import Cluster
from spark_elastic_lab.demo.data import Tables
from spark_elastic_lab.demo.source import Steady
from spark_elastic_lab.simulator.recorded import heard, scenario_of

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(600)]

TOPIC = "words"
PARTITIONS = 4
WORKERS = 4
INTERVAL_S = 0.5
# Of 250 rows/s one partition has nine in ten: a little more than one task can do with 5 ms for each.
ROWS = 125
EVERY = 10


class Skewed(Steady):
    """Sends rows of which most have the same key."""

    def __init__(self, producer: Producer) -> None:
        super().__init__(interval_s=INTERVAL_S)
        self.producer = producer
        self._numbers = count()

    def deliver(self) -> None:
        numbers = [next(self._numbers) for _ in range(ROWS)]
        self.producer.send((str(n) if n % EVERY == 0 else "hot", str(n)) for n in numbers)


@pytest.fixture(scope="module")
def app(broker: Broker, tables: Tables, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    broker.set_partitions(TOPIC, PARTITIONS)
    folder, jars = tmp_path_factory.mktemp("hot"), kafka_jars()
    conf = {
        **autoscaled(WORKERS, window_s=20),
        "spark.jars": ",".join(map(str, jars)),
        "spark.elastic.adaptiveScheduler.submission.resourceStabilizationTimeout": "0",
    }
    with (
        Cluster(folder / "cluster") as cluster,
        driver(folder / "driver", jars) as jvm,
        application(cluster, jvm, tables, folder, conf) as running,
    ):
        yield running
    assert cluster.left_over() == []


@pytest.fixture(scope="module")
def feed(broker: Broker) -> Iterator[Skewed]:
    sending = Skewed(broker.producer(TOPIC))
    sending.start()
    yield sending
    sending.stop()
    sending.producer.close()


def start(app: Application, broker: Broker) -> StreamingQuery:
    """Start a query that waits for each row, without a shuffle."""
    read = app.spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker.servers)
    rows = read.option("subscribe", TOPIC).option("startingOffsets", "earliest").load()
    waited = rows.selectExpr("value", f"reflect('java.lang.Thread', 'sleep', {ROW_MS}L) AS waited")
    query = (
        waited.writeStream.queryName("waits")
        .format("parquet")
        .option("path", str(app.places.output / "waits"))
        .option("checkpointLocation", str(app.places.output / "checkpoint"))
        .trigger(processingTime="2 seconds")
        .start()
    )
    app.queries["waits"] = query
    return query


def named(app: Application) -> list[Decision]:
    app.check_alive()
    return [one for one in app.story.said if one.reason == "autoscale_hot_partition"]


def test_the_partition_is_named_with_its_share_and_gets_no_executors(
    app: Application, broker: Broker, feed: Skewed
) -> None:
    app.have_workers(WORKERS)
    query = start(app, broker)
    said = eventually(lambda: named(app), "the partition is named", timeout_s=SETTLED_S, every_s=0.5)[0]
    read = read_up_to(query, TOPIC)
    assert len(read) == PARTITIONS
    fullest = max(read, key=lambda partition: read[partition])
    assert f"are in partition {TOPIC}-{fullest} of a source" in said.message
    assert 80 <= float(said.numbers["hot_percent"]) <= 100
    # One task reads it, and one other is enough for the rest.
    assert said.after == 2
    eventually(lambda: app.story.slots.total <= 2, "no more executors are kept", timeout_s=SETTLED_S)


def test_the_events_tell_what_the_offsets_do(app: Application, feed: Skewed) -> None:
    told = [seen.event for seen in app.story.seen if isinstance(seen.event, QueryProgress)]
    fullest = [event.fullest for event in told if event.fullest is not None]
    assert fullest
    assert all(one.partitions == PARTITIONS and one.rows <= one.all_rows for one in fullest)
    # Without a limit, a micro-batch reads everything that is available.
    read = {event.input_rows for event in told if event.fullest is not None}
    assert {one.all_rows for one in fullest} == read


def test_the_journal_can_be_replayed_and_is_simulated_with_its_skew(app: Application, feed: Skewed) -> None:
    feed.stop()
    app.queries["waits"].stop()
    app.check_journal()
    (query,) = scenario_of(heard(entry for _, entry in read_journal(app.journal))).queries
    assert query.source.partitions == PARTITIONS
    assert query.source.hot is not None
    assert 0.8 <= query.source.hot <= 1
