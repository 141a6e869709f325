"""Tests of the policy `autoscale` on a cluster: executors follow the load automatically.

Each row makes its task wait for a while and needs no processor, so more slots are faster on any machine.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import functions as F

from integration.cluster.application import Application, application, now
from integration.cluster.lines import SETTLED_S, Lines, autoscaled, start_slow, wait_for_executors
from integration.cluster.lines import lines as lines
from integration.streaming.driver import Driver
from integration.streaming.waiting import eventually
from spark_elastic.core.actions import DecommissionExecutors, RequestExecutors
from spark_elastic_lab.demo.cluster import Cluster
from spark_elastic_lab.demo.data import Tables

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]

WORKERS = 6
WINDOW_S = 20


@pytest.fixture(scope="module")
def app(
    master: Cluster, jvm: Driver, tables: Tables, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Application]:
    conf = {
        **autoscaled(WORKERS, WINDOW_S),
        "spark.elastic.adaptiveScheduler.submission.resourceStabilizationTimeout": "0",
    }
    with application(master, jvm, tables, tmp_path_factory.mktemp("autoscale"), conf) as running:
        yield running


def wait_until_it_keeps_up(app: Application, least: int, most: int) -> int:
    """Wait until there are this many executors, and the query keeps up with them; return their number."""

    def keeps_up() -> bool:
        progress = app.queries["slow"].lastProgress
        return progress is not None and progress["batchDuration"] < 4_000

    return wait_for_executors(app, least, most, keeps_up)


def test_of_all_workers_those_that_the_load_needs_are_kept(app: Application, lines: Lines) -> None:
    app.have_workers(WORKERS)
    app.start("slow", start_slow(lines))
    wait_until_it_keeps_up(app, 1, 2)
    assert [order for order in app.story.orders if isinstance(order, DecommissionExecutors)]
    assert "autoscale_down" in app.story.reasons("slow", 0)


def test_twice_the_load_brings_executors_back(app: Application, lines: Lines) -> None:
    before, since = wait_until_it_keeps_up(app, 1, 2), now()
    lines.rows_per_s *= 2
    eventually(
        lambda: {"autoscale_up", "autoscale_up_backlog"} & {*app.story.reasons("slow", since)},
        "more are wanted",
        timeout_s=SETTLED_S,
    )
    assert wait_until_it_keeps_up(app, before + 1, WORKERS) > before


def test_much_more_than_there_may_be_is_limited_and_it_is_said(app: Application, lines: Lines) -> None:
    since = now()
    lines.rows_per_s *= 4

    def limited() -> bool:
        return any(one.reason == "executors_limited" and one.at >= since for one in app.story.said)

    eventually(limited, "it is said", timeout_s=SETTLED_S)
    requests = [order.total for order in app.story.orders if isinstance(order, RequestExecutors)]
    assert max(requests) <= WORKERS
    lines.rows_per_s //= 8
    wait_until_it_keeps_up(app, 1, 3)


def test_every_row_is_there_once(app: Application, lines: Lines) -> None:
    lines.__exit__()
    app.queries["slow"].processAllAvailable()
    app.queries["slow"].stop()
    found = app.spark.read.parquet(str(app.places.output / "slow"))
    counts = found.agg(F.count("*").alias("rows"), F.countDistinct("value").alias("numbers")).collect()
    assert [(row["rows"], row["numbers"]) for row in counts] == [(lines.written, lines.written)]


def test_the_journal_can_be_replayed(app: Application) -> None:
    app.check_journal()
