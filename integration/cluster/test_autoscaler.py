"""Tests of workers that follow the load from outside, by the rule of Kubernetes' autoscaler on our metrics.

Each row makes its task wait for a while and needs no processor, so more slots are faster on any machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from pyspark.sql import functions as F

from integration.cluster.application import Application, application
from integration.cluster.autoscaler import Autoscaler
from integration.cluster.lines import ONE_SLOT_EACH, Lines, start_slow
from integration.cluster.lines import lines as lines
from integration.streaming.driver import Driver
from integration.streaming.scrape import metric
from integration.streaming.waiting import eventually
from spark_elastic.core.events import ExecutorDecommissioning
from spark_elastic_lab.demo.cluster import Cluster
from spark_elastic_lab.demo.data import Tables
from spark_elastic_lab.simulator.rivals.kubernetes import Hpa

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]

MOST = 6
# Stabilization, the start of a worker on few cores, and the micro-batches in the metric's median.
SETTLED_S = 240.0


@pytest.fixture(scope="module")
def app(
    master: Cluster, jvm: Driver, tables: Tables, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Application]:
    conf = {"spark.ui.enabled": "true", **ONE_SLOT_EACH}
    with application(master, jvm, tables, tmp_path_factory.mktemp("autoscaled"), conf) as running:
        yield running


@pytest.fixture(scope="module")
def autoscaler(app: Application) -> Iterator[Autoscaler]:
    rule = Hpa(target=1, least=1, most=MOST, up_s=4, down_s=20)
    with Autoscaler(app, rule) as scaling:
        yield scaling
    assert scaling.errors == []


def shown(app: Application, name: str) -> float | None:
    """Read a metric that only one query has, or the application."""
    return metric(str(app.spark.sparkContext.uiWebUrl), name)


def wait_until_settled(app: Application, autoscaler: Autoscaler, least: int, most: int) -> int:
    """Wait until the query keeps up with a number of workers within a range; return that number."""

    def look() -> int:
        app.check_alive()
        assert autoscaler.errors == []
        last = autoscaler.looks[-1] if autoscaler.looks else None
        if last is None or last.value is None or not least <= last.before == last.after <= most:
            return 0
        now = shown(app, "query_load_ratio")
        keeps_up = now is not None and now < 1 and app.story.slots.total == last.after
        return last.after if keeps_up else 0

    try:
        return eventually(look, f"{least} to {most} workers that keep up", timeout_s=SETTLED_S, every_s=0.5)
    except AssertionError as error:
        raise AssertionError(f"{error}; {steps(autoscaler)}, load {shown(app, 'query_load_ratio')}") from None


def steps(autoscaler: Autoscaler) -> list[tuple[float | None, int, int]]:
    """Return the autoscaler's readings, each with the number of workers before and after."""
    return [(look.value, look.before, look.after) for look in autoscaler.looks]


def test_a_query_that_waits_for_slots_brings_the_first_worker_and_its_load_the_next(
    app: Application, lines: Lines, autoscaler: Autoscaler
) -> None:
    assert shown(app, "desired_slots") is None
    assert app.workers == []
    app.start("slow", start_slow(lines))
    wait_until_settled(app, autoscaler, 2, 3)


def test_twice_the_load_brings_more_workers(app: Application, lines: Lines, autoscaler: Autoscaler) -> None:
    before = wait_until_settled(app, autoscaler, 2, 3)
    lines.rows_per_s *= 2
    after = wait_until_settled(app, autoscaler, before + 1, MOST)
    assert autoscaler.looks[-1].value is not None
    assert before < after <= MOST


def test_half_the_load_lets_workers_go_without_a_failed_task(
    app: Application, lines: Lines, autoscaler: Autoscaler
) -> None:
    before = wait_until_settled(app, autoscaler, 3, MOST)
    lines.rows_per_s //= 2
    wait_until_settled(app, autoscaler, 1, before - 1)
    gone = [seen for seen in app.story.seen if isinstance(seen.event, ExecutorDecommissioning)]
    assert gone
    assert all(query.exception() is None for query in app.queries.values())


def test_it_does_not_flap(autoscaler: Autoscaler) -> None:
    changes = [after - before for _, before, after in steps(autoscaler) if after != before]
    turns = sum((a > 0) != (b > 0) for a, b in pairwise(changes))
    assert turns <= 3, steps(autoscaler)


def test_every_row_is_there_once(app: Application, lines: Lines) -> None:
    lines.__exit__()
    app.queries["slow"].processAllAvailable()
    app.queries["slow"].stop()
    found = app.spark.read.parquet(str(app.places.output / "slow"))
    counts = found.agg(F.count("*").alias("rows"), F.countDistinct("value").alias("numbers")).collect()
    assert [(row["rows"], row["numbers"]) for row in counts] == [(lines.written, lines.written)]
