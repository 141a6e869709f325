"""Tests of two queries that need two slots each, on two: one runs, the other waits for two more."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from integration.cluster.application import DECLARED_AT_ONCE, Application, application, now
from integration.cluster.queries import start_enrichment, start_totals
from integration.streaming.driver import Driver
from integration.streaming.waiting import eventually
from spark_elastic_lab.demo.cluster import Cluster
from spark_elastic_lab.demo.data import Tables

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(240)]

QUERIES = ("enrichment", "totals")


@pytest.fixture(scope="module")
def app(
    master: Cluster, jvm: Driver, tables: Tables, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Application]:
    bounds = {
        f"spark.elastic.query.{name}.{end}": "2" for name in QUERIES for end in ("lowerBound", "upperBound")
    }
    with application(
        master, jvm, tables, tmp_path_factory.mktemp("add_up"), {**DECLARED_AT_ONCE, **bounds}
    ) as running:
        yield running


def test_only_one_of_two_starts_where_there_are_slots_for_one(app: Application) -> None:
    app.have_workers(1, cores=2)
    app.feed.start()
    app.start("enrichment", start_enrichment)
    app.wait_in_force(2, ["enrichment"], 0)
    waiting = app.start("totals", start_totals)
    eventually(
        lambda: "lower bounds of queries ahead of it reserve 2" in waiting.status["message"],
        "the second one says what it waits for",
    )
    eventually(lambda: "waiting_for_others" in app.story.reasons("totals"), "the journal says it, too")
    held = now()
    app.wait_in_force(2, ["enrichment"], held)
    assert waiting.lastProgress is None
    assert waiting.isActive


def test_the_other_one_starts_when_a_worker_comes(app: Application) -> None:
    joined = now()
    app.have_workers(2, cores=2)
    app.wait_in_force(2, QUERIES, joined)


def test_a_worker_that_is_lost_stops_neither(app: Application) -> None:
    lost = now()
    app.cluster.remove_worker(app.workers.pop())
    app.wait_for_slots(2)
    eventually(lambda: "lower_bounds_of_others" in app.story.reasons("totals", lost), "it is said")
    app.wait_in_force(2, QUERIES, now())
    app.have_workers(2, cores=2)


def test_the_output_is_that_of_batch_queries(app: Application) -> None:
    app.check_output()


def test_the_journal_can_be_replayed(app: Application) -> None:
    app.check_journal()
