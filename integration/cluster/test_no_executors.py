"""Tests that an application without executors waits, says for what, and continues with the first ones.

`enrichment` is stateless, `totals` is stateful on RocksDB, and `kept` is stateful on the HDFS-backed
provider, which its user has chosen in a session of its own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from integration.cluster.application import Application, application, executors, now
from integration.cluster.queries import start_enrichment, start_totals
from integration.streaming.driver import Driver
from integration.streaming.waiting import PATIENCE_S, eventually
from spark_elastic.core.actions import Decision
from spark_elastic.core.rescale.situation import GROWTH
from spark_elastic_lab.demo.cluster import Cluster
from spark_elastic_lab.demo.data import Tables

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
HDFS_BACKED = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
FOLLOWING = ("enrichment", "totals")
ALL = (*FOLLOWING, "kept")
# Its count can never be changed, so it leaves room for more slots than the first two.
FOR_EVER = 2 * GROWTH
# start() returns once the policy has answered; it never waits for executors.
ANSWER_S = PATIENCE_S


@pytest.fixture(scope="module")
def app(
    master: Cluster, jvm: Driver, tables: Tables, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Application]:
    # Executors take all cores of their worker.
    with application(master, jvm, tables, tmp_path_factory.mktemp("none"), {}) as running:
        yield running


def reasons(app: Application, name: str) -> list[str]:
    """Return the reasons of decisions on a query, each once.

    A query submitted while the policy connects is in its first snapshot and reported again.
    """
    return [*dict.fromkeys(app.story.reasons(name))]


def test_a_start_without_workers_returns_and_says_what_it_waits_for(app: Application) -> None:
    app.feed.start()
    began = time.monotonic()
    app.start("enrichment", start_enrichment)
    app.start("totals", start_totals)
    other = app.spark.newSession()
    other.conf.set(PROVIDER, HDFS_BACKED)
    app.start("kept", start_totals, other)
    assert time.monotonic() - began < ANSWER_S
    for query in app.queries.values():
        assert query.isActive
        # Spark creates the sources first, and shows that in its status.
        waits = "Waiting for resources (no time limit): 0 of 1 slot available."
        eventually(lambda q=query, m=waits: q.status["message"] == m, "its status says it")  # type: ignore[misc]
        assert query.lastProgress is None
    assert app.queries["totals"].awaitTermination(1) is False
    eventually(
        lambda: all(reasons(app, name) == ["waiting_for_resources"] for name in ALL),
        "the journal knows what they wait for",
    )
    app.check_alive()


def test_the_first_worker_starts_them_with_its_slots(app: Application) -> None:
    app.have_workers(1, cores=2)
    app.wait_in_force(2, FOLLOWING, 0)
    app.wait_in_force(FOR_EVER, ["kept"], 0)
    for name in ALL:
        kept = name == "kept"
        count = FOR_EVER if kept else 2
        assert {batch.partitions for batch in app.story.named(name).batches} == {count}
        reason = "start_for_growth" if kept else "start_per_slot"
        assert reasons(app, name) == ["waiting_for_resources", reason]
        assert app.story.named(name).rescales == 0


def test_they_wait_for_the_executors_that_were_all_lost(app: Application) -> None:
    lost = now()
    app.cluster.kill_worker(app.workers.pop())
    app.wait_for_slots(0)
    eventually(
        lambda: all("all_executors_lost" in app.story.reasons(name, lost) for name in ALL),
        "all are said to wait",
    )
    app.check_alive()

    back = now()
    app.have_workers(1, cores=3)
    app.wait_in_force(3, FOLLOWING, back)
    assert len(executors(app.workers[0])) == 1
    assert app.story.rescaled_to("enrichment")
    assert app.story.named("enrichment").rescales == 0
    assert app.story.rescaled_to("totals") == [3]
    assert app.story.named("totals").rescales == 1


def test_state_of_the_chosen_provider_is_left_alone_and_it_is_said_why(app: Application) -> None:
    query = app.story.named("kept").query

    def told() -> list[Decision]:
        return [d for d in app.story.said if d.query == query and d.reason == "no_repartition_chosen"]

    said = eventually(told, "it is said")
    assert "spark-elastic checkpoint convert CHECKPOINT --to rocksdb" in said[0].message
    assert not app.story.rescaled_to("kept")
    app.wait_in_force(FOR_EVER, ["kept"], said[0].at)
    assert len(told()) == 1
    assert {batch.partitions for batch in app.story.named("kept").batches} == {FOR_EVER}
    rescalable = {name: [o.rescalable for o in app.story.starts(name)] for name in ALL}
    assert rescalable["totals"][0]
    assert not any(rescalable["kept"])


def test_the_output_is_that_of_batch_queries(app: Application) -> None:
    app.check_output()


def test_the_journal_can_be_replayed(app: Application) -> None:
    app.check_journal()
