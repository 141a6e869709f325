"""Tests of an ordered rescale: what changes it, what cancels it, and what must precede the next one."""

from __future__ import annotations

from spark_elastic.core.actions import Rescale, StartQuery
from spark_elastic.core.events import (
    QueryInfo,
    RequirementsRequested,
    SavepointRequested,
)
from spark_elastic.core.failures.strategy import FixedDelay
from spark_elastic.core.query.record import MOST_ORDERS
from tests.unit.core.builder import OLD, STATEFUL, Scene, Stage, decisions, only, orders, reasons
from tests.unit.core.query.reached import rescaled, rescaling


class TestOrdered:
    """An ordered rescale that is not carried out yet: the trigger boundary may be far off."""

    def test_more_slots_change_it(self, scene: Scene) -> None:
        rescaling(scene)
        first = scene.last_order("Rescale")
        assert first is not None
        actions = scene.executor("2", cores=2)
        assert only(actions, Rescale).partitions == 6
        (decision,) = decisions(actions)
        assert (decision.kind, decision.reason) == ("rescale_state", "rescale_changed")
        assert decision.message == "Scale to 6 partitions instead: now 6 slots."
        assert (scene.query().state, scene.query().target) == ("Restarting", 6)
        # The shim answers the replaced order, which is no failure.
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
        # The earlier order may still be pending; with other slots, no order for a third count follows it.
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
    """Between two moves of the state, a micro-batch is committed with the count of the first one."""

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
        info = QueryInfo(facts=STATEFUL, run="r1", run_state="running", partitions=4)
        assert "rescaled_unheard" in reasons(scene.start(2, 2, queries=[info]))
        assert scene.query().state == "Executing"
        assert orders(scene.executor("2", cores=2)) == []
        assert only(scene.batches(300, partitions=4), Rescale).partitions == 6

    def test_and_one_that_a_new_process_finds_running_since_nobody_knows(self, stage: Stage) -> None:
        scene = self.at_once(stage)
        info = QueryInfo(facts=STATEFUL, run="r1", run_state="running", partitions=2)
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
