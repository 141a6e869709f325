"""An application without executors waits, says for what, and goes on with what comes."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from integration.cluster.application import Application, application, executors, now, replayed
from integration.cluster.queries import start_enrichment, start_totals
from integration.streaming.driver import Driver
from integration.streaming.waiting import eventually
from spark_elastic.core.actions import SetParallelism, StopQuery
from spark_elastic.demo.cluster import Cluster
from spark_elastic.demo.data import Tables

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

BOTH = ("enrichment", "totals")
# start() returns once the policy has answered; it never waits for executors.
ANSWER_S = 20.0


@pytest.fixture(scope="module")
def app(
    master: Cluster, jvm: Driver, tables: Tables, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Application]:
    # Executors take all cores of their worker.
    with application(master, jvm, tables, tmp_path_factory.mktemp("none"), {}) as running:
        yield running


def test_a_start_without_workers_returns_and_says_what_it_waits_for(app: Application) -> None:
    app.feed.start()
    began = time.monotonic()
    app.start("enrichment", start_enrichment)
    app.start("totals", start_totals)
    assert time.monotonic() - began < ANSWER_S
    for query in app.queries.values():
        assert query.isActive
        assert query.status["message"] == "Waits for resources: 0 slots, 1 needed; waits without limit."
        assert query.lastProgress is None
    assert app.queries["totals"].awaitTermination(1) is False
    eventually(lambda: len(app.story.queries) == 2, "the journal knows both queries")
    assert all(app.story.reasons(name) == ["waiting_for_resources"] for name in BOTH)
    app.check_alive()


def test_the_first_worker_starts_them_with_its_slots(app: Application) -> None:
    app.have_workers(1, cores=2)
    app.wait_in_force(2, BOTH, 0)
    for name in BOTH:
        assert {batch.partitions for batch in app.story.named(name).batches} == {2}
        assert app.story.reasons(name) == ["waiting_for_resources", "start_per_slot"]
        assert app.story.named(name).restarts == 0


def test_they_wait_for_the_executors_that_were_all_lost(app: Application) -> None:
    lost = now()
    app.cluster.kill_worker(app.workers.pop())
    app.wait_for_slots(0)
    eventually(
        lambda: all("all_executors_lost" in app.story.reasons(name, lost) for name in BOTH),
        "both are said to wait",
    )
    app.check_alive()

    back = now()
    app.have_workers(1, cores=3)
    app.wait_in_force(3, BOTH, back)
    assert len(executors(app.workers[0])) == 1
    assert app.story.orders_about("enrichment", SetParallelism)
    assert not app.story.orders_about("enrichment", StopQuery)
    assert len(app.story.orders_about("totals", StopQuery)) == 1
    assert app.story.named("totals").restarts == 1


def test_the_output_is_that_of_batch_queries(app: Application) -> None:
    for name, rows in app.finish().items():
        assert rows["rows_expected"] > 0, name
        assert rows["missing"] == rows["surplus"] == 0, f"{name}: {rows}"


def test_the_journal_can_be_replayed(app: Application) -> None:
    app.close()
    result = replayed(app.journal)
    assert result.returncode == 0, result.stdout + result.stderr
