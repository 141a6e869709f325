"""A query one key of which has most of the rows: executors that would not help are not asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from integration.cluster.application import Application, application
from integration.cluster.lines import SETTLED_S, Lines, autoscaled, start_slow
from integration.cluster.lines import lines as lines
from integration.streaming.driver import Driver
from integration.streaming.http import Client
from integration.streaming.waiting import eventually
from spark_elastic.core.actions import RequestExecutors
from spark_elastic.demo.cluster import Cluster
from spark_elastic.demo.data import Tables

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]

FEW, WORKERS = 2, 6
HOT_KEY = "CASE WHEN CAST(value AS INT) % 10 < 8 THEN 'hot' ELSE value END"


@pytest.fixture(scope="module")
def app(
    master: Cluster, jvm: Driver, tables: Tables, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Application]:
    conf = {
        **autoscaled(WORKERS, window_s=20),
        "spark.ui.enabled": "true",
        "spark.elastic.adaptiveScheduler.submission.resourceStabilizationTimeout": "0",
    }
    with application(master, jvm, tables, tmp_path_factory.mktemp("skew"), conf) as running:
        yield running


def test_one_key_with_most_of_the_rows_is_named_and_gets_no_executors(app: Application, lines: Lines) -> None:
    # Its task takes longer than the interval; what is left is done beside it by one other slot.
    lines.rows_per_s = 300
    app.have_workers(FEW)
    app.start("slow", start_slow(lines, by=HOT_KEY))
    app.have_workers(WORKERS)
    api = Client(str(app.spark.sparkContext.uiWebUrl), "/elastic/api/v1")

    def named() -> Any:
        app.check_alive()
        (query,) = api.get("/queries").json["queries"]
        policy = query["policy"]
        return policy if policy and policy["reason"] == "autoscale_skew" else None

    def requests() -> list[int]:
        return [order.total for order in app.story.orders if isinstance(order, RequestExecutors)]

    policy = eventually(named, "the long task is named", timeout_s=SETTLED_S, every_s=0.5)
    assert "One key or partition has so much of the rows" in policy["message"]
    # Before that it may have been granted all: these go as what has piled up meanwhile does.
    before = len(requests())
    eventually(
        lambda: (found := named()) and found["wantedSlots"] < WORKERS,
        "it is to have fewer",
        timeout_s=SETTLED_S,
        every_s=0.5,
    )
    eventually(lambda: min(requests()[-1:], default=WORKERS) < WORKERS, "fewer are requested")
    later = requests()[max(0, before - 1) :]
    assert later == sorted(later, reverse=True), "it gets no more"
    one = api.get(f"/queries/{app.queries['slow'].id}").json["policy"]
    assert one["model"]["points"], "the line has its points"
    assert one["objective"]["intervalMs"] == 4_000


def test_the_journal_can_be_replayed(app: Application) -> None:
    app.check_journal()
