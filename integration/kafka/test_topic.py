"""Tests a pipeline from a real broker to Parquet while partitions, the broker and workers come and go.

`enrichment` is stateless, `suppliers` is stateful on RocksDB, into foreachBatch.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest
from pyspark.sql.streaming.query import StreamingQuery

from integration.cluster.application import Application, Source, application, now
from integration.cluster.queries import start_enrichment, start_suppliers
from integration.kafka.offsets import read_up_to
from integration.kafka.token_provider import kafka_jars
from integration.streaming.driver import driver
from integration.streaming.waiting import eventually
from spark_elastic.core.events import OffsetsBehind, QueryProgress
from spark_elastic_lab.demo.apps.lineitem_stream import arrived
from spark_elastic_lab.demo.broker import Broker
from spark_elastic_lab.demo.cluster import Cluster
from spark_elastic_lab.demo.data import generate
from spark_elastic_lab.demo.source import TopicFeed

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(240)]

TOPIC = "lineitem"
BOTH = ("enrichment", "suppliers")
# Parts of 150 lines: a busy machine keeps up with them, and a burst exceeds the limit of a micro-batch.
PARTS = 400
BURST = 60


@pytest.fixture(scope="module")
def app(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    folder = tmp_path_factory.mktemp("topic")
    tables = generate(folder / "tables", scale=0.01, parts=PARTS, lineitem_as="csv")
    jars = kafka_jars()
    conf = {"spark.executor.cores": "1", "spark.jars": ",".join(map(str, jars))}
    with Cluster(folder / "cluster") as cluster, driver(folder / "driver", jars) as jvm:
        feed = TopicFeed(tables.lineitem, partial(broker.producer, TOPIC), interval_s=0.5)
        source = Source(f"kafka:{broker.servers}/{TOPIC}", feed)
        with application(cluster, jvm, tables, folder, conf, source) as running:
            yield running
    assert cluster.left_over() == []


def has_read(query: StreamingQuery, partitions: int) -> bool:
    """Return whether the query has read records of this many partitions."""
    return sum(offset > 0 for offset in read_up_to(query, TOPIC).values()) == partitions


def behind(app: Application, name: str, since: int = 0) -> list[OffsetsBehind]:
    """Return the backlog of a query after each of its micro-batches that began at `since` or later."""
    query = app.story.named(name).query
    events = [seen.event for seen in app.story.seen]
    return [
        event.offsets_behind
        for event in events
        if isinstance(event, QueryProgress)
        and event.query == query
        and event.started >= since
        and event.offsets_behind is not None
    ]


def was_behind(app: Application, name: str, since: int) -> bool:
    return any(offsets.max > 0 for offsets in behind(app, name, since))


def has_caught_up(app: Application, name: str) -> bool:
    return behind(app, name)[-1] == OffsetsBehind(avg=0.0, max=0, min=0)


def test_queries_start_on_a_topic(app: Application) -> None:
    app.have_workers(1)
    app.feed.start()
    app.start("enrichment", start_enrichment)
    app.start("suppliers", start_suppliers)
    app.wait_in_force(1, BOTH, 0)
    for query in app.queries.values():
        assert read_up_to(query, TOPIC).keys() == {"0", "1"}


def test_partitions_are_added_while_a_worker_joins(app: Application, broker: Broker) -> None:
    joined = now()
    app.workers.append(app.cluster.start_worker())
    broker.set_partitions(TOPIC, 4)
    app.wait_for_slots(2)
    app.wait_in_force(2, BOTH, joined)
    for name, query in app.queries.items():
        eventually(partial(has_read, query, 4), f"{name} reads all partitions")
    assert app.story.rescaled_to("enrichment")
    assert app.story.named("enrichment").rescales == 0
    assert app.story.rescaled_to("suppliers")[-1] == 2


def test_a_worker_is_killed_while_the_broker_is_away(app: Application, broker: Broker) -> None:
    broker.stop()
    app.cluster.kill_worker(app.workers.pop(0))
    app.wait_for_slots(1)
    broker.start()
    app.wait_in_force(1, BOTH, now())
    app.check_alive()


def test_a_query_says_how_far_it_is_behind_until_it_has_caught_up(app: Application) -> None:
    burst = now()
    for _ in range(BURST):
        app.feed.deliver()
    for name in BOTH:
        eventually(partial(was_behind, app, name, burst), f"{name} is behind")
        eventually(partial(has_caught_up, app, name), f"{name} has caught up")
        assert all(offsets.min <= offsets.avg <= offsets.max for offsets in behind(app, name))


def test_the_output_is_that_of_batch_queries(app: Application) -> None:
    app.check_output()
    assert isinstance(app.feed, TopicFeed)
    assert arrived(app.spark.read, app.places.incoming).count() == app.feed.rows


def test_the_journal_can_be_replayed(app: Application) -> None:
    app.check_journal()
