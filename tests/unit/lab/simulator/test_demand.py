"""Tests of the demand, which follows from the load and the costs."""

from __future__ import annotations

import pytest
from attrs import evolve

from spark_elastic_lab.simulator.demand import Demand, deadline_ms, demand, fewest_slots
from spark_elastic_lab.simulator.source import SourceSpec
from tests.unit.lab.simulator.scenes import CLUSTER, PLAIN, only, query, scenario


@pytest.mark.parametrize(("rate", "slots"), [(0, 1), (909, 1), (910, 2), (1_818, 2), (3_637, 5)])
def test_a_slot_does_a_thousand_rows_a_second_and_a_tenth_stays_free(rate: float, slots: int) -> None:
    assert fewest_slots(query(), rate, 30) == slots


def test_a_fixed_part_or_chance_leaves_less_time() -> None:
    slow = query(cost=evolve(PLAIN, fixed_ms=5_000))
    assert fewest_slots(slow, 900, 30) == 3
    assert fewest_slots(query(cost=evolve(PLAIN, jitter=0.2)), 900, 30) == 2


def test_the_objective_bounds_a_micro_batch_as_well() -> None:
    found = [deadline_ms(query(), most) * 1.1 for most in (30, 14, 5)]
    assert found == pytest.approx([10_000, 4_000, 10_000])
    assert deadline_ms(query(trigger_s=0), 30) * 1.1 == pytest.approx(15_000)
    assert deadline_ms(query(cost=evolve(PLAIN, jitter=0.5)), 30) == 5_000


def test_what_more_slots_do_not_shorten_is_not_waited_for() -> None:
    hot = query(cost=evolve(PLAIN, hot_key=0.5))
    # One half of the 40,000 rows takes 20 s, so from two slots on the largest task sets the duration.
    assert fewest_slots(hot, 4_000, 30) == 2
    sourced = query(source=SourceSpec(partitions=3), cost=evolve(PLAIN, read_us=1_000, work_us=0))
    assert fewest_slots(sourced, 9_000, 30) == 3


def test_queries_that_wait_leave_their_slots_to_others() -> None:
    light = [query(name=f"q{number}", load="constant:rate=150") for number in range(5)]
    together = scenario(*light)
    assert set(demand(together, together.loads()).slots) == {1}
    heavy = scenario(
        *(evolve(one, load="constant:rate=800") for one in light), cluster=evolve(CLUSTER, cores=2)
    )
    found = demand(heavy, heavy.loads())
    assert set(found.slots) == {5}
    assert set(found.executors) == {3}


def test_demand_follows_the_load_up_to_the_quota() -> None:
    stepped = scenario(query(load="step:before=1000,after=9000,at=30"), cluster=evolve(CLUSTER, quota=6))
    found = demand(stepped, stepped.loads())
    assert found.executors == (2,) * 60 + (6,) * 60
    assert max(found.slots) == 10
    assert found.most(0, 29 * 60_000) == 2
    assert found.most(29 * 60_000, 31 * 60_000) == found.most(1e9, 2e9) == found.most(-9, 1e9) == 6


def test_the_oracle_that_knows_it_meets_the_objective_with_little_more() -> None:
    day = scenario(
        query(load="cosine:mean=20000,amplitude=10000,noise=1000"),
        hours=3,
        cluster=evolve(CLUSTER, cores=4, initial=8),
    )
    found = only(day, "oracle")
    fewest = sum(found.demand.executors) * 30 / 3_600
    assert found.metrics.outside_percent < 1
    assert fewest < found.metrics.executor_hours < 1.25 * fewest
    assert found.metrics.oscillations == 0


def test_a_demand_is_read_by_its_steps() -> None:
    steps = Demand(executors=(1, 5, 2), slots=(1, 5, 2), step_s=10)
    assert [steps.most(begin, begin) for begin in (0, 9_999, 10_000, 29_999)] == [1, 1, 5, 2]
