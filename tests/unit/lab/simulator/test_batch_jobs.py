"""Tests of batch jobs in the simulator: alone and next to queries, under our policy and under others."""

from __future__ import annotations

import pytest
from attrs import evolve

from spark_elastic_lab.simulator.batches import BatchSpec
from spark_elastic_lab.simulator.record import BatchRun
from spark_elastic_lab.simulator.scenario import Scenario
from spark_elastic_lab.simulator.simulation import simulate
from spark_elastic_lab.simulator.table import as_data, table
from tests.unit.lab.simulator.scenes import CLUSTER, only, query, scenario

pytestmark = pytest.mark.long

REPORT = BatchSpec(name="report", at_s=600, every_s=1_800, stages=2, tasks=200, task_s=12)
SMALL = BatchSpec(name="small", at_s=5, every_s=20, tasks=200, task_s=0.02)


def batch(*specs: BatchSpec, **fields: object) -> Scenario:
    cluster = evolve(CLUSTER, cores=4, initial=2, quota=40)
    return Scenario(**{"batch": specs, "cluster": cluster, "hours": 1.0, **fields})  # type: ignore[arg-type]


def test_a_job_takes_as_many_waves_as_its_tasks_make_on_the_slots() -> None:
    result = only(batch(BatchSpec(name="one", at_s=10, tasks=20, task_s=3, stages=2)), "fixed:executors=2")
    assert result.notes.batch == [BatchRun(10_000, 10_000 + 2 * 3 * 3_000)]


def test_jobs_come_until_the_end() -> None:
    assert REPORT.arrivals(3_600_000) == [600_000, 2_400_000]
    assert BatchSpec(name="once", at_s=9).arrivals(3_600_000) == [9_000]
    assert BatchSpec(name="late", at_s=9_000).arrivals(3_600_000) == []


def test_executors_follow_long_jobs_and_small_ones_keep_one() -> None:
    result = only(batch(REPORT, SMALL), "autoscale")
    there = result.notes.there
    assert there.at(500_000) == 1
    assert max(there.at(at) for at in range(600_000, 1_200_000, 1_000)) >= 5
    assert there.at(2_300_000) == 1
    assert result.metrics.batch_jobs == 2 + 180
    assert result.metrics.batch_most_s < 600  # it takes 20 minutes on one executor


def test_it_costs_a_part_of_what_dynamic_allocation_does() -> None:
    ours, theirs, fixed = simulate(
        batch(REPORT, SMALL), ["autoscale", "dynamic-allocation", "fixed:executors=1"]
    )
    assert ours.metrics.executor_hours < theirs.metrics.executor_hours / 5
    assert theirs.metrics.batch_most_s < ours.metrics.batch_most_s < fixed.metrics.batch_most_s / 2


def test_small_jobs_beside_a_query_cost_nothing() -> None:
    cluster = evolve(CLUSTER, cores=4, initial=1)
    with_jobs = scenario(query(load="constant:rate=1500"), cluster=cluster, batch=(SMALL,))
    alone = evolve(with_jobs, batch=())
    hours = [only(one, "autoscale").metrics.executor_hours for one in (with_jobs, alone)]
    assert hours[0] == pytest.approx(hours[1], rel=0.1)


def test_the_table_has_columns_for_jobs_where_there_are_any() -> None:
    result = only(batch(SMALL), "fixed:executors=1")
    assert "mean job" in table([result])
    assert as_data([result])["policies"]["fixed:executors=1"]["batch_jobs"] == 180
    assert "mean job" not in table([only(scenario(hours=0.1))])


def test_a_scenario_needs_a_query_or_a_job() -> None:
    with pytest.raises(ValueError, match="without a query or a batch job"):
        Scenario()
    with pytest.raises(ValueError, match="two batch jobs are called 'small'"):
        batch(SMALL, SMALL)
