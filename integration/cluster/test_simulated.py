"""The simulator against the cluster: from the journal of a run it comes near what the run was.

Each row keeps its task waiting for a while and needs no processor: so more slots are faster on any machine.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from statistics import fmean

import pytest

from integration.cluster.application import Application, application
from integration.cluster.lines import Lines, autoscaled, start_slow
from integration.streaming.driver import Driver
from spark_elastic.demo.cluster import Cluster
from spark_elastic.demo.data import Tables
from spark_elastic.runtime.entries import read_journal
from spark_elastic.simulator.recorded import heard, scenario_of
from spark_elastic.simulator.recorded_run import recorded_run
from spark_elastic.simulator.simulation import Result, simulate

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(1_800)]

WORKERS = 6
# Rows by the usual rate, and for how long: a day with its peak, in minutes.
PHASES = ((1.0, 180.0), (2.0, 240.0), (0.5, 240.0))
MOST_OFF = 0.15


@pytest.fixture(scope="module")
def app(
    master: Cluster, jvm: Driver, tables: Tables, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Application]:
    conf = autoscaled(WORKERS, window_s=30)
    with application(master, jvm, tables, tmp_path_factory.mktemp("simulated"), conf) as running:
        yield running


@pytest.fixture(scope="module")
def runs(app: Application) -> tuple[Result, Result]:
    """Give a run on the cluster, and its simulation."""
    with Lines(app.places.output.with_name("lines")) as lines:
        usual = lines.rows_per_s
        app.have_workers(WORKERS)
        app.start("slow", start_slow(lines))
        for share, seconds in PHASES:
            lines.rows_per_s = int(usual * share)
            time.sleep(seconds)
            app.check_alive()
    app.queries["slow"].stop()
    told = heard(entry for _, entry in read_journal(app.journal))
    scenario = scenario_of(told)
    (simulated,) = simulate(scenario, ["as-set"])
    return recorded_run(told, scenario), simulated


def test_executors_are_as_many_over_time(runs: tuple[Result, Result]) -> None:
    was, would = runs
    seconds = range(0, was.scenario.end_ms, 1_000)
    there = [was.notes.there.at(now) for now in seconds]
    off = fmean(abs(was.notes.there.at(now) - would.notes.there.at(now)) for now in seconds) / fmean(there)
    assert max(there) > min(there), "nothing was scaled"
    assert off <= MOST_OFF, f"{off:.0%} off: {was.metrics} and {would.metrics}"


def test_micro_batches_take_as_long(runs: tuple[Result, Result]) -> None:
    was, would = (
        fmean(after.at - before.at for before, after in pairwise(commits))
        for commits in (run.notes.queries["slow"].commits for run in runs)
    )
    assert would == pytest.approx(was, rel=MOST_OFF)


def test_rows_wait_as_long(runs: tuple[Result, Result]) -> None:
    was, would = runs
    # What a single micro-batch does by chance is no error of the model.
    interval = was.scenario.queries[0].trigger_s
    largest = was.metrics.largest_lag_s
    assert abs(would.metrics.largest_lag_s - largest) <= max(MOST_OFF * largest, interval)
