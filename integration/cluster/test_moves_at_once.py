"""Tests that of three stateful queries that want to follow the slots, one at a time moves its state."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import pytest
from attrs import frozen

from integration.cluster.application import Application, application, now
from integration.cluster.queries import start_suppliers, start_totals
from integration.streaming.driver import Driver
from spark_elastic.core.actions import Rescale
from spark_elastic.core.events import ActionOutcome
from spark_elastic_lab.demo.cluster import Cluster
from spark_elastic_lab.demo.data import Tables

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]

QUERIES = ("totals", "suppliers", "more_suppliers")


@frozen
class Move:
    """A rescale from its first order to the outcome of its last one; epoch ms, None if still open."""

    query: str
    ordered: int
    ended: int | None


@pytest.fixture(scope="module")
def app(
    master: Cluster, jvm: Driver, tables: Tables, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Application]:
    conf = {
        "spark.executor.cores": "1",
        "spark.elastic.adaptiveScheduler.maxConcurrentRescales": "1",
    }
    with application(master, jvm, tables, tmp_path_factory.mktemp("moves"), conf) as running:
        yield running


def moves(app: Application) -> list[Move]:
    """Return the moves in the journal in the order of their starts; no two may overlap."""
    story = app.story
    orders: dict[str, list[Rescale]] = defaultdict(list)
    for order in story.orders:
        if isinstance(order, Rescale):
            orders[order.cause].append(order)
    found: list[Move] = []
    last: Rescale | None = None  # the order whose outcome ends the current move
    began = 0
    for seen in story.seen:
        if last is not None and isinstance(seen.event, ActionOutcome) and seen.event.action == last.id:
            found.append(Move(last.query, began, seen.event.at))
            last = None
        for order in orders[seen.event.id]:
            assert last is None or last.query == order.query, f"{order} while {last} is under way"
            began = seen.event.at if last is None else began
            last = order
    return found if last is None else [*found, Move(last.query, began, None)]


def follow(app: Application, workers: int) -> list[Move]:
    """Bring the cluster to this many workers of one slot; return the resulting moves once all have ended."""
    since = now()
    app.have_workers(workers)
    app.wait_in_force(workers, QUERIES, since)
    new = [move for move in moves(app) if move.ordered >= since]
    assert {move.query for move in new} == {app.story.named(name).query for name in QUERIES}
    assert "rescale_queued" in [reason for name in QUERIES for reason in app.story.reasons(name, since)]
    return new


def test_queries_start(app: Application) -> None:
    app.have_workers(1)
    app.feed.start()
    app.start("totals", start_totals)
    app.start("suppliers", start_suppliers)
    app.start("more_suppliers", start_suppliers)
    app.wait_in_force(1, QUERIES, 0)


def test_more_slots_are_followed_by_one_query_after_the_other(app: Application) -> None:
    follow(app, 3)


def test_who_waits_goes_on(app: Application) -> None:
    """Between its queueing and its own move, a query has committed micro-batches."""
    going_on = []
    for name in QUERIES:
        query = app.story.named(name)
        for said in app.story.said:
            if said.query == query.query and said.reason == "rescale_queued":
                own = [move.ordered for move in moves(app) if move.query == query.query]
                ordered = next((at for at in own if at >= said.at), said.at)
                going_on += [batch for batch in query.batches if said.at <= batch.ended <= ordered]
    assert going_on


def test_fewer_slots_are_followed_in_the_same_way(app: Application) -> None:
    follow(app, 1)


def test_the_output_is_that_of_batch_queries(app: Application) -> None:
    app.check_output()


def test_the_journal_can_be_replayed(app: Application) -> None:
    app.check_journal()
