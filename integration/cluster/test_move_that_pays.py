"""Tests that with `rescalePolicy gain`, the default, state is moved where that saves more than it costs.

Each row makes its task wait for a while and needs no processor, so the saving of a move is known in advance.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

import pytest
from pyspark.sql import functions as F

from integration.cluster.application import Application, application, now
from integration.cluster.lines import ONE_SLOT_EACH, ROW_MS, Lines, start_slow
from integration.streaming.driver import Driver
from integration.streaming.waiting import eventually
from spark_elastic_lab.demo.cluster import Cluster
from spark_elastic_lab.demo.data import Tables

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(600)]

TRIGGER_S = 10.0
# 6 s of work in a micro-batch: far more than the time of a partition without rows, on any machine.
ROWS_PER_S = 120
MANY = 2  # executors come one by one, and each one triggers a decision
MEASURED = 3
LATE_S = 240.0


@pytest.fixture(scope="module")
def app(
    master: Cluster, jvm: Driver, tables: Tables, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Application]:
    conf = {
        **ONE_SLOT_EACH,
        # With `always`, which other tests here use, the state follows every slot.
        "spark.elastic.adaptiveScheduler.rescalePolicy": "gain",
    }
    with application(master, jvm, tables, tmp_path_factory.mktemp("gain"), conf) as running:
        yield running


@pytest.fixture(scope="module")
def heavy(app: Application) -> Iterator[Lines]:
    with Lines(app.places.output.with_name("heavy"), rows_per_s=1) as writing:
        yield writing


def measured_ms(app: Application, name: str, partitions: int, rows_per_s: int, since: int = 0) -> float:
    """Return the duration of micro-batches with this many partitions that have read one interval's rows."""
    usual = rows_per_s * TRIGGER_S

    def look() -> list[int]:
        app.check_alive()
        found = [one for one in app.story.named(name).batches if one.started >= since]
        found = [one for one in found if one.partitions == partitions and 0.7 <= one.rows / usual <= 1.3]
        return [one.ended - one.started for one in found] if len(found) >= MEASURED else []

    took = eventually(look, f"batches of {name} with {partitions} partitions", LATE_S, every_s=0.5)
    return median(took)


def test_state_is_moved_to_new_slots_where_the_batches_are_worth_it(app: Application, heavy: Lines) -> None:
    app.have_workers(1)
    app.start("heavy", start_slow(heavy, stateful=True, trigger_s=TRIGGER_S))
    app.wait_in_force(1, ["heavy"], 0)
    heavy.rows_per_s = ROWS_PER_S
    before_ms = measured_ms(app, "heavy", 1, ROWS_PER_S)
    since = now()
    app.have_workers(MANY)
    app.wait_in_force(MANY, ["heavy"], since)
    (pays,) = [one for one in app.story.said if one.reason == "rescale_pays"]
    assert (pays.before, pays.after) == (1, MANY)
    assert app.story.rescaled_to("heavy") == [MANY]
    after_ms = measured_ms(app, "heavy", MANY, ROWS_PER_S, since)
    numbers = pays.numbers
    assert float(numbers["saved_total_ms"]) > float(numbers["cost_ms"])
    # The estimates for both counts match the measurements, up to the noise of a busy machine.
    assert float(numbers["before_ms"]) == pytest.approx(before_ms, rel=0.4)
    assert float(numbers["after_ms"]) == pytest.approx(after_ms, rel=0.6)
    waited_ms = ROWS_PER_S * TRIGGER_S * ROW_MS
    assert before_ms - after_ms > (1 - 1 / MANY) * waited_ms / 2


def test_every_row_is_there_once(app: Application, heavy: Lines) -> None:
    heavy.__exit__()
    app.queries["heavy"].processAllAvailable()
    app.queries["heavy"].stop()
    found = app.spark.read.parquet(str(app.places.output / "heavy"))
    counts = found.agg(F.count("*").alias("rows"), F.countDistinct("value").alias("numbers")).collect()
    assert [(row["rows"], row["numbers"]) for row in counts] == [(heavy.written, heavy.written)]


def test_the_journal_can_be_replayed(app: Application) -> None:
    app.check_journal()
