"""Tests that on every supported Spark queries use the workers that there are and survive losing them.

On a Spark that cannot move state, a stateful query keeps its first count, which leaves room for more slots.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from integration.cluster.application import Application, application, now
from integration.cluster.queries import start_enrichment, start_totals
from integration.spark_minor import MOVES_STATE
from integration.streaming.driver import Driver
from integration.streaming.waiting import eventually
from spark_elastic.core.rescale.situation import GROWTH
from spark_elastic_lab.demo.cluster import Cluster
from spark_elastic_lab.demo.data import Tables

# The default Spark has separate tests for each of these.
pytestmark = [pytest.mark.integration, pytest.mark.matrix, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def app(
    master: Cluster, jvm: Driver, tables: Tables, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Application]:
    conf = {"spark.executor.cores": "1"}
    with application(master, jvm, tables, tmp_path_factory.mktemp("any"), conf) as running:
        yield running


def count_of_totals(slots: int) -> int:
    return slots if MOVES_STATE else GROWTH


def settle(app: Application, slots: int, since: int) -> None:
    app.wait_in_force(slots, ["enrichment"], since)
    app.wait_in_force(count_of_totals(slots), ["totals"], since)


def test_they_start_with_the_slots_of_the_first_worker(app: Application) -> None:
    app.have_workers(1)
    app.feed.start()
    app.start("enrichment", start_enrichment)
    app.start("totals", start_totals)
    settle(app, 1, 0)
    assert app.story.reasons("enrichment")[0] == "start_per_slot"
    assert app.story.reasons("totals")[0] == ("start_per_slot" if MOVES_STATE else "start_for_growth")


def test_workers_that_join_are_used(app: Application) -> None:
    handles = {name: (query.id, query.runId) for name, query in app.queries.items()}
    joined = now()
    app.have_workers(3)
    settle(app, 3, joined)
    assert {name: (query.id, query.runId) for name, query in app.queries.items()} == handles
    if not MOVES_STATE:
        eventually(lambda: "no_repartition_spark" in app.story.reasons("totals"), "it is said why not")
        assert app.story.rescaled_to("totals") == []


def test_a_killed_worker_is_done_without(app: Application) -> None:
    killed = now()
    app.cluster.kill_worker(app.workers.pop())
    app.wait_for_slots(2)
    settle(app, 2, killed)
    app.check_alive()


def test_the_output_is_that_of_batch_queries(app: Application) -> None:
    app.check_output()


def test_the_journal_can_be_replayed(app: Application) -> None:
    app.check_journal()
