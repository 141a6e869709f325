"""A running query follows the slots: in place, with its state, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from spark_elastic.core.actions import Rescale, StartQuery
from spark_elastic.core.events import (
    ExecutorDecommissioning,
    ExecutorExcluded,
    ExecutorUnexcluded,
    QueryInfo,
    QueryStarted,
    RequirementsRequested,
    SavepointRequested,
)
from spark_elastic.core.failures.strategy import FixedDelay
from spark_elastic.core.query.record import MOST_ORDERS
from tests.unit.core.builder import OLD, STATEFUL, STATELESS, Scene, decisions, only, orders, reasons

Stage = Callable[..., Scene]


class TestInPlace:
    """Stateless queries: at once, without a gap."""

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
        assert only(scene.send(kind, executor="1", reason="?"), Rescale).partitions == 2

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


def rescaling(scene: Scene) -> None:
    """Bring a query with 2 partitions on 2 slots to where its rescale to 4 on 4 is ordered."""
    scene.start(2)
    scene.running(2)
    scene.batches(900, 312, 312, 312, partitions=2)
    scene.executor("1", cores=2)
    scene.until_rescale()


def rescaled(scene: Scene) -> None:
    """Bring a query with 2 partitions on 2 slots to 4 on 4."""
    rescaling(scene)
    scene.rescaled()


class TestMove:
    """Stateful queries: the state is moved, if that pays."""

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
        assert decision.message == "Runs with 4 partitions instead of 2, after a pause of 1 s."
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

    def test_a_change_in_the_cooldown_waits_for_its_end(self, scene: Scene) -> None:
        scene.start(2)
        scene.running(2)
        scene.batches(900, 312, 312, partitions=2)
        began = scene.now - 1_500
        (decision,) = decisions(scene.executor("1", cores=2))
        assert (decision.reason, decision.until) == ("cooldown", began + 30_000)
        # What has settled by then need not settle again.
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
        assert decision.message == "Could not go to 4 partitions, goes on with what it had: no space left"
        assert scene.query().state == "Executing"
        assert (scene.query().partitions, scene.query().target, scene.query().rescaled) == (2, None, 0)
        assert scene.query().history[0].status == "failed"
        # The same count is not tried again until there is a new reason.
        assert orders(scene.advance(60_000) + scene.batch(312, 2)) == []
        # It was not moved, so nothing has to run before the next attempt.
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


class TestOrdered:
    """A rescale that is ordered and not carried out yet: the boundary may be far, and the world goes on."""

    def test_more_slots_change_it(self, scene: Scene) -> None:
        rescaling(scene)
        first = scene.last_order("Rescale")
        assert first is not None
        actions = scene.executor("2", cores=2)
        assert only(actions, Rescale).partitions == 6
        (decision,) = decisions(actions)
        assert (decision.kind, decision.reason) == ("rescale_state", "rescale_changed")
        assert decision.message == "Is to go to 6 partitions instead, now that it has 6 slots."
        assert (scene.query().state, scene.query().target) == ("Restarting", 6)
        # The shim answers the one that was replaced: that is no failure.
        assert scene.fail(first, "another one was ordered after it") == ()
        assert (scene.query().state, scene.query().target) == ("Restarting", 6)
        assert reasons(scene.rescaled()) == ["rescaled"]
        assert (scene.query().state, scene.query().partitions) == ("Executing", 6)
        assert scene.query().history[0].status == "completed"

    def test_slots_that_go_again_call_it_off(self, scene: Scene) -> None:
        rescaling(scene)
        first = scene.last_order("Rescale")
        assert first is not None
        scene.now += 5_000
        actions = scene.lose("1")
        assert only(actions, Rescale).partitions == 2
        (decision,) = decisions(actions)
        assert (decision.kind, decision.reason) == ("info", "rescale_called_off")
        assert (decision.before, scene.query().target) == (2, 2)
        assert scene.fail(first, "another one was ordered after it") == ()
        assert reasons(scene.rescaled(took_ms=0)) == []
        view = scene.query()
        assert (view.state, view.partitions, view.target, view.rescaled) == ("Executing", 2, None, 0)
        newest = view.history[0]
        assert (newest.reason, newest.paused_ms) == ("no_resources_or_parallelisms_change", 0)

    def test_what_was_called_off_can_be_ordered_once_more(self, scene: Scene) -> None:
        rescaling(scene)
        scene.lose("1")
        assert only(scene.executor("2", cores=2), Rescale).partitions == 4
        assert reasons(scene.rescaled()) == ["rescaled"]
        assert scene.query().partitions == 4

    def test_the_same_choice_again_orders_nothing(self, stage: Stage) -> None:
        scene = stage(max_parallelism=4)
        rescaling(scene)
        assert scene.executor("2", cores=2) == ()
        assert (scene.query().state, scene.query().target) == ("Restarting", 4)

    def test_without_any_slot_it_is_called_off(self, scene: Scene) -> None:
        rescaling(scene)
        scene.lose("0")
        scene.lose("1")
        assert scene.query().target == 2
        scene.rescaled(took_ms=0)
        assert (scene.query().state, scene.query().partitions) == ("Executing", 2)

    def test_other_bounds_change_it(self, stage: Stage) -> None:
        scene = stage(mode="adaptive")
        rescaling(scene)
        bounds = {"shuffle": (1, 3)}
        actions = scene.send(RequirementsRequested, query="counts", bounds=bounds, by="somebody")
        assert only(actions, Rescale).partitions == 3
        scene.rescaled()
        newest, overtaken = scene.query().history[:2]
        assert (newest.cause, newest.reason) == ("update_requirement", "succeeded")
        assert overtaken.reason == "resource_requirements_updated"

    def test_one_that_was_carried_out_before_the_next_was_heard_of_is_counted(self, scene: Scene) -> None:
        rescaling(scene)
        first = scene.last_order("Rescale")
        assert first is not None
        scene.executor("2", cores=2)
        scene.now += 1_000
        assert reasons(scene.done(first, took_ms=900)) == ["rescaled"]
        view = scene.query()
        assert (view.state, view.partitions, view.target) == ("Restarting", 4, 6)
        scene.rescaled()
        view = scene.query()
        assert (view.state, view.partitions, view.target, view.rescaled) == ("Executing", 6, None, 2)

    def test_one_that_was_carried_out_before_it_was_called_off_stays_until_a_batch_has_run(
        self, scene: Scene
    ) -> None:
        rescaling(scene)
        first = scene.last_order("Rescale")
        assert first is not None
        scene.lose("1")
        scene.done(first, took_ms=900)
        # The order of before may be under way. With other slots it is not followed by one for a third count.
        assert only(scene.executor("2"), Rescale).partitions == 4
        scene.rescaled(took_ms=0)
        assert (scene.query().state, scene.query().partitions) == ("Executing", 4)

    def test_the_last_one_fails_after_one_before_it_was_carried_out(self, scene: Scene) -> None:
        rescaling(scene)
        first = scene.last_order("Rescale")
        assert first is not None
        scene.executor("2", cores=2)
        second = scene.last_order("Rescale")
        assert second is not None
        scene.done(first, took_ms=900)
        assert "rescale_failed" in reasons(scene.fail(second))
        view = scene.query()
        assert (view.state, view.partitions, view.target, view.rescaled) == ("Executing", 4, None, 1)

    def test_its_outcome_is_waited_for_whatever_else_is_ordered(self, scene: Scene) -> None:
        rescaling(scene)
        for _ in range(2 * MOST_ORDERS):
            scene.send(SavepointRequested, query="counts", by="somebody", target="/s")
        scene.rescaled()
        assert (scene.query().state, scene.query().partitions) == ("Executing", 4)

    def test_so_is_that_of_the_newest_of_many(self, scene: Scene) -> None:
        rescaling(scene)
        for number in range(2 * MOST_ORDERS):
            scene.executor(f"more {number}", cores=2)
        last = scene.query().target
        scene.rescaled()
        assert (scene.query().state, scene.query().partitions) == ("Executing", last)

    def test_a_batch_with_the_new_count_may_be_heard_of_before_the_outcome(self, scene: Scene) -> None:
        rescaling(scene)
        assert reasons(scene.batches(250, partitions=4)) == ["rescaled_unheard"]
        assert scene.query().state == "Restarting"
        scene.rescaled()
        assert (scene.query().state, scene.query().partitions, scene.query().rescaled) == ("Executing", 4, 1)
        assert scene.query().history[0].reason == "succeeded"

    def test_an_increase_that_is_overdue_is_not_called_off_for_being_small(self, stage: Stage) -> None:
        scene = stage(min_parallelism_increase=2, scaling_interval_max_ms=300_000)
        scene.start(2)
        scene.running(2)
        scene.advance(30_000)
        scene.batches(900, 2000, 2000, partitions=2)
        scene.executor("1")
        scene.advance(300_000)
        assert scene.query().target == 3
        scene.executor("2")
        assert scene.query().target == 4
        scene.lose("2")
        assert (scene.query().state, scene.query().target) == ("Restarting", 3)


class TestOneBatchBetween:
    """Between two moves of the state a micro-batch is committed with the count that the first one brought."""

    def at_once(self, stage: Stage) -> Scene:
        return stage(cooldown_ms=0, executing_stabilization_ms=0, max_delay_ms=0, rescale_policy="always")

    def test_a_second_move_waits_for_a_batch(self, stage: Stage) -> None:
        scene = self.at_once(stage)
        scene.start(2)
        scene.running(2)
        assert only(scene.executor("1", cores=2), Rescale).partitions == 4
        scene.rescaled()
        actions = scene.executor("2", cores=2)
        assert orders(actions) == []
        assert reasons(actions) == ["awaiting_batch"]
        assert orders(scene.advance(600_000)) == []
        assert only(scene.batches(300, partitions=4), Rescale).partitions == 6

    def test_so_does_one_after_a_start_that_moved_the_state(self, stage: Stage) -> None:
        scene = self.at_once(stage)
        scene.start(2)
        scene.submit(OLD)
        scene.executor("1", cores=2)
        assert orders(scene.started(2) + scene.advance(600_000)) == []
        assert only(scene.batches(300, partitions=2), Rescale).partitions == 4

    def test_and_one_after_a_move_that_nobody_has_heard_of(self, stage: Stage) -> None:
        scene = self.at_once(stage)
        scene.start(2)
        scene.running(2)
        scene.executor("1", cores=2)
        info = QueryInfo(facts=STATEFUL, run="r1", phase="running", partitions=4)
        assert "rescaled_unheard" in reasons(scene.start(2, 2, queries=[info]))
        assert scene.query().state == "Executing"
        assert orders(scene.executor("2", cores=2)) == []
        assert only(scene.batches(300, partitions=4), Rescale).partitions == 6

    def test_and_one_that_a_new_process_finds_running_since_nobody_knows(self, stage: Stage) -> None:
        scene = self.at_once(stage)
        info = QueryInfo(facts=STATEFUL, run="r1", phase="running", partitions=2)
        assert "adopted" in reasons(scene.start(4, queries=[info]))
        assert not any(isinstance(action, Rescale) for action in scene.actions)
        assert only(scene.batches(300, partitions=2), Rescale).partitions == 4

    def test_a_failure_does_not_stand_for_that_batch(self, stage: Stage) -> None:
        scene = stage(
            cooldown_ms=0,
            executing_stabilization_ms=0,
            rescale_policy="always",
            restart=FixedDelay(attempts=9, delay_ms=1_000),
        )
        scene.start(2)
        scene.running(2)
        scene.executor("1", cores=2)
        scene.advance(10_000)
        scene.rescaled()
        scene.run_fails()
        scene.executor("2", cores=2)
        assert only(scene.advance(1_000), StartQuery).partitions == 4
        assert orders(scene.started(4) + scene.advance(600_000)) == []
        assert only(scene.batches(300, partitions=4), Rescale).partitions == 6

    def test_what_has_settled_meanwhile_need_not_settle_again(self, scene: Scene) -> None:
        rescaled(scene)
        began = scene.now
        scene.advance(5_000)
        scene.executor("2", cores=8)
        assert scene.query().last_decision is not None
        scene.batches(900, 312, 312, partitions=4)
        scene.until_rescale()
        assert scene.now == began + 30_000

    def test_a_query_whose_rescale_was_called_off_may_be_rescaled_at_once(self, stage: Stage) -> None:
        scene = self.at_once(stage)
        scene.start(2)
        scene.running(2)
        scene.executor("1", cores=2)
        scene.lose("1")
        scene.rescaled(took_ms=0)
        assert scene.query().state == "Executing"
        assert only(scene.executor("2", cores=2), Rescale).partitions == 4


class TestHoldingStill:
    """Doing nothing is a decision, said once."""

    def test_a_small_gain_is_not_worth_it(self, scene: Scene) -> None:
        scene.start(4)
        scene.running(4)
        scene.advance(30_000)
        # The work is so small that partitions hardly matter.
        scene.batches(900, 181, 181, 181, partitions=4)
        actions = scene.executor("1", cores=2)
        assert orders(actions) == []
        (decision,) = decisions(actions)
        assert decision.kind == "nothing_to_do"
        assert decision.reason in ("gain_too_small", "parallelism_fits")

    def test_a_rescale_that_costs_more_than_it_saves_is_not_done(self, stage: Stage) -> None:
        scene = stage()
        scene.start(2)
        scene.running(2, trigger_ms=600_000)
        scene.advance(30_000)
        scene.batches(900, 312, 312, 312, partitions=2)
        actions = scene.executor("1", cores=2)
        assert reasons(actions) == ["cost_too_high"]
        assert "would save 66 ms within 10 min, and the rescale costs 1.5 s" in decisions(actions)[0].message

    def test_the_same_is_not_said_for_each_batch(self, scene: Scene) -> None:
        scene.start(2)
        scene.running(2)
        scene.advance(30_000)
        scene.batches(900, 312, 312, partitions=2)
        said = decisions(scene.executor("1", cores=2) + scene.batches(*[312] * 10, partitions=2))
        assert [decision.reason for decision in said] == ["stabilizing"]

    def test_more_load_is_a_change_too(self, scene: Scene) -> None:
        scene.start(4)
        scene.running(4, trigger_ms=20_000)
        scene.advance(30_000)
        scene.batches(900, 181, 181, partitions=4)
        scene.executor("1", cores=2)
        assert scene.query().state == "Executing"
        actions = scene.batches(*[8_000] * 5, partitions=4)
        assert reasons(actions) == ["stabilizing"]
        actions = scene.advance(60_000) + scene.batch(8_000, 4)
        assert type(orders(actions)[0]) is Rescale
        assert scene.query().history[0].cause == "load_changed"

    def test_more_load_during_the_cooldown_is_judged_at_its_end(self, scene: Scene) -> None:
        scene.start(4)
        scene.running(2, OLD, checkpoint_partitions=2, trigger_ms=600_000)
        assert orders(scene.batches(900, *[30_000] * 4, partitions=2)) == []
        actions = scene.until_rescale()
        assert reasons(actions) == ["rescale_pays"]
        # No batch ends in this scene, so the longest delay of three triggers counts from the cooldown's
        # end.
        assert scene.now == 1_000_000 + 30_000 + 3 * 600_000

    def test_without_waiting_times_a_batch_with_more_load_is_enough(self, stage: Stage) -> None:
        scene = stage(cooldown_ms=0, executing_stabilization_ms=0, max_delay_ms=0)
        scene.start(4)
        scene.running(2, OLD, checkpoint_partitions=2, trigger_ms=600_000)
        actions = scene.batches(900, 30_000, partitions=2)
        assert reasons(actions) == ["rescale_pays"]

    def test_small_increases_wait_for_more(self, stage: Stage) -> None:
        scene = stage(min_parallelism_increase=2)
        scene.start(2)
        scene.running(2)
        scene.advance(30_000)
        scene.batches(900, 2000, 2000, partitions=2)
        actions = scene.executor("1") + scene.advance(60_000) + scene.batch(2000, 2)
        assert orders(actions) == []
        assert reasons(actions) == ["increase_too_small"]
        scene.executor("2")
        scene.advance(11_000)
        scene.batch(2000, 2)
        assert scene.query().state == "Restarting"

    def test_small_increases_are_carried_out_in_the_end(self, stage: Stage) -> None:
        scene = stage(min_parallelism_increase=2, scaling_interval_max_ms=300_000)
        scene.start(2)
        scene.running(2)
        scene.advance(30_000)
        scene.batches(900, 2000, 2000, partitions=2)
        (decision,) = decisions(scene.executor("1"))
        assert decision.reason == "increase_too_small"
        assert decision.until == scene.now - 31_500 + 300_000
        assert orders(scene.advance(268_400)) == []
        actions = scene.advance(11_700)
        assert type(orders(actions)[0]) is Rescale

    def test_growth_that_gains_nothing_is_carried_out_in_the_end(self, stage: Stage) -> None:
        scene = stage(scaling_interval_max_ms=300_000)
        scene.start(2)
        scene.running(2)
        scene.advance(30_000)
        scene.batches(200, 200, 200, partitions=2)
        (decision,) = decisions(scene.executor("1"))
        assert decision.reason == "gain_too_small"
        assert decision.until == scene.now - 31_500 + 300_000
        assert orders(scene.advance(268_400)) == []
        actions = scene.advance(11_700)
        assert only(actions, Rescale).partitions == 3
        assert "any growth counts" in decisions(actions)[-1].message

    def test_once_it_is_over_the_next_slot_is_enough(self, stage: Stage) -> None:
        scene = stage(scaling_interval_max_ms=300_000)
        scene.start(2)
        scene.running(2)
        scene.batches(200, 200, 200, partitions=2)
        assert orders(scene.advance(400_000)) == []
        scene.executor("1")
        assert only(scene.advance(10_000) + scene.batches(200, partitions=2), Rescale).partitions == 3

    def test_always_follows_the_slots_whatever_it_gains(self, stage: Stage) -> None:
        scene = stage(rescale_policy="always")
        scene.start(4)
        scene.running(4, trigger_ms=600_000)
        scene.advance(30_000)
        scene.executor("1")
        actions = scene.advance(10_000) + scene.batch(300, 4)
        assert reasons(actions) == ["awaiting_batch", "rescale_always"]
        assert scene.query().target == 5


class TestAdviseOnly:
    """The same path, nothing done."""

    def test_nothing_is_ordered_but_the_start_as_it_is(self, stage: Stage) -> None:
        scene = stage(advise_only=True)
        scene.start()
        actions = scene.submit(OLD)
        assert only(actions, StartQuery).partitions is None
        scene.started(200)
        scene.executor("0", cores=2)
        actions = scene.advance(60_000) + scene.batches(8000, 8000, partitions=200)
        assert orders(actions) == []
        advice = [decision for decision in decisions(actions) if decision.kind == "rescale_state"]
        assert len(advice) == 1
        assert advice[0].message.endswith("Only advice (spark.elastic.adviseOnly): nothing was changed.")
        assert "rescale_pays" not in reasons(scene.advance(600_000) + scene.batch(8000, 200))

    @pytest.mark.parametrize("executors", [[], [1], [2]])
    def test_a_start_is_not_delayed(self, stage: Stage, executors: list[int]) -> None:
        scene = stage(mode="adaptive", advise_only=True, submission_stabilization_ms=10_000)
        scene.start(*executors)
        assert only(scene.submit(), StartQuery).partitions is None

    def test_in_place(self, stage: Stage) -> None:
        scene = stage(advise_only=True)
        scene.start(2)
        scene.running(200, STATELESS)
        actions = scene.executor("1")
        assert orders(actions) == []
        assert reasons(actions) == ["in_place"]
        assert scene.query("enrich").partitions == 200


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
    """Executors are lost: Spark makes up for it first, the rescale comes after that."""

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
    scene.terminated("q1")  # a late event makes nothing younger
    assert len(scene.scheduler.queries) == 100
    assert "old" in scene.scheduler.queries
    assert "q0" not in scene.scheduler.queries
    scene.now += 10
    scene.submit(query="new")
    scene.terminated("new")
    assert "q1" not in scene.scheduler.queries
