"""Tests of priorities and slot-sharing groups: which query starts first, and which share slots."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from integration.cluster.application import DECLARED_AT_ONCE, Application, application, now
from integration.cluster.queries import start_enrichment, start_totals
from integration.streaming.driver import Driver
from integration.streaming.waiting import eventually
from spark_elastic.core.actions import RequestExecutors
from spark_elastic_lab.demo.cluster import Cluster
from spark_elastic_lab.demo.data import Tables

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

DECLARED: dict[str, dict[str, int | str]] = {
    "low": {"lowerBound": 2, "upperBound": 2},
    "high": {"lowerBound": 2, "upperBound": 2, "priority": 1},
    "left": {"lowerBound": 2, "upperBound": 2, "slotSharingGroup": "both"},
    "right": {"lowerBound": 2, "upperBound": 2, "slotSharingGroup": "both"},
    "heavy": {"upperBound": 8, "weight": 3},
    "light": {"upperBound": 8},
    "apart": {
        "lowerBound": 2,
        "upperBound": 4,
        "source-0.lowerBound": 2,
        "source-0.upperBound": 2,
        "source-0.slotSharingGroup": "reading",
    },
}


@pytest.fixture(scope="module")
def running(
    master: Cluster, jvm: Driver, tables: Tables, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Application]:
    declared = {
        f"spark.elastic.query.{name}.{key}": str(value)
        for name, wanted in DECLARED.items()
        for key, value in wanted.items()
    }
    folder = tmp_path_factory.mktemp("priority_weight_groups")
    with application(master, jvm, tables, folder, {**DECLARED_AT_ONCE, **declared}) as started:
        started.feed.start()
        yield started


@pytest.fixture
def app(running: Application) -> Iterator[Application]:
    """Return the application without queries; those that a test starts end with it."""
    yield running
    for query in running.queries.values():
        query.stop()
    running.queries.clear()


def requested(app: Application) -> int:
    """Return the number of executors that was requested last, 0 for none."""
    return [0, *(order.total for order in app.story.orders if isinstance(order, RequestExecutors))][-1]


@pytest.mark.slow
def test_the_higher_priority_starts_first_though_it_was_submitted_later(app: Application) -> None:
    low = app.start("low", start_totals)
    eventually(lambda: "waiting_for_resources" in app.story.reasons("low"), "the first one waits")
    app.start("high", start_enrichment)
    eventually(lambda: "waiting_for_resources" in app.story.reasons("high"), "the second one waits, too")
    app.have_workers(1, cores=2)
    app.wait_in_force(2, ["high"], 0)
    eventually(lambda: "waiting_for_others" in app.story.reasons("low"), "the first one comes second")
    app.wait_in_force(2, ["high"], now())
    assert app.story.starts("low") == []
    assert low.lastProgress is None
    assert low.isActive
    joined = now()
    app.have_workers(2, cores=2)
    app.wait_in_force(2, ["low", "high"], joined)


@pytest.mark.slow
def test_queries_of_one_group_start_on_the_same_slots(app: Application) -> None:
    app.have_workers(1, cores=2)
    app.start("left", start_enrichment)
    app.start("right", start_totals)
    app.wait_in_force(2, ["left", "right"], 0)
    app.wait_in_force(2, ["left", "right"], now())
    assert app.story.slots.total == 2
    eventually(lambda: requested(app) == 1, "one executor is all that is wanted")


def test_slots_are_divided_by_weight(app: Application) -> None:
    app.start("heavy", start_enrichment)
    app.start("light", start_totals)
    app.have_workers(2, cores=2)
    app.wait_in_force(3, ["heavy"], 0)
    app.wait_in_force(1, ["light"], 0)
    both = now()
    app.wait_in_force(3, ["heavy"], both)
    app.wait_in_force(1, ["light"], both)


def test_a_source_in_a_group_of_its_own_takes_slots_of_its_own(app: Application) -> None:
    app.have_workers(1, cores=2)
    apart = app.start("apart", start_enrichment)
    eventually(
        lambda: "2 of 4 slots available" in apart.status["message"], "it waits for slots for both vertices"
    )
    eventually(lambda: requested(app) == 3, "four slots for its shuffle and two for its source are requested")
    assert apart.lastProgress is None
    joined = now()
    app.have_workers(2, cores=2)
    app.wait_in_force(2, ["apart"], joined)
    assert app.story.slots.total == 4
    assert {batch.partitions for batch in app.story.named("apart").batches} == {2}


def test_the_journal_can_be_replayed(running: Application) -> None:
    running.check_journal()
