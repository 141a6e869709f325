"""Tests of time windows in simulated days: slowly starting executors are up when a peak begins."""

from __future__ import annotations

from functools import cache

import pytest

from spark_elastic_lab.simulator.cluster import ClusterSpec
from spark_elastic_lab.simulator.contenders import contender
from spark_elastic_lab.simulator.demand import demand
from spark_elastic_lab.simulator.scenario import Scenario
from spark_elastic_lab.simulator.simulation import Result, simulate
from tests.unit.lab.simulator.scenes import only, query, scenario

pytestmark = pytest.mark.long

WINDOWS = "15 1 * * * for 1h name=first lowerBound=24; 15 4 * * * for 1h name=second lowerBound=16"


def day() -> Scenario:
    return scenario(
        query(load="two-peaks:first=20000,second=12000,first_at=2,second_at=5,width=0.2"),
        cluster=ClusterSpec(cores=2, initial=2, startup_s=300, startup_spread=0),
        hours=7,
        settings={
            "spark.elastic.schedule.windows": WINDOWS,
            "spark.elastic.query.counts.upperBound": "64",
            "spark.elastic.query.counts.schedule.excludedPeriods": "0 3 * * * for 15min",
        },
    )


@cache
def runs() -> list[Result]:
    return list(simulate(day(), ["autoscale", "schedule,autoscale"]))


def test_a_chain_is_outside_of_its_objective_for_less_time_than_autoscale_alone() -> None:
    alone, chain = runs()
    assert alone.metrics.outside_percent > 1
    assert chain.metrics.outside_percent < alone.metrics.outside_percent / 5
    assert chain.metrics.largest_lag_s < alone.metrics.largest_lag_s
    assert chain.metrics.oscillations <= alone.metrics.oscillations
    assert "slots_limited" in chain.notes.reasons
    assert "slots_limited" not in alone.notes.reasons, "windows are for those who go by them"


def test_executors_of_a_window_are_there_when_it_begins() -> None:
    _, chain = runs()
    begin = 1.25 * 3_600_000
    assert chain.notes.there.at(begin - 15 * 60_000) < 12
    assert chain.notes.there.at(begin) < 12, "nothing was measured yet"
    begin = 4.25 * 3_600_000
    assert chain.notes.there.at(begin - 15 * 60_000) < 8
    assert chain.notes.there.at(begin) == 8


@pytest.mark.parametrize("policy", ["reactive", "declared", "autoscale", "flink", "schedule"])
def test_windows_of_a_scenario_stand_in_nobodys_way(policy: str) -> None:
    what = day()
    assert contender(policy, what, demand(what, what.loads())).name == policy
    assert only(scenario(settings=what.settings, hours=0.2), policy).metrics.executor_hours > 0


def test_a_chain_of_unknown_policies_is_refused() -> None:
    with pytest.raises(ValueError, match="'schedule,flink' is no chain of policies, allowed is"):
        only(scenario(), "schedule,flink")
