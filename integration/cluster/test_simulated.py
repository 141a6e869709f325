"""Tests of the simulator against the cluster: a simulation of a run's journal comes close to the run.

Each row makes its task wait for a while and needs no processor, so more slots are faster on any machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from statistics import fmean

import pytest

from integration.bench.apart import Span, apart, course
from integration.cluster.application import Application, application
from integration.cluster.lines import ROWS_PER_S, autoscaled
from integration.cluster.loaded import heard_of, run_load
from integration.streaming.driver import Driver
from spark_elastic_lab.demo.cluster import Cluster
from spark_elastic_lab.demo.data import Tables
from spark_elastic_lab.simulator.load import Load
from spark_elastic_lab.simulator.recorded import scenario_of
from spark_elastic_lab.simulator.recorded_run import recorded_run
from spark_elastic_lab.simulator.simulation import Result, simulate

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(1_800)]

WORKERS = 6
# Multiples of the usual rate, and their seconds: a day with its peak, in minutes.
PHASES = ((1.0, 180), (2.0, 240), (0.5, 240))
DAY = Load([ROWS_PER_S * share for share, seconds in PHASES for _ in range(seconds)])
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
    """Return a run on the cluster, and its simulation."""
    told = heard_of(app.journal, DAY, run_load(app, "slow", DAY, WORKERS))
    scenario = scenario_of(told)
    (simulated,) = simulate(scenario, ["as-set"])
    return recorded_run(told, scenario), simulated


def test_executors_are_as_many_over_time(runs: tuple[Result, Result]) -> None:
    was, would = (course(run.notes, "slow", Span(0, len(DAY.rates))) for run in runs)
    off = apart(was, would)["executors"]
    assert max(was.executors) > min(was.executors), "nothing was scaled"
    assert off <= MOST_OFF, f"{off:.0%} off: {runs[0].metrics} and {runs[1].metrics}"


def test_micro_batches_take_as_long(runs: tuple[Result, Result]) -> None:
    was, would = (
        fmean(after.at - before.at for before, after in pairwise(commits))
        for commits in (run.notes.queries["slow"].commits for run in runs)
    )
    assert would == pytest.approx(was, rel=MOST_OFF)


def test_rows_wait_as_long(runs: tuple[Result, Result]) -> None:
    was, would = runs
    # The random duration of a single micro-batch is no error of the model.
    interval = was.scenario.queries[0].trigger_s
    largest = was.metrics.largest_lag_s
    assert abs(would.metrics.largest_lag_s - largest) <= max(MOST_OFF * largest, interval)
