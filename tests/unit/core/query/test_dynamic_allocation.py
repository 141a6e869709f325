"""Tests of starts under Spark's dynamic allocation, which adds executors only for waiting tasks."""

from __future__ import annotations

from typing import Any

import pytest

from spark_elastic.core.actions import HoldQuery, Rescale, StartQuery
from spark_elastic.core.bounds.declared import WantedBounds, WantedSharing
from spark_elastic.core.bounds.requirements import SHUFFLE, Bounds, Requirements, Vertex
from spark_elastic.core.cluster.executors import ExecutorDemand, ExecutorLimits
from spark_elastic.core.cluster.slots import SlotPool
from spark_elastic.core.events import ExecutorExcluded, QueryFacts
from spark_elastic.core.failures.strategy import FixedDelay
from tests.unit.core.builder import OLD, STATEFUL, STATELESS, Scene, Stage, adaptive, only, orders, reasons

ON: dict[str, Any] = {"spark_master": "spark://host:7077", "spark_dynamicAllocation_enabled": "true"}


def test_without_an_executor_a_query_starts_with_the_count_of_spark(scene: Scene) -> None:
    scene.start(**ON)
    actions = scene.submit()
    start = only(actions, StartQuery)
    assert (start.partitions, start.rescalable) == (STATEFUL.session_partitions, True)
    assert reasons(actions) == ["start_for_executors"]
    assert only(scene.submit(STATELESS), StartQuery).partitions == STATELESS.session_partitions


def test_with_an_executor_it_has_no_fewer_tasks_than_plain_spark(scene: Scene) -> None:
    scene.start(2, **ON)
    actions = scene.submit()
    assert only(actions, StartQuery).partitions == STATEFUL.session_partitions
    assert reasons(actions) == ["start_for_executors"]


@pytest.mark.parametrize(("most", "count"), [("3", 6), ("1000", 200), (str(2**31 - 1), 200)])
def test_it_has_a_task_for_each_slot_that_spark_may_bring(scene: Scene, most: str, count: int) -> None:
    scene.start(**ON, spark_dynamicAllocation_maxExecutors=most, spark_executor_cores="2")
    assert only(scene.submit(), StartQuery).partitions == count


@pytest.mark.parametrize("facts", [STATEFUL, STATELESS])
def test_executors_that_come_and_go_change_no_count(scene: Scene, facts: QueryFacts) -> None:
    scene.start(1, **ON, spark_dynamicAllocation_maxExecutors="4")
    count = only(scene.submit(facts), StartQuery).partitions
    assert count == 4
    scene.started(count, facts.query)
    said = scene.executor("1") + scene.executor("2") + scene.lose("0") + scene.lose("1")
    assert orders(said + scene.advance(600_000)) == []


def test_slots_beyond_what_plain_spark_would_use_are_followed(scene: Scene) -> None:
    scene.start(1, **ON)
    assert only(scene.submit(STATELESS, session_partitions=2), StartQuery).partitions == 2
    scene.started(2, STATELESS.query)
    assert orders(scene.executor("1")) == []
    assert only(scene.executor("2") + scene.advance(600_000), Rescale).partitions == 3


def test_a_checkpoint_keeps_the_count_that_it_has(scene: Scene) -> None:
    scene.start(**ON)
    actions = scene.submit(OLD)
    assert only(actions, StartQuery).partitions is None
    assert reasons(actions) == ["start_for_executors"]


def test_a_declared_upper_bound_counts(stage: Stage) -> None:
    scene = adaptive(stage, upper=4)
    scene.start(**ON)
    assert only(scene.submit(), StartQuery).partitions == 4


def test_a_lower_bound_that_only_tasks_can_bring_holds_nobody(stage: Stage) -> None:
    scene = adaptive(stage, lower=3, upper=4)
    scene.start(1, **ON)
    assert [type(action) for action in orders(scene.submit())] == [StartQuery]


def test_lower_bounds_of_others_hold_nobody(stage: Stage) -> None:
    bounds = {"counts": WantedBounds(lower=2, upper=2), "enrich": WantedBounds(lower=2, upper=2)}
    sharing = {"enrich": WantedSharing(group="own")}
    scene = stage(mode="adaptive", bounds=bounds, sharing=sharing, submission_stabilization_ms=0)
    scene.start(2, **ON)
    scene.running(2)
    assert [type(action) for action in orders(scene.submit(STATELESS))] == [StartQuery]


def test_a_stabilization_counts_only_for_executors_that_are_there(stage: Stage) -> None:
    scene = stage(submission_stabilization_ms=10_000)
    scene.start(**ON)
    assert [type(action) for action in orders(scene.submit())] == [StartQuery]
    other = stage(submission_stabilization_ms=10_000)
    other.start(1, **ON)
    assert [type(action) for action in orders(other.submit())] == [HoldQuery]


def test_after_a_failure_nobody_is_held_for_executors_that_idled_out(stage: Stage) -> None:
    scene = stage(restart=FixedDelay(attempts=9, delay_ms=1_000))
    scene.start(2, **ON)
    scene.running(2)
    scene.lose("0")
    scene.run_fails()
    start = only(scene.advance(1_000), StartQuery)
    assert start.partitions == 2


def test_executors_that_spark_keeps_are_waited_for(scene: Scene) -> None:
    scene.start(**ON, spark_dynamicAllocation_minExecutors="1", spark_executor_cores="2")
    assert [type(action) for action in orders(scene.submit())] == [HoldQuery]
    assert only(scene.executor("0", cores=2), StartQuery).partitions == STATEFUL.session_partitions


def test_more_than_spark_keeps_is_not_waited_for(stage: Stage) -> None:
    scene = adaptive(stage, lower=3, upper=4)
    scene.start(**ON, spark_dynamicAllocation_minExecutors="1", spark_executor_cores="2")
    assert [type(action) for action in orders(scene.submit())] == [StartQuery]


def test_an_executor_that_is_excluded_is_one_of_those_that_spark_keeps(scene: Scene) -> None:
    scene.start(1, **ON, spark_dynamicAllocation_minExecutors="1")
    scene.send(ExecutorExcluded, executor="0", reason="2 tasks failed on it")
    assert [type(action) for action in orders(scene.submit())] == [StartQuery]


@pytest.mark.parametrize("master", ["local", "local[4]"])
def test_in_local_mode_there_is_none(stage: Stage, master: str) -> None:
    scene = adaptive(stage)
    actions = scene.start(spark_master=master, spark_dynamicAllocation_enabled="true")
    assert not reasons(actions)
    assert only(scene.submit(), HoldQuery)


@pytest.mark.parametrize(("asked", "total"), [(0, 1), (None, None)])
def test_where_we_have_asked_for_no_executor_one_is_requested_for_a_query_without_bounds(
    asked: int | None, total: int | None
) -> None:
    demand, most = ExecutorDemand(idle_ms=1_000, requested=asked), 32_768
    vertex = Vertex(id=SHUFFLE, group="default", bounds=Bounds(upper=most))
    query = Requirements(vertices=(vertex,), bound_by="")
    order = demand.reconcile(0, SlotPool(), [query], most, ExecutorLimits())
    assert (None if order is None else order.total) == total
