"""Tests that a running query follows the slots: in place, with its state, or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from spark_elastic.core.actions import Rescale
from spark_elastic.core.events import (
    ExecutorDecommissioning,
    ExecutorExcluded,
    ExecutorsUsed,
    ExecutorUnexcluded,
    NewExecutor,
    QueryStarted,
)
from tests.unit.core.builder import STATELESS, Scene, Stage, decisions, only, orders, reasons
from tests.unit.core.query.reached import rescaled, rescaling


class TestInPlace:
    """Stateless queries are rescaled at once, without a gap."""

    def test_a_worker_joins_and_the_next_batch_uses_it(self, scene: Scene) -> None:
        scene.start(2)
        scene.running(2, STATELESS)
        actions = scene.executor("1", cores=2)
        assert only(actions, Rescale).partitions == 4
        assert reasons(actions) == ["in_place"]
        assert decisions(actions)[0].kind == "rescale_in_place"
        assert (scene.query("enrich").partitions, scene.query("enrich").target) == (2, 4)
        order = scene.last_order("Rescale")
        assert order is not None
        scene.done(order, took_ms=1)
        assert (scene.query("enrich").partitions, scene.query("enrich").target) == (4, None)
        assert scene.query("enrich").history[0].status == "completed"

    def test_executors_one_by_one_are_followed_without_waiting_for_outcomes(self, scene: Scene) -> None:
        scene.start(1)
        scene.running(1, STATELESS)
        counts = [only(scene.executor(name), Rescale).partitions for name in ("1", "2", "3")]
        assert counts == [2, 3, 4]

    def test_of_orders_in_quick_succession_the_last_one_counts(self, scene: Scene) -> None:
        scene.start(1)
        scene.running(1, STATELESS)
        first, second = (only(scene.executor(name), Rescale) for name in ("1", "2"))
        scene.done(first, took_ms=1)
        assert (scene.query("enrich").partitions, scene.query("enrich").target) == (2, 3)
        assert scene.query("enrich").history[0].status == "in_progress"
        assert reasons(scene.fail(second)) == ["in_place_failed"]
        assert (scene.query("enrich").partitions, scene.query("enrich").target) == (2, None)
        assert scene.query("enrich").history[0].status == "failed"

    def test_a_lost_worker_shrinks_it(self, scene: Scene) -> None:
        scene.start(2, 2)
        scene.running(4, STATELESS)
        assert only(scene.lose("1"), Rescale).partitions == 2

    @pytest.mark.parametrize("kind", [ExecutorExcluded, ExecutorDecommissioning])
    def test_an_executor_without_new_tasks_counts_as_lost(self, scene: Scene, kind: Any) -> None:
        scene.start(2, 2)
        scene.running(4, STATELESS)
        assert only(scene.send(kind, executor="1"), Rescale).partitions == 2

    def test_an_executor_that_is_given_another_chance_counts_again(self, scene: Scene) -> None:
        scene.start(2, 2)
        scene.running(4, STATELESS)
        scene.send(ExecutorExcluded, executor="1", reason="2 failed tasks")
        assert only(scene.send(ExecutorUnexcluded, executor="1"), Rescale).partitions == 4

    def test_an_unknown_executor_changes_nothing(self, scene: Scene) -> None:
        scene.start(2)
        scene.running(2, STATELESS)
        assert scene.lose("7") == ()

    def test_a_refusal_is_reported_and_not_repeated_until_the_slots_change(self, scene: Scene) -> None:
        scene.start(2)
        scene.running(2, STATELESS)
        order = only(scene.executor("1"), Rescale)
        assert reasons(scene.fail(order, "query is stopping")) == ["in_place_failed"]
        assert scene.query("enrich").target is None
        assert scene.query("enrich").history[0].status == "failed"
        assert only(scene.executor("2"), Rescale).partitions == 4

    def test_never_above_the_maximum(self, stage: Stage) -> None:
        scene = stage(max_parallelism=3)
        scene.start(2)
        scene.running(2, STATELESS)
        assert only(scene.executor("1", cores=8), Rescale).partitions == 3
        assert orders(scene.executor("2", cores=8)) == []

    def test_all_executors_lost_and_back(self, scene: Scene) -> None:
        scene.start(2)
        scene.running(2, STATELESS)
        actions = scene.lose("0")
        assert orders(actions) == []
        assert reasons(actions) == ["all_executors_lost"]
        assert scene.query("enrich").state == "Executing"
        actions = scene.executor("1", cores=2)
        assert orders(actions) == []
        assert reasons(actions) == ["parallelism_fits"]

    def test_where_the_count_cannot_be_set_nothing_is_done(self, scene: Scene) -> None:
        scene.start(2)
        scene.running(2, STATELESS, in_place=False)
        actions = scene.executor("1")
        assert orders(actions) == []
        assert reasons(actions) == ["untouched_stateless"]


class TestMove:
    """The state of a stateful query is moved if that pays."""

    def test_a_worker_joins_and_the_state_is_moved_at_a_batch_boundary(self, scene: Scene) -> None:
        scene.start(2)
        scene.running(2)
        scene.advance(30_000)
        scene.batches(900, 312, 312, 312, partitions=2)

        actions = scene.executor("1", cores=2)
        assert orders(actions) == []
        (decision,) = decisions(actions)
        assert (decision.kind, decision.reason) == ("held", "stabilizing")
        assert decision.until == scene.now + 10_000
        assert (decision.before, decision.after) == (2, 4)

        assert orders(scene.batches(312, 312, partitions=2)) == []
        settled = scene.now + 9_000
        actions = scene.until_rescale()
        assert scene.now == settled
        (order,) = orders(actions)
        assert order == Rescale(id=order.id, cause=order.cause, query="counts", run="r1", partitions=4)
        (decision,) = decisions(actions)
        assert (decision.kind, decision.reason) == ("rescale_state", "rescale_pays")
        assert decision.numbers["before_ms"] == 312.0
        assert decision.numbers["after_ms"] == 246.0
        assert scene.query().state == "Restarting"
        assert (scene.query().partitions, scene.query().target) == (2, 4)

        scene.now += 100
        actions = scene.rescaled(took_ms=1_000)
        assert orders(actions) == []
        (decision,) = decisions(actions)
        assert decision.message == "Scaled 2 → 4 partitions, paused 1 s."
        assert scene.query().state == "Executing"
        assert (scene.query().partitions, scene.query().target) == (4, None)
        assert (scene.query().rescaled, scene.query().restarted) == (1, 0)
        newest, first = scene.query().history
        assert (newest.cause, newest.reason, newest.partitions_before) == ("new_resources", "succeeded", 2)
        assert newest.partitions_after == 4
        assert [stay.state for stay in newest.stays] == ["Executing", "Restarting"]
        assert (first.cause, first.slots_before, first.partitions_before) == ("initial_schedule", None, None)

    def test_the_pause_is_what_the_move_took(self, scene: Scene) -> None:
        rescaling(scene)
        ordered = scene.now
        assert orders(scene.batches(400, 600, partitions=2)) == []  # while new executors are warmed up
        assert scene.now > ordered
        scene.now += 100
        (decision,) = decisions(scene.rescaled(took_ms=900))
        assert decision.numbers["took_ms"] == 900
        newest = scene.query().history[0]
        assert (newest.ran_until, newest.status) == (scene.now - 900, "completed")
        assert newest.paused_ms == 900

    def test_its_record_says_when_the_new_executor_had_a_task(self, scene: Scene) -> None:
        rescaling(scene)
        scene.now += 100
        scene.rescaled(took_ms=50)
        seen = scene.query().history[0]
        new = NewExecutor(executor="1", joined=seen.started, launched=scene.now, warm_up_ms=70)
        assert scene.send(ExecutorsUsed, query="counts", executors=(new,)) == ()
        newest = scene.query().history[0]
        assert (newest.executors_used, newest.warm_up_ms) == (scene.now, 70)
        assert seen.executors_used is None  # a record that was handed out before does not change

    def test_a_change_in_the_cooldown_waits_for_its_end(self, scene: Scene) -> None:
        scene.start(2)
        scene.running(2)
        scene.batches(900, 312, 312, partitions=2)
        began = scene.now - 1_500
        (decision,) = decisions(scene.executor("1", cores=2))
        assert (decision.reason, decision.until) == ("cooldown", began + 30_000)
        # Resources that stabilized during the cooldown need not stabilize again.
        assert type(orders(scene.advance(28_500))[-1]) is Rescale

    def test_executors_one_by_one_lead_to_one_rescale(self, scene: Scene) -> None:
        scene.start(1)
        scene.running(1)
        scene.advance(30_000)
        scene.batches(900, 500, 500, partitions=1)
        for name in "123":
            scene.executor(name)
            scene.advance(2_000)
            scene.batch(500, 1)
        actions = scene.advance(5_000) + scene.batch(500, 1)
        assert len([action for action in actions if type(action) is Rescale]) == 1
        assert scene.query().target == 4

    def test_a_change_that_is_taken_back_is_not_carried_out(self, scene: Scene) -> None:
        scene.start(2)
        scene.running(2)
        scene.advance(30_000)
        scene.batches(900, 312, 312, partitions=2)
        scene.executor("1", cores=2)
        scene.lose("1")
        actions = scene.advance(20_000) + scene.batch(312, 2)
        assert orders(actions) == []
        assert scene.query().history[0].reason == "no_resources_or_parallelisms_change"

    def test_a_query_that_was_let_run_again_is_taken_as_it_is(self, scene: Scene) -> None:
        rescaling(scene)
        scene.send(QueryStarted, query="counts", run="r1", partitions=2)
        assert scene.query().state == "Executing"
        assert scene.query().history[0].status == "failed"

    def test_without_any_slot_nothing_is_ordered(self, scene: Scene) -> None:
        scene.start(2)
        scene.running(2)
        scene.advance(30_000)
        scene.batches(900, 312, 312, partitions=2)
        actions = scene.lose("0") + scene.advance(60_000) + scene.batch(312, 2)
        assert orders(actions) == []
        assert reasons(actions) == ["all_executors_lost"]
        assert reasons(scene.executor("1", cores=2)) == ["parallelism_fits"]

    def test_a_rescale_that_fails_leaves_it_running_and_cools_down_again(self, scene: Scene) -> None:
        rescaling(scene)
        order = scene.last_order("Rescale")
        assert order is not None
        actions = scene.fail(order, "no space left")
        assert reasons(actions) == ["rescale_failed"]
        (decision,) = decisions(actions)
        assert decision.message == (
            "Could not scale to 4 partitions, continuing as before and retrying in 1 min: no space left"
        )
        assert scene.query().state == "Executing"
        assert (scene.query().partitions, scene.query().target, scene.query().rescaled) == (2, None, 0)
        assert scene.query().history[0].status == "failed"
        # Without a new reason the same count is not retried yet.
        assert orders(scene.advance(59_000) + scene.batch(312, 2)) == []
        # Its state was not moved, so no micro-batch has to run before the next attempt.
        scene.executor("2", cores=2)
        assert only(scene.advance(40_000), Rescale).partitions == 6

    def test_a_measured_rescale_replaces_the_assumed_cost(self, scene: Scene) -> None:
        rescaled(scene)
        scene.advance(30_000)
        scene.batches(900, 250, 250, partitions=4)
        (decision,) = decisions(scene.lose("1"))
        assert decision.numbers["cost_ms"] == 1_000
        assert decision.numbers["horizon_ms"] == 300_000

    def test_after_a_rescale_the_same_slots_call_for_no_other(self, scene: Scene) -> None:
        rescaled(scene)
        for duration_ms in (240, 300, 180, 500, 90, 260, 250, 800, 240) * 20:
            scene.advance(1_000)
            assert orders(scene.batch(duration_ms, 4)) == []

    def test_queries_that_end_by_themselves_are_never_rescaled(self, scene: Scene) -> None:
        scene.start(2)
        scene.running(2, trigger="available_now", trigger_ms=0)
        scene.advance(30_000)
        actions = scene.executor("1", cores=2) + scene.advance(30_000) + scene.batch(312, 2)
        assert orders(actions) == []
        assert reasons(actions) == ["never_rescaled"]

    def test_it_ends_while_it_is_to_be_rescaled(self, scene: Scene) -> None:
        rescaling(scene)
        assert reasons(scene.terminated()) == ["finished"]
        assert scene.query().history[0].reason == "job_finished"
        assert scene.timers == {}

    def test_an_idle_query_is_rescaled_after_the_longest_delay(self, stage: Stage) -> None:
        scene = stage(max_delay_ms=20_000)
        scene.start(2)
        scene.running(2)
        scene.advance(40_000)
        scene.executor("1", cores=2)
        assert orders(scene.advance(19_999)) == []
        assert type(orders(scene.advance(1))[0]) is Rescale


def test_a_failed_query_says_with_what(scene: Scene) -> None:
    scene.start(2)
    scene.running(2)
    actions = scene.terminated(error="Division by zero.")
    (decision,) = decisions(actions)
    assert (decision.kind, decision.message) == ("finished", "Failed: Division by zero.")


def test_two_queries_are_decided_each_for_itself(scene: Scene) -> None:
    scene.start(2)
    scene.running(2)
    scene.running(2, STATELESS)
    scene.advance(30_000)
    actions = scene.executor("1", cores=2)
    assert [decision.query for decision in decisions(actions)] == ["counts", "enrich"]
    assert [type(action) for action in orders(actions)] == [Rescale]


def test_finished_queries_are_kept_for_a_while_only(scene: Scene) -> None:
    scene.start(2)
    for number in range(105):
        scene.submit(query=f"q{number}")
        scene.terminated(f"q{number}")
    assert len(scene.scheduler.queries) == 100
    assert "q104" in scene.scheduler.queries
    assert "q0" not in scene.scheduler.queries


class TestLoss:
    """Executors are lost: Spark reruns what was lost first, the rescale comes after that."""

    def scene(self, stage: Stage) -> Scene:
        scene = stage(cooldown_ms=0, executing_stabilization_ms=0, rescale_policy="always")
        scene.start(2, 2)
        scene.running(4)
        scene.batches(300, 300, partitions=4)
        return scene

    def test_the_batch_that_met_the_loss_is_not_the_moment(self, stage: Stage) -> None:
        scene = self.scene(stage)
        scene.now += 100
        assert reasons(scene.lose("1")) == ["recovering"]
        scene.now += 900
        assert orders(scene.batch(950, partitions=4)) == []
        scene.now += 500
        assert only(scene.batch(480, partitions=4), Rescale)
        assert scene.query().target == 2

    def test_executors_that_are_replaced_meanwhile_cost_no_rescale(self, stage: Stage) -> None:
        scene = self.scene(stage)
        scene.lose("1")
        scene.now += 900
        scene.executor("2", cores=2)
        scene.batches(300, 300, 300, partitions=4)
        assert orders(scene.advance(60_000)) == []
        assert scene.query().state == "Executing"


def test_a_query_that_has_run_for_long_is_kept_when_it_finishes(scene: Scene) -> None:
    scene.start(2)
    scene.submit(query="old")
    for number in range(100):
        scene.now += 10
        scene.submit(query=f"q{number}")
        scene.terminated(f"q{number}")
    scene.now += 10
    assert reasons(scene.terminated("old", "boom")) == ["query_failed"]
    scene.terminated("q1")  # a late event makes no query more recent
    assert len(scene.scheduler.queries) == 100
    assert "old" in scene.scheduler.queries
    assert "q0" not in scene.scheduler.queries
    scene.now += 10
    scene.submit(query="new")
    scene.terminated("new")
    assert "q1" not in scene.scheduler.queries
