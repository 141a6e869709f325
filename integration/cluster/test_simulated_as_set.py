"""Tests of the simulator on the journal of a run whose bounds were set over REST: it repeats the run.

Each row makes its task wait for 5 ms and needs no processor. Twice as many rows arrive as one slot can
process, so without the bounds that were set later the lag would keep growing.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from integration.cluster.application import DECLARED_AT_ONCE, Application, application, now
from integration.cluster.lines import ONE_SLOT_EACH, TRIGGER_S, Lines, start_slow
from integration.cluster.loaded import just_met
from integration.streaming.driver import Driver
from integration.streaming.http import Client
from integration.streaming.waiting import eventually
from spark_elastic.runtime.entries import read_journal
from spark_elastic_lab.demo.cluster import Cluster
from spark_elastic_lab.demo.data import Tables
from spark_elastic_lab.simulator.heard import Heard
from spark_elastic_lab.simulator.recorded import heard
from spark_elastic_lab.simulator.recorded_run import recorded_run
from spark_elastic_lab.simulator.simulation import simulate

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]

WORKERS = 3
ROWS_PER_S = 400
RUN_S = 60
WARM = 4


@pytest.fixture(scope="module")
def app(
    master: Cluster, jvm: Driver, tables: Tables, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Application]:
    conf = {
        **DECLARED_AT_ONCE,
        **ONE_SLOT_EACH,
        "spark.elastic.query.slow.upperBound": "1",
        "spark.ui.enabled": "true",
    }
    with application(master, jvm, tables, tmp_path_factory.mktemp("as_set"), conf) as running:
        yield running


@pytest.fixture(scope="module")
def told(app: Application) -> Heard:
    """Run a query that is allowed more slots while it runs; return the content of its journal."""
    app.have_workers(WORKERS)
    with Lines(app.places.output.with_name("lines"), rows_per_s=ROWS_PER_S // 8) as lines:
        query = app.start("slow", start_slow(lines))
        app.wait_in_force(1, ["slow"], 0)
        eventually(lambda: len(app.story.named("slow").batches) >= WARM, "micro-batches that are warm")
        api = Client(app.spark.sparkContext.uiWebUrl or "", "/elastic/api/v1")
        bounds = {"shuffle": {"parallelism": {"lowerBound": 1, "upperBound": WORKERS}}}
        assert api.put(f"/queries/{query.id}/resource-requirements", bounds).status == 200
        app.wait_in_force(WORKERS, ["slow"], now())
        lines.rows_per_s = ROWS_PER_S
        end = now() + RUN_S * 1_000
        eventually(lambda: now() >= end, "the run is over", timeout_s=2 * RUN_S, every_s=1.0)
        app.check_alive()
    query.stop()
    app.check_journal()
    return heard(entry for _, entry in read_journal(app.journal))


def test_as_set_it_goes_as_it_went(told: Heard) -> None:
    scenario = just_met(told)
    was = recorded_run(told, scenario)
    (again,) = simulate(scenario, ["as-set"])
    assert was.metrics.outside_percent == again.metrics.outside_percent == 0
    assert again.metrics.largest_lag_s == pytest.approx(was.metrics.largest_lag_s, abs=TRIGGER_S)
    assert again.notes.queries["slow"].partitions.values == was.notes.queries["slow"].partitions.values


def test_who_does_not_hear_what_was_set_falls_behind(told: Heard) -> None:
    """This shows that the test above depends on the bounds: with the configured ones, the result differs."""
    (other,) = simulate(just_met(told), ["declared"])
    assert other.metrics.outside_percent > 10
