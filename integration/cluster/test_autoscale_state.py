"""Tests of a stateful query under `autoscale`: executors follow its load, and its state stays."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import functions as F

from integration.cluster.application import Application, application, now
from integration.cluster.lines import SETTLED_S, Lines, autoscaled, start_slow, wait_for_executors
from integration.cluster.lines import lines as lines
from integration.streaming.driver import Driver
from integration.streaming.waiting import eventually
from spark_elastic_lab.demo.cluster import Cluster
from spark_elastic_lab.demo.data import Tables

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]

WORKERS = 6
WINDOW_S = 20
# On few cores the partitions of its state take seconds of each micro-batch, even with few rows. The interval
# is so long that the rows take most of it.
TRIGGER_S = 10.0


@pytest.fixture(scope="module")
def app(
    master: Cluster, jvm: Driver, tables: Tables, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Application]:
    conf = {
        **autoscaled(WORKERS, WINDOW_S),
        "spark.elastic.adaptiveScheduler.submission.resourceStabilizationTimeout": "0",
        "spark.elastic.adaptiveScheduler.executing.cooldownAfterRescaling": "0",
        # With `always`, which other tests here use, the state follows every slot.
        "spark.elastic.adaptiveScheduler.rescalePolicy": "gain",
    }
    with application(master, jvm, tables, tmp_path_factory.mktemp("state"), conf) as running:
        yield running


def test_it_starts_with_more_partitions_than_slots(app: Application, lines: Lines) -> None:
    app.have_workers(WORKERS)
    app.start("known", start_slow(lines, stateful=True, trigger_s=TRIGGER_S))
    eventually(lambda: app.story.starts("known"), "the order to start")
    assert "start_with_reserve" in app.story.reasons("known", 0)
    assert (app.story.starts("known")[0].partitions or 0) > WORKERS


def test_executors_come_and_go_and_the_state_stays(app: Application, lines: Lines) -> None:
    few = wait_for_executors(app, 1, 2)
    since = now()
    lines.rows_per_s *= 2
    eventually(
        lambda: {"autoscale_up", "autoscale_up_backlog"} & {*app.story.reasons("known", since)},
        "more are wanted",
        timeout_s=SETTLED_S,
    )
    assert wait_for_executors(app, few + 1, WORKERS) > few
    assert app.story.rescaled_to("known") == [], "each of these would have moved the state"


def test_every_row_is_there_once(app: Application, lines: Lines) -> None:
    lines.__exit__()
    app.queries["known"].processAllAvailable()
    app.queries["known"].stop()
    found = app.spark.read.parquet(str(app.places.output / "known"))
    counts = found.agg(F.count("*").alias("rows"), F.countDistinct("value").alias("numbers")).collect()
    assert [(row["rows"], row["numbers"]) for row in counts] == [(lines.written, lines.written)]


def test_the_journal_can_be_replayed(app: Application) -> None:
    app.check_journal()
