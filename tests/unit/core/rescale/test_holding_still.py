"""Tests of changes that lead to no rescale, or only to advice."""

from __future__ import annotations

import pytest

from spark_elastic.core.actions import Rescale, StartQuery
from tests.unit.core.builder import OLD, STATELESS, Scene, Stage, decisions, only, orders, reasons


class TestHoldingStill:
    """Doing nothing is a decision too, and is reported once."""

    def test_a_small_gain_is_not_worth_it(self, scene: Scene) -> None:
        scene.start(4)
        scene.running(4)
        scene.advance(30_000)
        # There is so little work that partitions hardly matter.
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
        assert "would save 66 ms within 10 min, the rescale costs 1.5 s" in decisions(actions)[0].message

    def test_a_count_that_is_kept_is_kept_for_now_and_the_change_of_mind_has_its_numbers(
        self, scene: Scene
    ) -> None:
        scene.start(1)
        scene.running(1, OLD, checkpoint_partitions=1)
        scene.advance(30_000)
        scene.batches(900, 185, 185, 185, partitions=1)
        (kept,) = decisions(scene.executor("1"))
        assert kept.message == (
            "Keep 1 partition on 2 slots: 2 would take 182 ms instead of 185 ms per batch, a gain below 5 %."
        )
        (meant,) = decisions(scene.batches(460, partitions=1))
        assert meant.message == (
            "Waiting 10 s for resources to settle before scaling 1 → 2 partitions. Batch 460 ms → "
            "320 ms expected."
        )

    def test_a_checkpoint_whose_count_is_kept_though_more_slots_are_there_says_what_more_would_save(
        self, scene: Scene
    ) -> None:
        scene.start(2)
        actions = scene.submit(OLD, checkpoint_partitions=1, trigger_ms=600_000)
        assert only(actions, StartQuery).partitions is None
        (kept,) = decisions(actions)
        assert kept.message == (
            "Start with the checkpoint's 1 partition: 2 would save 125 ms of 430 ms per batch, too "
            "little for a rescale of 1.5 s."
        )
        scene.started(1)
        scene.advance(30_000)
        (meant,) = decisions(scene.batches(900, 9_000, partitions=1))
        assert meant.message.endswith("Batch 9 s → 4.6 s expected.")

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
        # No micro-batch ends in this scene, so the maximum delay of three triggers counts from the cooldown's
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
    """The same path, but nothing is carried out."""

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
        assert advice[0].message.endswith("Advice only (spark.elastic.adviseOnly), nothing is changed.")
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


def test_a_rescale_that_does_not_pay_any_more_is_not_held(scene: Scene) -> None:
    scene.start(2)
    scene.running(2)
    scene.advance(30_000)
    scene.batches(900, 312, 312, 312, partitions=2)
    scene.executor("1", cores=2)
    hold = scene.query().hold
    assert hold is not None
    assert hold.reason == "stabilizing"
    scene.batches(*[20] * 12, partitions=2)
    assert orders(scene.advance(60_000) + scene.batches(20, 20, partitions=2)) == []
    assert scene.query().last_decision == hold
    assert scene.query().hold is None
