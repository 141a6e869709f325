"""Tests that adaptive mode requests the executors that the bounds call for, and releases others."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from spark_elastic.core import actions as ac
from spark_elastic.core import events as ev
from spark_elastic.core.bounds.declared import WantedBounds
from spark_elastic.core.cluster.executors import ExecutorDemand, ExecutorOrder
from tests.unit.core.builder import STATEFUL, Stage, adaptive, decisions, only, reasons

IDLE_MS = 50_000


def executor_orders(actions: tuple[ac.Action, ...]) -> list[ac.Action]:
    kinds = (ac.RequestExecutors, ac.KillExecutors, ac.DecommissionExecutors)
    return [action for action in actions if isinstance(action, kinds)]


def said(actions: tuple[ac.Action, ...], reason: str) -> list[str]:
    reports = [action.decision for action in actions if isinstance(action, ac.Report)]
    return [decision.message for decision in reports if decision.reason == reason]


def test_what_is_missing_is_requested_once(stage: Stage) -> None:
    world = adaptive(stage)
    world.start(1)
    actions = world.submit()
    assert only(actions, ac.RequestExecutors).total == 4
    assert "executors_requested" in reasons(actions)
    assert executor_orders(world.executor("7")) == []
    assert executor_orders(world.advance(600_000)) == []


def test_executors_with_several_slots_count_for_as_many(stage: Stage) -> None:
    world = adaptive(stage, upper=7)
    world.start(2)
    assert only(world.submit(), ac.RequestExecutors).total == 4


def test_an_executor_that_is_lost_is_replaced_by_the_standing_request(stage: Stage) -> None:
    world = adaptive(stage)
    world.start(1, 1, 1, 1)
    assert executor_orders(world.submit()) == []
    assert only(world.lose("0"), ac.RequestExecutors).total == 4


def test_surplus_is_given_back_when_it_has_lasted(stage: Stage) -> None:
    world = adaptive(stage, upper=2)
    world.start(1, 1, 1, spark_decommission_enabled="true")
    world.submit()
    world.started(2)
    world.send(ev.ExecutorUsage, executor="1", cached_bytes=0, shuffle_bytes=10)
    world.send(ev.ExecutorUsage, executor="2", cached_bytes=500, shuffle_bytes=10)
    world.send(ev.ExecutorUsage, executor="0", cached_bytes=9, shuffle_bytes=10)
    assert executor_orders(world.advance(IDLE_MS - 1)) == []
    total, release = executor_orders(world.advance(1))
    assert isinstance(total, ac.RequestExecutors)
    assert total.total == 2
    assert isinstance(release, ac.DecommissionExecutors)
    assert release.executors == ("1",)
    assert executor_orders(world.advance(600_000)) == []


def test_what_a_surplus_holds_is_not_looked_at_before_it_has_lasted(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = adaptive(stage, upper=2)
    world.start(1, 1, 1)
    world.submit()
    world.started(2)
    looks: list[int] = []
    reconcile = ExecutorDemand.reconcile

    def looked(demand: ExecutorDemand, at: int, *seen: Any) -> ExecutorOrder | None:
        looks.append(at)
        return reconcile(demand, at, *seen)

    monkeypatch.setattr(ExecutorDemand, "reconcile", looked)
    for held in range(100):
        world.send(ev.ExecutorUsage, executor="1", cached_bytes=held, shuffle_bytes=held)
    assert looks == []
    assert only(world.advance(IDLE_MS), ac.KillExecutors).executors == ("2",)
    assert looks


def test_settings_are_read_whatever_their_case(stage: Stage) -> None:
    world = adaptive(stage, upper=2)
    world.start(1, 1, 1, spark_decommission_enabled="TRUE")
    world.submit()
    assert only(world.advance(IDLE_MS), ac.DecommissionExecutors).executors == ("2",)


def test_where_nothing_can_be_decommissioned_executors_are_killed(stage: Stage) -> None:
    world = adaptive(stage, upper=2)
    world.start(1, 1, 1)
    world.submit()
    assert only(world.advance(IDLE_MS), ac.KillExecutors).executors == ("2",)


def test_a_surplus_that_passes_costs_nothing(stage: Stage) -> None:
    world = adaptive(stage, upper=2)
    world.start(1, 1, 1)
    world.submit()
    world.advance(IDLE_MS - 1)
    world.lose("1")
    assert executor_orders(world.advance(600_000)) == []


def test_what_the_cluster_refused_is_asked_again_at_the_next_change(stage: Stage) -> None:
    world = adaptive(stage)
    world.start(1)
    request = only(world.submit(), ac.RequestExecutors)
    assert reasons(world.fail(request, "not now"))[0] == "executors_refused"
    assert executor_orders(world.batches(300, partitions=1)) == []
    assert only(world.executor("7"), ac.RequestExecutors).total == 4


def test_what_the_cluster_refused_is_asked_again_later_and_later(stage: Stage) -> None:
    world = adaptive(stage)
    world.start(1)
    request = only(world.submit(), ac.RequestExecutors)
    for wait_ms in (5_000, 10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000):
        assert executor_orders(world.fail(request, "no master")) == []
        assert executor_orders(world.advance(wait_ms - 1)) == []
        request = only(world.advance(1), ac.RequestExecutors)
        assert request.total == 4
    world.done(request, took_ms=1)
    assert executor_orders(world.advance(3_600_000)) == []


def test_a_refusal_after_a_success_is_the_first_again(stage: Stage) -> None:
    world = adaptive(stage, upper=2)
    world.start(1)
    request = only(world.submit(), ac.RequestExecutors)
    world.fail(request)
    request = only(world.advance(5_000), ac.RequestExecutors)
    world.done(request, took_ms=1)
    bounds = {"shuffle": (1, 3)}
    asked = world.send(ev.RequirementsRequested, query="counts", bounds=bounds, by="somebody")
    world.fail(only(asked, ac.RequestExecutors))
    assert only(world.advance(5_000), ac.RequestExecutors).total == 3


def test_what_was_refused_and_is_not_missing_any_more_is_not_asked_again(stage: Stage) -> None:
    world = adaptive(stage, upper=2)
    world.start(1)
    world.fail(only(world.submit(), ac.RequestExecutors))
    world.executor("7")
    assert executor_orders(world.advance(600_000)) == []


def test_a_retry_is_not_late_because_of_a_later_timer(stage: Stage) -> None:
    world = adaptive(stage, upper=2)
    world.start(1, 1, 1)
    world.submit()
    world.lose("0")
    assert only(world.lose("1") + world.lose("2"), ac.RequestExecutors).total == 2
    order = world.last_order("RequestExecutors")
    assert order is not None
    assert any(isinstance(action, ac.CancelTimer) for action in world.fail(order))
    assert only(world.advance(5_000), ac.RequestExecutors).total == 2


def test_an_excluded_executor_is_replaced(stage: Stage) -> None:
    world = adaptive(stage, upper=3)
    world.start(1, 1, 1)
    world.submit()
    request = only(world.send(ev.ExecutorExcluded, executor="0"), ac.RequestExecutors)
    assert request.total == 4  # the cluster manager still counts the excluded one, so it had three
    world.done(request, took_ms=1)
    assert executor_orders(world.executor("3")) == []
    # Once it is included again there is one executor too many.
    assert executor_orders(world.send(ev.ExecutorUnexcluded, executor="0")) == []
    total, release = executor_orders(world.advance(IDLE_MS))
    assert isinstance(total, ac.RequestExecutors)
    assert total.total == 3
    assert isinstance(release, ac.KillExecutors)
    assert release.executors == ("3",)


def test_an_excluded_executor_that_ends_is_not_asked_for_any_more(stage: Stage) -> None:
    world = adaptive(stage, upper=2)
    world.start(1, 1)
    world.submit()
    world.send(ev.ExecutorExcluded, executor="0")
    world.executor("2")
    assert only(world.lose("0"), ac.RequestExecutors).total == 2


def test_an_executor_that_is_decommissioned_counts_for_nobody(stage: Stage) -> None:
    world = adaptive(stage, upper=2)
    world.start(1, 1)
    world.submit()
    world.send(ev.ExecutorExcluded, executor="0")
    # It is no longer requested, but its successor already was.
    assert executor_orders(world.send(ev.ExecutorDecommissioning, executor="0")) == []
    assert only(world.lose("0"), ac.RequestExecutors).total == 2


def test_for_one_that_somebody_decommissions_another_one_is_asked_for_before_it_is_gone(stage: Stage) -> None:
    world = adaptive(stage, upper=2)
    world.start(1, 1)
    world.submit()
    actions = world.send(ev.ExecutorDecommissioning, executor="0")
    assert only(actions, ac.RequestExecutors).total == 3, "Kubernetes counts it until it is gone"
    assert said(actions, "executors_replaced") == ["Request 3 executors: replacing 1 being decommissioned."]
    # Its successor arrives before it is gone, so the request drops back and nothing more is requested.
    assert only(world.executor("2"), ac.RequestExecutors).total == 2
    assert executor_orders(world.lose("0")) == []
    assert executor_orders(world.advance(600_000)) == []
    world.check()


def test_one_that_goes_before_its_successor_has_come_is_not_replaced_twice(stage: Stage) -> None:
    world = adaptive(stage, upper=2)
    world.start(1, 1)
    world.submit()
    world.send(ev.ExecutorDecommissioning, executor="0")
    assert only(world.lose("0"), ac.RequestExecutors).total == 2
    assert executor_orders(world.executor("2")) == []
    world.check()


def test_a_standalone_master_replaces_what_it_decommissions_by_itself(stage: Stage) -> None:
    world = adaptive(stage, upper=2)
    world.start(1, 1, spark_master="spark://m:7077")
    world.submit()
    actions = world.send(ev.ExecutorDecommissioning, executor="0")
    assert only(actions, ac.RequestExecutors).total == 2, "it counts none that it has decommissioned"
    assert executor_orders(world.executor("2")) == []
    assert executor_orders(world.lose("0")) == []
    world.check()


def test_no_more_than_there_may_be_are_asked_for_before_one_is_gone(stage: Stage) -> None:
    world = adaptive(stage, upper=2, max_executors=2)
    world.start(1, 1)
    world.submit()
    assert only(world.send(ev.ExecutorDecommissioning, executor="0"), ac.RequestExecutors).total == 2
    world.check()


def test_one_that_nobody_needs_is_not_replaced_when_it_is_decommissioned(stage: Stage) -> None:
    world = adaptive(stage, upper=2)
    world.start(1, 1, 1)
    world.submit()
    assert executor_orders(world.send(ev.ExecutorDecommissioning, executor="0")) == []
    assert executor_orders(world.lose("0")) == []
    world.check()


def test_a_release_that_was_refused_is_tried_again_when_the_surplus_has_lasted_once_more(
    stage: Stage,
) -> None:
    world = adaptive(stage, upper=2)
    world.start(1, 1, 1)
    world.submit()
    kill = only(world.advance(IDLE_MS), ac.KillExecutors)
    assert executor_orders(world.fail(kill, "it is busy")) == []
    assert executor_orders(world.advance(IDLE_MS - 1)) == []
    assert only(world.advance(1), ac.KillExecutors).executors == ("2",)


def test_queries_add_up_and_leave_what_they_no_longer_need(stage: Stage) -> None:
    world = adaptive(stage, upper=2)
    world.start(1, 1)
    world.submit()
    world.started(2)
    other = evolve(STATEFUL, query="q2", name="counts")
    assert only(world.submit(other), ac.RequestExecutors).total == 4
    world.executor("8")
    world.executor("9")
    world.terminated("q2")
    assert len(only(world.advance(IDLE_MS), ac.KillExecutors).executors) == 2


def test_for_a_query_without_a_bound_nothing_is_requested_or_released(stage: Stage) -> None:
    world = adaptive(stage, upper=1)
    world.start(1, 1)
    actions = world.submit(evolve(STATEFUL, query="q2", name="unbounded"))
    actions += world.submit()
    assert executor_orders(actions + world.advance(600_000)) == []


def test_what_was_asked_for_is_taken_back_for_a_query_without_a_bound(stage: Stage) -> None:
    """A Standalone master gives an application all its workers unless the application requests a number."""
    world = adaptive(stage, upper=1)
    world.start(1, 1, spark_master="spark://master:7077")
    world.submit()
    assert only(world.advance(IDLE_MS), ac.RequestExecutors).total == 1
    world.lose("1")
    actions = world.submit(evolve(STATEFUL, query="free", name="free"))
    assert only(actions, ac.RequestExecutors).total == 2**31 - 1
    assert "executors_unlimited" in reasons(actions)
    world.done(only(actions, ac.RequestExecutors))
    for number in ("5", "6"):
        assert executor_orders(world.executor(number)) == []
    assert executor_orders(world.lose("0")) == []
    assert executor_orders(world.advance(600_000)) == []


def test_where_nobody_has_asked_for_a_number_none_is_asked_for(stage: Stage) -> None:
    world = adaptive(stage, upper=4)
    world.start(1, spark_master="spark://master:7077")
    assert executor_orders(world.submit(evolve(STATEFUL, query="free", name="free"))) == []
    assert executor_orders(world.submit()) == []
    assert executor_orders(world.lose("0")) == []


@pytest.mark.parametrize("mode", ["reactive", "dynamic allocation", "Dynamic Allocation", "advice"])
def test_nobody_is_asked(stage: Stage, mode: str) -> None:
    world = stage(
        mode="reactive" if mode == "reactive" else "adaptive",
        advise_only=mode == "advice",
        bounds={"counts": WantedBounds(upper=4)},
    )
    allocation = {"dynamic allocation": "true", "Dynamic Allocation": "True"}.get(mode, "false")
    said = reasons(world.start(1, spark_dynamicAllocation_enabled=allocation))
    assert ("executors_left_alone" in said) == (mode.lower() == "dynamic allocation")
    assert executor_orders(world.submit() + world.advance(600_000)) == []


def test_in_reactive_mode_it_is_said_that_spark_adds_and_removes_executors(stage: Stage) -> None:
    said = decisions(stage(mode="reactive").start(1, spark_dynamicAllocation_enabled="true"))
    assert [decision.message for decision in said] == [
        "Queries use the executors that run; spark.dynamicAllocation.enabled adds them for "
        "waiting tasks and removes idle ones. Set it to false to let queries follow the slots."
    ]


def test_a_release_that_is_only_advised_is_said_once_and_leaves_all_executors(stage: Stage) -> None:
    world = adaptive(stage, upper=2, advise_only=True)
    world.start(1, 1, 1, 1)
    world.submit()
    world.started(2)
    said = reasons(world.advance(IDLE_MS))
    assert said.count("executors_released") == 1
    world.executor("8")
    world.lose("8")
    assert "executors_released" not in reasons(world.advance(3_600_000))
    # All executors are still there, and four of them are enough for four slots.
    bounds = {"shuffle": (1, 4)}
    asked = world.send(ev.RequirementsRequested, query="counts", bounds=bounds, by="somebody")
    assert "executors_requested" not in reasons(asked)
