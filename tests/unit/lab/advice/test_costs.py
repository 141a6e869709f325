"""Tests that costs of tasks and rows are told apart in runs that never had other partitions or slots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from attrs import evolve

from spark_elastic_lab.advice.costs import FEWEST, Measured, measure, warm
from spark_elastic_lab.advice.told import MicroBatch
from spark_elastic_lab.simulator.query import QuerySpec
from spark_elastic_lab.simulator.source import SourceSpec
from tests.unit.lab.advice.facts import batch, work

SPEC = QuerySpec(name="counts")
NOTHING: Mapping[str, Any] = {}


def batches(count: int = 20) -> list[MicroBatch]:
    """200 partitions on 2 slots, 190 of them empty: 100 waves of tasks of 10 ms, and 500 ms in the driver."""
    return [
        batch(
            number * 10_000,
            500 + 60 + 1_050,
            partitions=200,
            read=work({500: 2}, 60),
            work=work({0: 190, 100: 10}, 1_050),
        )
        for number in range(count)
    ]


def test_a_task_and_a_row_have_their_own_costs() -> None:
    found = measure(batches(), SPEC)
    assert found is not None
    assert found.cost.task_ms == pytest.approx(10, rel=0.01)
    # 10 tasks with 100 rows of 0.1 ms each, for 1,000 rows of the source.
    assert found.cost.work_us == pytest.approx(100, rel=0.01)
    assert found.cost.fixed_ms == pytest.approx(500, rel=0.1)
    assert found.error < 0.01
    assert found.read_tasks == 2


def test_fewer_partitions_cost_less_by_their_tasks() -> None:
    found = measure(batches(), SPEC)
    assert found is not None
    spec = QuerySpec(name="counts", cost=found.cost)
    few, many = spec.batch_ms(1_000, 2, 2), spec.batch_ms(1_000, 200, 2)
    # 99 waves fewer.
    assert many - few == pytest.approx(990, rel=0.02)


def measured(*, read: Mapping[str, Any] = NOTHING, work: Mapping[str, Any] = NOTHING) -> Measured:
    """Return the cost of micro-batches whose stages differ in these fields; shuffles have 200 partitions."""
    changed = [
        evolve(one, written=200, read=evolve(one.read, **read), work=evolve(one.work, **work))
        for one in batches()
    ]
    found = measure(changed, SPEC)
    assert found is not None
    return found


def test_with_the_plugin_a_task_writes_to_fewer_partitions() -> None:
    """Each of 2 tasks has rows for 50 of 200 partitions."""
    found = measured(read={"writers": 2}, work={"blocks": 100})
    assert found.cost.read_write_us == 0
    assert found.cost.read_task_ms == pytest.approx(60)
    # 0.6 ms for each of the 50.
    assert found.with_plugin.read_task_ms == pytest.approx(30)
    source = SourceSpec(partitions=2)
    before, after = (
        QuerySpec(name="counts", cost=cost, source=source) for cost in (found.cost, found.with_plugin)
    )
    assert before.batch_ms(1_000, 200, 2) == pytest.approx(after.batch_ms(1_000, 200, 2))
    assert before.batch_ms(1_000, 20, 2) - after.batch_ms(1_000, 20, 2) == pytest.approx(27)


def test_what_a_task_writes_takes_no_longer_than_the_task() -> None:
    found = measured(read={"writers": 1}, work={"blocks": 200})
    assert found.with_plugin.read_task_ms == 0
    assert found.with_plugin.read_write_us == pytest.approx(300)


def test_tasks_between_two_shuffles_write_too() -> None:
    found = measured(work={"stages": 2, "writers": 100, "blocks": 1_000})
    # 10 partitions for each task, in both stages.
    assert found.with_plugin.work_write_us == pytest.approx(2 * 6_000 / 200)
    assert found.cost.task_ms - found.with_plugin.task_ms == pytest.approx(12)
    assert found.with_plugin.read_write_us == 0


def test_new_state_is_in_another_store() -> None:
    found = measure(batches(), SPEC, new_store=True)
    assert found is not None
    assert found.with_plugin.task_ms == pytest.approx(found.cost.task_ms * 80 / 45)


def test_what_is_outside_of_stages_is_fixed() -> None:
    """Tasks of 10 ms in 100 waves would leave 160 ms; stages took no longer than 900 ms."""
    found = measured(work={"wall_ms": 900})
    assert found.cost.fixed_ms == pytest.approx(500 + 150)


def test_the_first_micro_batches_of_a_run_and_too_few_do_not_count() -> None:
    assert len(warm(batches(5))) == 2
    assert measure(batches(3 + FEWEST - 1), SPEC) is None
    assert measure(batches(3 + FEWEST), SPEC) is not None


def test_a_query_without_a_shuffle_does_its_work_where_it_reads() -> None:
    read = [
        batch(n * 1_000, 200 + 20 + n, rows=100 + n, read=work({50 + n: 2, 10: 2}, 20)) for n in range(20)
    ]
    found = measure(read, SPEC)
    assert found is not None
    assert not found.cost.has_shuffle
    assert found.cost.read_us > 0
    assert found.cost.task_ms == found.cost.read_task_ms == pytest.approx(10, rel=0.01)
