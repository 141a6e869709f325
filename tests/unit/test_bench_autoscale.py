"""Tests of the summary of the bench that compares the simulator with a cluster."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from integration.bench import autoscale
from integration.bench.apart import Course, Span, apart, course, mean
from integration.cluster.lines import LinesOfLoad
from integration.cluster.loaded import as_written, heard_since
from spark_elastic_lab.simulator.driver import EPOCH_MS
from spark_elastic_lab.simulator.heard import Heard
from spark_elastic_lab.simulator.load import Load
from spark_elastic_lab.simulator.record import Commit, Notes, QueryNotes, Rescaled, Steps
from tests.unit.lab.simulator.scenes import CLUSTER, PLAIN, query, scenario
from tests.unit.lab.simulator.written import recorded

pytestmark = pytest.mark.long

SETTINGS = {
    "spark.elastic.schedulerMode": "adaptive",
    "spark.elastic.policy": "autoscale",
    "spark.elastic.autoscale.scaleDownWindow": "30s",
    "spark.elastic.maxExecutors": "6",
}
COSTS = evolve(PLAIN, fixed_ms=800, work_us=6_300, jitter=0.05)
LATE = [Commit(30_000, 0, 30_000, 9, 0)]


def run(load: autoscale.BenchLoad, row_us: float = COSTS.work_us) -> Heard:
    """Simulate a load in place of a run on the cluster."""
    asked = query("slow", load=load.load, trigger_s=4, stateful=False, cost=evolve(COSTS, work_us=row_us))
    cluster = evolve(CLUSTER, initial=6, startup_s=6, decommission_s=2)
    what = scenario(asked, cluster=cluster, hours=load.compared.until / 3_600, seed=7, settings=SETTINGS)
    return heard_since(recorded(what), EPOCH_MS)


def seen(span: Span, there: Steps | None = None, wanted: Steps | None = None, **fields: Any) -> Course:
    notes = Notes(there=there or Steps([0], [1]), wanted=wanted or Steps())
    notes.queries["slow"] = QueryNotes(**fields)
    return course(notes, "slow", span)


def test_executors_are_apart_by_the_area_between_them() -> None:
    was, would = Steps([0, 4_000], [2, 4]), Steps([0, 16_000], [2, 4])
    for span, off in ((Span(0, 30), 24 / 112), (Span(4, 19), 24 / 60), (Span(16, 31), 0)):
        found = apart(seen(span, was, commits=LATE), seen(span, would, commits=LATE))
        assert found == {"executors": pytest.approx(off), "lag": 0, "rescales": 0}
    # Too many executors and too few do not cancel out.
    span = Span(0, 20)
    more_and_less = seen(span, Steps([0, 10_000], [1, 3]), commits=LATE)
    assert apart(seen(span, Steps([0], [2]), commits=LATE), more_and_less)["executors"] == 0.5


def test_lag_grows_until_a_commit_and_is_averaged() -> None:
    # The lag grows from 0 to 10 s in ten seconds, then from 2 to 22 s in twenty.
    commits = [Commit(10_000, 0, 8_000, 9, 9), Commit(30_000, 8_000, 30_000, 9, 0)]
    assert seen(Span(0, 14), commits=commits).lag_s == []
    assert [*seen(Span(0, 40), commits=commits).lag_s] == [
        pytest.approx((50 + 22.5) / 15, abs=0.1),
        pytest.approx(14.5, abs=0.1),
    ]
    assert seen(Span(30, 45), commits=commits).lag_s == [0]
    assert [*seen(Span(0, 30), commits=LATE).lag_s] == [
        pytest.approx(7.5, abs=0.1),
        pytest.approx(22.5, abs=0.1),
    ]
    off = apart(seen(Span(0, 30), commits=LATE), seen(Span(0, 30), commits=commits))["lag"]
    assert off == pytest.approx((7.5 - 4.8 + 22.5 - 14.5) / 30, abs=0.01)


def test_counts_are_those_of_the_span() -> None:
    at = [Rescaled(moment, 1, 2, 0) for moment in (500, 1_000, 2_999, 3_000)]
    found = seen(Span(1, 3), wanted=Steps([0, 1_000, 2_000, 3_000], [4, 5, 5, 3]), rescales=at)
    assert (found.rescales, found.requests) == (2, 1)


@pytest.mark.parametrize(("real", "simulated", "off"), [(8, 7, 0.125), (8, 10, 0.25), (0, 2, 2)])
def test_rescales_are_apart_by_their_number(real: float, simulated: float, off: float) -> None:
    was, would = (Course(executors=[1], lag_s=[1], rescales=of, requests=0) for of in (real, simulated))
    assert apart(was, would)["rescales"] == off


def test_the_mean_of_courses_is_that_of_each_moment() -> None:
    low = Course(executors=[1, 2], lag_s=[4], rescales=2, requests=1)
    high = Course(executors=[3, 2], lag_s=[6], rescales=3, requests=1)
    assert mean([low, high]) == Course(executors=[2, 2], lag_s=[5], rescales=2.5, requests=1)


def test_a_journal_can_be_heard_from_a_later_moment_on() -> None:
    entries = recorded(scenario(query(load="ramp:start=1000,slope=100"), settings=SETTINGS, hours=0.5))
    whole, later = heard_since(entries, EPOCH_MS), heard_since(entries, EPOCH_MS + 900_000)
    assert later.now == whole.now - 900_000
    assert later.initial == whole.there.at(900_000) > whole.initial - 6
    for now in range(0, 900_000, 7_000):
        assert later.there.at(now) == whole.there.at(now + 900_000)
        assert later.wanted.at(now) == whole.wanted.at(now + 900_000)
    assert len(later.startups_ms) < len(whole.startups_ms)
    moved = [one.at for one in whole.queries["counts"].notes.rescales if one.at >= 900_000]
    assert [one.at + 900_000 for one in later.queries["counts"].notes.rescales] == moved


def test_rows_are_written_as_they_come_in(tmp_path: Path) -> None:
    load = Load([3, 0, 2.5, 2.5])
    with LinesOfLoad(folder=tmp_path / "lines", load=load, begin=time.time() - 60) as lines:
        lines._thread.join()
        assert lines.over
    files = sorted((tmp_path / "lines").iterdir(), key=lambda file: int(file.stem))
    assert [file.read_text().split() for file in files] == [["0", "1", "2"], ["3", "4"], ["5", "6", "7"]]


def test_rows_that_are_counted_twice_are_read_once() -> None:
    load = autoscale.LOADS["ramp"]
    found = run(load)
    (asked,) = found.queries.values()
    twice = evolve(asked.samples[5], input_rows=2 * asked.samples[5].input_rows)
    asked.samples[5] = twice
    (right,) = as_written(found, load.load).queries.values()
    total = sum(one.input_rows for one in right.samples)
    assert total == pytest.approx(
        load.load.arrived((right.samples[-1].started - found.begin) / 1_000), abs=300
    )
    assert right.samples[5].input_rows == pytest.approx(twice.input_rows / 2, abs=60)
    assert right.samples[5].duration_ms == twice.duration_ms


@pytest.fixture
def few_simulations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autoscale, "_SIMULATIONS", 4)


@pytest.mark.usefixtures("few_simulations")
def test_a_cluster_that_is_as_the_simulator_has_it_is_met() -> None:
    runs = {name: run(load) for name, load in autoscale.LOADS.items()}
    result = json.loads(json.dumps(autoscale.summary(runs, autoscale.LOADS)))
    for of_load in result["error_percent"].values():
        assert of_load["executors"] <= 15
        assert of_load["lag"] <= 15
    for of_load in result["loads"].values():
        assert of_load["given"]["fixed_ms"] == pytest.approx(COSTS.fixed_ms, rel=0.2)
        assert of_load["given"]["row_us"] == pytest.approx(COSTS.work_us, rel=0.1)
        assert of_load["given"]["startup_s"] == pytest.approx(6, rel=0.2)


@pytest.mark.usefixtures("few_simulations")
def test_another_cluster_is_missed() -> None:
    first, second = autoscale.LOADS
    # Costs measured in one run are wrong for the other.
    runs = {first: run(autoscale.LOADS[first]), second: run(autoscale.LOADS[second], 2 * COSTS.work_us)}
    result = autoscale.summary(runs, autoscale.LOADS)
    assert not result["goals_met"]["executors"]
    assert not result["goals_met"]["lag"]
