"""Tests of a query in which one key has most of the rows: useless executors are not requested."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from integration.cluster.application import Application, application
from integration.cluster.lines import (
    SETTLED_S,
    TRIGGER_S,
    Lines,
    autoscaled,
    start_slow,
    wait_for_executors,
)
from integration.cluster.lines import lines as lines
from integration.streaming.driver import Driver
from integration.streaming.http import Client
from integration.streaming.waiting import eventually
from spark_elastic.core.actions import RequestExecutors
from spark_elastic_lab.demo.cluster import Cluster
from spark_elastic_lab.demo.data import Tables

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


def keeps_up(app: Application) -> bool:
    """Return whether the last micro-batch took less than its interval."""
    progress = app.queries["slow"].lastProgress
    return progress is not None and progress["batchDuration"] < TRIGGER_S * 1_000


def requests(app: Application) -> list[int]:
    return [order.total for order in app.story.orders if isinstance(order, RequestExecutors)]


def test_one_key_with_most_of_the_rows_is_named_and_gets_no_executors(app: Application, lines: Lines) -> None:
    # Most of each micro-batch is one task, but all is done in time.
    lines.rows_per_s = 60
    app.have_workers(WORKERS)
    app.start("slow", start_slow(lines, by=HOT_KEY))
    wait_for_executors(app, 1, FEW, lambda: keeps_up(app))
    # Now that task takes as long as the interval; one other slot does the rest meanwhile.
    before = len(requests(app))
    lines.rows_per_s = 240
    api = Client(str(app.spark.sparkContext.uiWebUrl), "/elastic/api/v1")

    def named() -> Any:
        app.check_alive()
        (query,) = api.get("/queries").json["queries"]
        policy = query["policy"]
        # An answer at the earlier rate does not count: fewer executors were enough for it.
        is_news = policy and policy["reason"] == "autoscale_skew" and (policy["rowsPerSecond"] or 0) > 200
        return policy if is_news else None

    policy = eventually(named, "the long task is named", timeout_s=SETTLED_S, every_s=0.5)
    assert "Spread the key or partition with most rows" in policy["message"]
    assert policy["wantedSlots"] <= FEW
    assert max(requests(app)[before:], default=FEW) <= FEW
    one = api.get(f"/queries/{app.queries['slow'].id}").json["policy"]
    assert one["model"]["points"], "the line has its points"
    assert one["objective"]["intervalMs"] == 4_000


def test_the_journal_can_be_replayed(app: Application) -> None:
    app.check_journal()
