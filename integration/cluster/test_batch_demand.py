"""Tests of the policy `autoscale` on a cluster with batch jobs: alone, then next to a query.

The tasks sleep, so they need no processor: more executors are faster on any machine.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from integration.cluster.application import Application, application, now
from integration.cluster.batch_jobs import run_sleepers
from integration.cluster.lines import Lines, autoscaled, start_slow, wait_for_executors
from integration.cluster.lines import lines as lines
from integration.streaming.driver import Driver
from integration.streaming.waiting import eventually
from spark_elastic.core.actions import DecommissionExecutors, RequestExecutors
from spark_elastic_lab.demo.cluster import Cluster
from spark_elastic_lab.demo.data import Tables

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]

WORKERS = 4
IDLE_S = 5
UP = ("batch_first", "batch_up")


@pytest.fixture(scope="module")
def app(
    master: Cluster, jvm: Driver, tables: Tables, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Application]:
    conf = {
        **autoscaled(WORKERS, 20),
        "spark.elastic.slotIdleTimeout": f"{IDLE_S}s",
        # Executors start slowly on few cores, and jobs of several minutes would be needed to pay for them.
        "spark.elastic.autoscale.batchGain": "0.2",
    }
    with application(master, jvm, tables, tmp_path_factory.mktemp("batch"), conf) as running:
        yield running


def reasons(app: Application, since: int) -> list[str]:
    return [one.reason for one in app.story.said if one.at >= since]


def test_what_small_jobs_do_not_need_is_given_back(app: Application) -> None:
    app.have_workers(WORKERS)
    since = now()

    def look() -> bool:
        run_sleepers(app.spark, 4, 0.01)
        return app.story.slots.total == 1

    eventually(look, "one executor is left", timeout_s=120)
    assert "executors_not_wanted" in reasons(app, since)
    assert [order for order in app.story.orders if isinstance(order, DecommissionExecutors)]
    assert not {*UP} & {*reasons(app, since)}


def test_long_tasks_bring_executors_and_their_end_gives_them_back(app: Application) -> None:
    since = now()
    run_sleepers(app.spark, 60, 3.0)
    took_s = (now() - since) / 1_000
    assert took_s < 60 * 3.0  # its duration on one executor
    assert "executors_for_batch" in reasons(app, since)
    (up, *_) = [one for one in app.story.said if one.reason in UP and one.at >= since]
    assert 0 < float(up.numbers["left"]) <= 60
    assert float(up.numbers["ready_ms"]) > 0
    requests = [order.total for order in app.story.orders if isinstance(order, RequestExecutors)]
    assert 1 < max(requests) <= WORKERS
    eventually(lambda: app.story.slots.total == 0, "all are given back", timeout_s=120)


def test_beside_a_query_the_executors_come_on_top_of_its_own(app: Application, lines: Lines) -> None:
    app.start("slow", start_slow(lines))

    def keeps_up() -> bool:
        progress = app.queries["slow"].lastProgress
        return progress is not None and progress["batchDuration"] < 4_000

    settled = wait_for_executors(app, 1, 3, keeps_up)
    since = now()
    run_sleepers(app.spark, 60, 3.0)
    assert "batch_up" in reasons(app, since)
    requests = [one for one in app.story.said if one.reason == "executors_for_batch" and one.at >= since]
    assert max(one.after or 0 for one in requests) > settled
    app.queries["slow"].stop()
