"""Tests of prepared moves: the state is copied while micro-batches run, and then only switched over."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from attrs import evolve

from spark_elastic.core.actions import Action, HoldQuery, PrepareMove, Rescale, StartQuery, TakeSavepoint
from spark_elastic.core.events import (
    CancelRequested,
    Event,
    ExecutorRemoved,
    Failure,
    PolicyFileChanged,
    QueryFacts,
    QueryInfo,
    QueryStarted,
    RequirementsRequested,
    RunState,
    SavepointRequested,
)
from spark_elastic.core.failures.strategy import FixedDelay
from spark_elastic.core.rescale.concurrency import PATIENCE_MS
from spark_elastic.core.rescale.situation import RESCALE_COST_MS, SWITCH_COST_MS
from spark_elastic.core.scheduler import Scheduler
from spark_elastic.core.settings import CoreSettings
from spark_elastic.wire import EVENT_TYPES
from tests.unit.core.builder import PREPARED, TASK_FAILED, Scene, Stage, decisions, only, orders, reasons
from tests.unit.core.query.test_states_and_events import fields

AT_ONCE = {"cooldown_ms": 0, "executing_stabilization_ms": 0, "max_delay_ms": 0, "rescale_policy": "always"}


def running(scene: Scene, facts: QueryFacts = PREPARED) -> None:
    """Let a query with 2 partitions run on 2 slots, in batches of 312 ms."""
    scene.start(2)
    scene.running(2, facts)
    scene.batches(900, 312, 312, 312, partitions=2)


def preparing(scene: Scene, facts: QueryFacts = PREPARED) -> PrepareMove:
    """Copy the state of that query to 4 partitions, for 4 slots."""
    running(scene, facts)
    scene.executor("1", cores=2)
    return only(scene.until_rescale(), PrepareMove)


def copy(scene: Scene, query: str = "counts") -> tuple[int, int] | None:
    """Return the count that the state is being copied to, and since when."""
    found = scene.query(query).preparing
    return None if found is None else (found.partitions, found.since)


def moving(scene: Scene) -> set[str]:
    return scene.scheduler._moves.moving


def copies(actions: Sequence[Action]) -> list[tuple[str, int]]:
    return [(action.query, action.partitions) for action in actions if isinstance(action, PrepareMove)]


class TestOrder:
    """When a copy is ordered, and how many tasks it gets."""

    def test_a_move_begins_with_a_copy_and_the_query_goes_on(self, scene: Scene) -> None:
        running(scene)
        scene.executor("1", cores=2)
        actions = scene.until_rescale()
        (order,) = orders(actions)
        assert order == PrepareMove(
            id=order.id, cause=order.cause, query="counts", run="r1", partitions=4, tasks=2
        )
        (decision,) = decisions(actions)
        assert (decision.kind, decision.reason) == ("rescale_state", "rescale_pays")
        assert decision.message == (
            "Scale 2 → 4 partitions on 4 slots: batch 312 ms → 246 ms expected, the rescale costs 500 ms. "
            "Its state is copied first, while micro-batches run."
        )
        view = scene.query()
        assert (view.state, view.partitions, view.target) == ("Executing", 2, None)
        assert copy(scene) == (4, scene.now)
        assert moving(scene) == {"counts"}
        assert orders(scene.batches(312, 312, partitions=2)) == []
        assert view.history[0].status == "in_progress"

    @pytest.mark.parametrize(
        "change",
        [
            {"prepares_moves": False},
            {"checkpoint_format": 1, "checkpoint_partitions": 2},
        ],
    )
    def test_without_changelogs_and_format_2_the_state_is_moved_in_a_pause(
        self, scene: Scene, change: dict[str, Any]
    ) -> None:
        running(scene, evolve(PREPARED, **change))
        scene.executor("1", cores=2)
        actions = scene.until_rescale()
        assert only(actions, Rescale).partitions == 4
        assert decisions(actions)[0].numbers["cost_ms"] == RESCALE_COST_MS
        assert "copied" not in decisions(actions)[0].message

    def test_nor_is_it_copied_where_the_setting_says_so(self, stage: Stage) -> None:
        scene = stage(prepare_moves=False)
        running(scene)
        scene.executor("1", cores=2)
        assert only(scene.until_rescale(), Rescale).partitions == 4

    @pytest.mark.parametrize(("most", "slots", "tasks"), [(None, 8, 6), (3, 8, 3), (9, 8, 6), (None, 1, 1)])
    def test_it_gets_the_slots_beyond_the_partitions_and_at_least_one(
        self, stage: Stage, most: int | None, slots: int, tasks: int
    ) -> None:
        scene = stage(**AT_ONCE, max_copy_tasks=most, max_copy_rate=50 << 20)
        scene.start(2, 2)
        scene.running(2, PREPARED, explicit_partitions=None)
        scene.batches(900, 312, 312, partitions=2)
        scene.lose("0")
        actions = scene.executor("2", cores=max(1, slots - 2)) if slots > 2 else scene.lose("1")
        actions += scene.executor("3", cores=1) if slots == 1 else ()
        actions += scene.batches(312, 312, partitions=2)
        (order,) = [action for action in scene.actions if isinstance(action, PrepareMove)][-1:]
        assert (order.partitions, order.tasks, order.bytes_per_second) == (slots, tasks, 50 << 20)

    def made_rescalable(self, scene: Scene) -> PrepareMove:
        """Let a start give a query the form in which its state can be copied, and copy it."""
        scene.start(2)
        scene.submit(PREPARED, provider="hdfs", checkpoint_format=1, prepares_moves=False)
        scene.started(2)
        scene.batches(900, 312, 312, 312, partitions=2)
        scene.executor("1", cores=2)
        return only(scene.until_rescale(), PrepareMove)

    def test_a_query_that_was_made_rescalable_by_its_start_is_prepared(self, scene: Scene) -> None:
        order = self.made_rescalable(scene)
        assert (order.partitions, copy(scene)) == (4, (4, scene.now))

    def test_if_that_fails_its_moves_are_not_prepared_any_more(self, scene: Scene) -> None:
        order = self.made_rescalable(scene)
        assert only(scene.fail(order, "without changelogs"), Rescale).partitions == 4
        scene.rescaled()
        scene.batches(900, 250, 250, partitions=4)
        scene.executor("2", cores=4)
        assert only(scene.until_rescale(), Rescale).partitions == 8

    def test_one_whose_checkpoint_allows_it_is_prepared_the_next_time_as_well(self, scene: Scene) -> None:
        scene.fail(preparing(scene), "the storage is away")
        scene.rescaled()
        scene.batches(900, 250, 250, partitions=4)
        scene.executor("2", cores=4)
        assert only(scene.until_rescale(), PrepareMove).partitions == 8

    def test_a_start_that_moves_the_state_does_not_copy_it_before(self, scene: Scene) -> None:
        scene.start(4)
        actions = scene.submit(PREPARED, checkpoint_partitions=200)
        assert only(actions, StartQuery).partitions == 4
        assert decisions(actions)[-1].numbers["cost_ms"] == RESCALE_COST_MS

    def test_what_a_later_snapshot_says_counts(self, scene: Scene) -> None:
        running(scene, evolve(PREPARED, prepares_moves=False))
        goes_on(scene, "running")
        scene.executor("1", cores=2)
        assert only(scene.until_rescale(), PrepareMove).partitions == 4

    def test_advice_copies_nothing(self, stage: Stage) -> None:
        scene = stage(**AT_ONCE, advise_only=True)
        running(scene)
        actions = scene.executor("1", cores=2) + scene.batches(312, partitions=2)
        assert "rescale_always" in reasons(actions)
        assert orders(actions) == []
        assert copy(scene) is None


class TestOutcome:
    """The copy is complete, or has failed."""

    def test_a_complete_copy_is_switched_over(self, scene: Scene) -> None:
        order = preparing(scene)
        scene.now += 4_200
        actions = scene.done(order, took_ms=4_000)
        assert only(actions, Rescale).partitions == 4
        (decision,) = decisions(actions)
        assert (decision.kind, decision.reason) == ("info", "rescale_prepared")
        assert decision.message == (
            "State copied 2 → 4 partitions in 4 s, switching over at the next boundary."
        )
        assert (scene.query().state, scene.query().target) == ("Restarting", 4)
        assert copy(scene) is None
        assert moving(scene) == {"counts"}
        actions = scene.rescaled(took_ms=200, prepared=True)
        (decision,) = decisions(actions)
        assert decision.message == "Scaled 2 → 4 partitions: paused 200 ms, prepared in 4 s."
        assert (decision.kind, decision.reason) == ("info", "rescaled_prepared")
        assert decision.numbers["slowdown_ms"] == 0
        view = scene.query()
        assert (view.state, view.partitions, view.rescaled) == ("Executing", 4, 1)
        assert moving(scene) == set()
        newest = view.history[0]
        assert (newest.status, newest.paused_ms, newest.prepared_ms) == ("completed", 200, 4_000)
        assert newest.first_batch_ms is None
        scene.batches(420, 240, partitions=4)
        assert scene.query().history[0].first_batch_ms == 420
        assert newest.first_batch_ms is None  # a record that was handed out before does not change

    def test_a_preparation_that_breaks_at_the_last_moment_is_a_move_in_a_pause(self, scene: Scene) -> None:
        scene.done(preparing(scene), took_ms=4_000)
        assert reasons(scene.rescaled(took_ms=2_000, prepared=False)) == ["rescaled"]
        newest = scene.query().history[0]
        assert (newest.paused_ms, newest.prepared_ms) == (2_000, None)
        scene.advance(30_000)
        scene.batches(900, 250, 250, partitions=4)
        (decision,) = decisions(scene.lose("1"))
        assert decision.numbers["cost_ms"] == SWITCH_COST_MS, "what a prepared one costs is not known yet"

    def test_a_copy_that_fails_is_followed_by_a_move_in_a_pause(self, scene: Scene) -> None:
        order = preparing(scene)
        actions = scene.fail(order, "a file is gone")
        (decision,) = decisions(actions)
        assert (decision.kind, decision.reason) == ("failed", "preparation_failed")
        assert decision.message == (
            "Could not copy the state 2 → 4 partitions, moving it in a pause: a file is gone"
        )
        assert only(actions, Rescale).partitions == 4
        record = scene.scheduler._machines["counts"].record
        assert (record.moves.failed.failures, record.moves.failed.count) == (0, None)
        assert reasons(scene.rescaled()) == ["rescaled"]
        assert (scene.query().state, scene.query().partitions) == ("Executing", 4)
        assert scene.query().history[0].status == "completed"

    def test_a_rescale_that_fails_after_the_copy_is_a_failed_move(self, scene: Scene) -> None:
        scene.done(preparing(scene))
        order = scene.last_order("Rescale")
        assert order is not None
        assert reasons(scene.fail(order)) == ["rescale_failed"]
        assert (scene.query().state, scene.query().partitions) == ("Executing", 2)

    def test_other_slots_in_the_last_moment_are_followed_in_a_pause(self, scene: Scene) -> None:
        scene.done(preparing(scene))
        assert only(scene.executor("2", cores=2), Rescale).partitions == 6
        assert reasons(scene.rescaled(took_ms=3_000)) == ["rescaled"]
        assert scene.query().history[0].prepared_ms is None

    def test_after_a_loss_that_changes_nothing_it_is_switched_over(self, stage: Stage) -> None:
        scene = stage(max_parallelism=3)
        scene.start(2)
        scene.running(2, PREPARED)
        scene.batches(900, 312, 312, 312, partitions=2)
        scene.executor("1", cores=1)
        scene.executor("2", cores=1)
        order = only(scene.until_rescale(), PrepareMove)
        assert orders(scene.lose("2")) == []
        assert only(scene.done(order), Rescale).partitions == 3


class TestChange:
    """Slots, bounds, settings and load change while the state is copied."""

    def test_more_slots_ask_for_another_copy(self, scene: Scene) -> None:
        first = preparing(scene)
        began = scene.now
        scene.now += 700
        actions = scene.executor("2", cores=2)
        order = only(actions, PrepareMove)
        assert (order.partitions, order.tasks) == (6, 4)
        (decision,) = decisions(actions)
        assert (decision.kind, decision.reason) == ("rescale_state", "rescale_changed")
        assert decision.message == (
            "Scale to 6 partitions instead: now 6 slots. Its state is copied first, while micro-batches run."
        )
        assert copy(scene) == (6, began + 700)
        # The outcome of the first, whichever it is, means nothing any more.
        assert scene.fail(first, "another one was ordered after it") == ()
        assert copy(scene) == (6, began + 700)
        assert only(scene.done(order), Rescale).partitions == 6

    def test_the_first_one_may_be_complete_before_the_next_is_heard_of(self, scene: Scene) -> None:
        first = preparing(scene)
        scene.executor("2", cores=2)
        assert scene.done(first, took_ms=900) == ()
        assert (scene.query().state, copy(scene)) == ("Executing", (6, scene.now))

    def test_slots_that_go_again_drop_it(self, scene: Scene) -> None:
        first = preparing(scene)
        scene.now += 500
        actions = scene.lose("1")
        order = only(actions, PrepareMove)
        assert (order.partitions, order.tasks) == (2, 1)
        assert reasons(actions)[0] == "rescale_called_off"
        assert decisions(actions)[0].message == "Keep 2 partitions: the pending rescale is cancelled."
        assert (scene.query().state, copy(scene), moving(scene)) == ("Executing", None, set())
        assert scene.query().history[0].reason == "no_resources_or_parallelisms_change"
        assert scene.fail(first, "another one was ordered after it") == ()
        assert scene.done(order, took_ms=0) == ()
        scene.batches(312, 312, partitions=2)
        scene.executor("2", cores=2)
        assert only(scene.until_rescale(), PrepareMove).partitions == 4

    def test_a_copy_that_was_dropped_too_late_changes_nothing(self, scene: Scene) -> None:
        first = preparing(scene)
        scene.lose("1")
        assert scene.done(first) == ()
        assert (scene.query().state, scene.query().partitions) == ("Executing", 2)

    def test_the_same_choice_goes_on(self, stage: Stage) -> None:
        scene = stage(max_parallelism=4)
        preparing(scene)
        began = scene.now
        assert orders(scene.executor("2", cores=2)) == []
        assert copy(scene) == (4, began)

    def test_without_any_slot_it_is_dropped(self, scene: Scene) -> None:
        preparing(scene)
        scene.lose("0")
        assert copy(scene) is None
        assert copies(scene.log[-1][1]) == [("counts", 2)]

    def test_other_bounds_change_it_with_a_record_of_their_own(self, stage: Stage) -> None:
        scene = stage(mode="adaptive")
        preparing(scene)
        bounds = {"shuffle": (1, 3)}
        actions = scene.send(RequirementsRequested, query="counts", bounds=bounds, by="somebody")
        assert only(actions, PrepareMove).partitions == 3
        scene.copied()
        scene.rescaled(took_ms=100, prepared=True)
        newest, overtaken = scene.query().history[:2]
        assert (newest.cause, newest.reason, newest.prepared_ms) == ("update_requirement", "succeeded", 4_000)
        assert overtaken.reason == "resource_requirements_updated"

    def test_a_batch_with_another_count_than_was_known_lets_it_choose_again(self, scene: Scene) -> None:
        preparing(scene)
        actions = scene.batches(300, partitions=4)
        assert copies(actions) == [("counts", 4)]
        assert reasons(actions)[0] == "rescale_called_off"
        assert (copy(scene), scene.query().partitions) == (None, 4)

    def test_time_that_passes_changes_nothing(self, stage: Stage) -> None:
        scene = stage(**AT_ONCE)
        running(scene)
        scene.done(only(scene.executor("1", cores=2), PrepareMove))
        order = scene.last_order("Rescale")
        assert order is not None
        scene.fail(order)
        assert copies(scene.executor("2", cores=2)) == [("counts", 6)]
        began = scene.now
        # By then the count that has failed may be tried again.
        actions = scene.advance(120_000)
        assert (orders(actions), decisions(actions)) == ([], [])
        assert copy(scene) == (6, began)

    def test_settings_that_forbid_another_count_drop_it(self, scene: Scene) -> None:
        preparing(scene, evolve(PREPARED, explicit_partitions=200))
        fixed = {"counts": {"explicitParallelism": "fixed"}}
        actions = scene.send(PolicyFileChanged, path="p", settings=fixed)
        assert copies(actions) == [("counts", 2)]
        assert copy(scene) is None

    def test_settings_that_forbid_the_next_copy_let_this_one_go_on(self, scene: Scene) -> None:
        order = preparing(scene)
        never = {"counts": {"adaptiveScheduler.prepareMoves": "false"}}
        assert orders(scene.send(PolicyFileChanged, path="p", settings=never)) == []
        assert only(scene.done(order), Rescale).partitions == 4


class TestEnd:
    """The query fails, stops or ends while its state is copied."""

    def test_a_failed_micro_batch_gives_it_up(self, stage: Stage) -> None:
        scene = stage(restart=FixedDelay(attempts=9, delay_ms=1_000))
        first = preparing(scene)
        assert [type(action) for action in orders(scene.run_fails())] == [HoldQuery]
        assert (scene.query().state, copy(scene), moving(scene)) == ("Restarting", None, set())
        assert scene.fail(first, "a micro-batch has failed") == ()
        assert only(scene.advance(1_000), StartQuery).partitions == 2
        scene.started(2)
        scene.batches(312, 312, partitions=2)
        assert only(scene.until_rescale(), PrepareMove).partitions == 4

    def test_a_query_that_ends_has_no_copy(self, scene: Scene) -> None:
        first = preparing(scene)
        assert reasons(scene.terminated()) == ["finished"]
        assert (copy(scene), moving(scene)) == (None, set())
        assert scene.fail(first) == ()
        assert scene.query().history[0].reason == "job_finished"

    def test_so_has_one_that_is_canceled_and_one_without_executors(self, scene: Scene) -> None:
        first = preparing(scene)
        scene.send(CancelRequested, query="counts", by="somebody")
        assert (scene.query().state, moving(scene)) == ("Canceling", set())
        assert scene.done(first) == ()

    def test_a_stop_with_a_savepoint_gives_it_up_and_a_later_move_takes_it_up_again(
        self, scene: Scene
    ) -> None:
        first = preparing(scene)
        asked = {"query": "counts", "by": "somebody", "target": "/s"}
        actions = scene.send(SavepointRequested, **asked, stop=True)
        savepoint = only(actions, TakeSavepoint)
        assert (scene.query().state, copy(scene), moving(scene)) == ("StopWithSavepoint", None, set())
        assert scene.done(first) == ()
        scene.fail(savepoint)
        assert scene.query().state == "Executing"
        scene.batches(900, 312, 312, partitions=2)
        assert only(scene.until_rescale(), PrepareMove).partitions == 4

    def test_a_savepoint_alone_changes_nothing(self, scene: Scene) -> None:
        order = preparing(scene)
        asked = {"query": "counts", "by": "somebody", "target": "/s"}
        only(scene.send(SavepointRequested, **asked), TakeSavepoint)
        assert copy(scene) == (4, scene.now)
        assert only(scene.done(order), Rescale).partitions == 4

    def test_another_run_knows_of_no_copy(self, scene: Scene) -> None:
        first = preparing(scene)
        scene.submit(PREPARED, run="r2")
        assert copy(scene) is None
        assert scene.done(first) == ()

    def test_a_start_that_nobody_has_ordered_lets_it_be_copied_again(self, scene: Scene) -> None:
        preparing(scene)
        again = scene.send(QueryStarted, query="counts", run="r1", partitions=2)
        assert copies(again) == [("counts", 4)]
        assert reasons(again) == ["rescaled_again"]

    def test_one_with_another_count_drops_it_until_a_micro_batch_has_run(self, scene: Scene) -> None:
        preparing(scene)
        actions = scene.send(QueryStarted, query="counts", run="r1", partitions=3)
        assert copies(actions) == [("counts", 3)]
        assert (copy(scene), scene.query().partitions) == (None, 3)


# In which state a query is after an event, and to which count its state is copied, if not to 4.
AFTER: dict[str, tuple[str, int | None]] = {
    "Snapshot": ("Finished", None),
    "ExecutorAdded": ("Executing", 5),
    "ExecutorRemoved": ("Executing", None),
    "ExecutorExcluded": ("Executing", None),
    "ExecutorDecommissioning": ("Executing", None),
    "QueryFailed": ("Failing", None),
    "QueryTerminated": ("Finished", None),
    "SavepointRequested": ("StopWithSavepoint", None),
    "CancelRequested": ("Canceling", None),
}


@pytest.mark.parametrize("kind", EVENT_TYPES, ids=lambda kind: kind.__name__)
def test_every_event_can_come_meanwhile(scene: Scene, kind: type[Event]) -> None:
    preparing(scene)
    scene.send(kind, **fields(kind, scene))
    state, count = AFTER.get(kind.__name__, ("Executing", 4))
    found = scene.query().preparing
    assert (scene.query().state, None if found is None else found.partitions) == (state, count)


class TestPatience:
    """A copy counts as a move, as long as others wait for it."""

    def two(self, stage: Stage, **settings: object) -> Scene:
        scene = stage(**AT_ONCE, max_concurrent_rescales=1, **settings)
        scene.start(2)
        for query, batch_ms in (("a", 300), ("b", 900)):
            scene.running(2, evolve(PREPARED, query=query, name=query))
            scene.batches(2_000, batch_ms, batch_ms, partitions=2, query=query)
        return scene

    def test_one_query_copies_and_the_other_waits(self, stage: Stage) -> None:
        scene = self.two(stage)
        actions = scene.executor("1", cores=2)
        assert copies(actions) == [("b", 4)]
        assert reasons(actions) == ["rescale_always", "rescale_queued"]
        assert copies(scene.batches(300, 300, partitions=2, query="a")) == []
        assert copies(scene.copied()) == [], "the switch is part of the move"
        assert moving(scene) == {"b"}
        actions = scene.rescaled(took_ms=100, prepared=True)
        assert copies(actions) == [("a", 4)]
        assert moving(scene) == {"a"}

    def test_however_the_first_copy_ends_the_other_begins(self, stage: Stage) -> None:
        scene = self.two(stage, restart=FixedDelay(attempts=9, delay_ms=60_000))
        scene.executor("1", cores=2)
        assert copies(scene.run_fails(query="b")) == [("a", 4)]

    def test_after_ten_minutes_the_other_no_longer_waits(self, stage: Stage) -> None:
        scene = self.two(stage)
        first = only(scene.executor("1", cores=2), PrepareMove)
        actions = scene.advance(PATIENCE_MS)
        assert copies(actions) == [("a", 4)]
        unfinished = next(one for one in decisions(actions) if one.reason == "rescale_unfinished")
        assert (unfinished.query, unfinished.before, unfinished.after) == ("b", 2, 4)
        assert copy(scene, "b") is not None
        assert moving(scene) == {"a"}
        # It is switched over nevertheless, and does not count any more.
        assert only(scene.done(first, took_ms=PATIENCE_MS), Rescale).query == "b"
        assert (scene.query("b").state, moving(scene)) == ("Restarting", {"a"})
        scene.rescaled(took_ms=100, prepared=True)
        assert (scene.query("b").partitions, moving(scene)) == (4, {"a"})

    def test_a_copy_that_is_dropped_makes_room(self, stage: Stage) -> None:
        scene = self.two(stage)
        scene.executor("1", cores=2)
        scene.send(ExecutorRemoved, executor="1")
        assert (copy(scene, "a"), copy(scene, "b"), moving(scene)) == (None, None, set())


class TestCost:
    """What a prepared move costs: its pause, and what the copy takes from micro-batches."""

    def test_both_are_counted_apart_and_together(self, scene: Scene) -> None:
        order = preparing(scene)
        # 88 ms and 188 ms more than the usual 312 ms; a faster one makes up for nothing.
        scene.batches(400, 500, 200, partitions=2)
        scene.done(order, took_ms=4_000)
        scene.batches(322, partitions=2)
        (decision,) = decisions(scene.rescaled(took_ms=250, prepared=True))
        numbers = decision.numbers
        assert (numbers["took_ms"], numbers["copy_ms"], numbers["slowdown_ms"]) == (250, 4_000, 286)
        scene.advance(30_000)
        scene.batches(900, 250, 250, partitions=4)
        (decision,) = decisions(scene.lose("1"))
        numbers = decision.numbers
        assert (numbers["cost_ms"], numbers["pause_ms"], numbers["slowdown_ms"]) == (536, 250, 286)

    def test_policies_hear_of_the_pause_alone_and_of_no_batch_beside_the_copy(self, stage: Stage) -> None:
        scene = stage(**AT_ONCE, mode="adaptive", policy=("autoscale",), max_executors=2)
        scene.start(2, 2)
        scene.running(2, evolve(PREPARED, trigger_ms=10_000))
        bounds = {"shuffle": (4, 8)}
        scene.batches(312, 312, 312, partitions=2)
        scene.send(RequirementsRequested, query="counts", bounds=bounds, by="somebody")
        scene.batches(312, partitions=2)
        memory = scene.scheduler._planner._memories["counts"]
        assert copy(scene) is not None
        scene.batches(900, 900, partitions=2)
        assert [sample.steady for sample in memory.samples] == [True] * 3 + [False] * 3
        scene.copied()
        scene.rescaled(took_ms=250, prepared=True)
        assert memory.pauses_ms == (250,)

    def test_a_copy_that_was_replaced_is_part_of_it(self, scene: Scene) -> None:
        preparing(scene)
        scene.batches(412, partitions=2)
        scene.executor("2", cores=2)
        scene.batches(332, partitions=2)
        scene.copied()
        (decision,) = decisions(scene.rescaled(took_ms=250, prepared=True))
        assert decision.numbers["slowdown_ms"] == 120

    def test_batches_beside_a_copy_are_not_measured(self, scene: Scene) -> None:
        order = preparing(scene)
        known = scene.query().points
        scene.batches(2_000, 2_000, partitions=2)
        scene.done(order)
        scene.batches(2_000, partitions=2)
        assert scene.query().points == known
        scene.rescaled(took_ms=100, prepared=True)
        scene.batches(900, 250, partitions=4)
        assert [(point.partitions, point.durations_ms) for point in scene.query().points] == [
            (2, (312, 312, 312)),
            (4, (250,)),
        ]

    def test_nor_is_the_one_during_which_it_was_dropped(self, scene: Scene) -> None:
        preparing(scene)
        known = scene.query().points
        scene.lose("1")
        scene.batches(2_000, partitions=2)
        assert scene.query().points == known
        scene.batches(300, partitions=2)
        assert scene.query().points[-1].durations_ms == (312, 312, 312, 300)

    def test_without_a_measured_batch_nothing_counts_as_slower(self, stage: Stage) -> None:
        scene = stage(**AT_ONCE)
        scene.start(2)
        scene.running(2, PREPARED)
        scene.executor("1", cores=2)
        scene.batches(5_000, partitions=2)
        scene.copied()
        (decision,) = decisions(scene.rescaled(took_ms=250, prepared=True))
        assert decision.numbers["slowdown_ms"] == 0

    def test_a_move_in_a_pause_and_a_prepared_one_are_not_compared(self, stage: Stage) -> None:
        scene = stage()
        running(scene)
        never = {"counts": {"adaptiveScheduler.prepareMoves": "false"}}
        scene.send(PolicyFileChanged, path="p", settings=never)
        scene.executor("1", cores=2)
        scene.until_rescale()
        scene.rescaled(took_ms=21_000)
        scene.advance(30_000)
        scene.batches(900, 250, 250, partitions=4)
        assert decisions(scene.lose("1"))[0].numbers["cost_ms"] == 21_000
        scene.send(PolicyFileChanged, path="p")
        assert decisions(scene.executor("2", cores=4))[-1].numbers["cost_ms"] == SWITCH_COST_MS


def goes_on(
    scene: Scene, run_state: RunState, partitions: int = 2, failure: Failure | None = None
) -> tuple[Action, ...]:
    """Let another policy process continue with the saved state, and see the query in a snapshot."""
    scene.scheduler = Scheduler.restore(json.loads(json.dumps(scene.scheduler.save())))
    info = QueryInfo(facts=PREPARED, run="r1", run_state=run_state, partitions=partitions, failure=failure)
    executors = [executor.cores for executor in scene.scheduler.slots.executors.values()]
    return scene.start(*executors, queries=[info])


class TestRecovered:
    """Another policy process goes on while the state is copied."""

    def test_the_same_copy_is_ordered_again(self) -> None:
        scene = Scene()
        first = preparing(scene)
        scene.batches(412, partitions=2)
        actions = goes_on(scene, "running")
        again = only(actions, PrepareMove)
        assert (again.partitions, again.tasks) == (4, 2)
        assert "rescaled_again" in reasons(actions)
        assert copy(scene) == (4, scene.now)
        assert moving(scene) == {"counts"}
        assert scene.done(first, took_ms=4_000) == (), "nothing waits for the order of the dead process"
        assert only(scene.done(again, took_ms=10), Rescale).partitions == 4
        (decision,) = decisions(scene.rescaled(took_ms=100, prepared=True))
        assert decision.numbers["slowdown_ms"] == 100
        scene.scheduler.validate()

    def test_so_is_the_switch(self) -> None:
        scene = Scene()
        scene.done(preparing(scene), took_ms=4_000)
        again = only(goes_on(scene, "running"), Rescale)
        assert again.partitions == 4
        (decision,) = decisions(scene.done(again, took_ms=100, prepared=True))
        assert (decision.reason, decision.numbers["copy_ms"]) == ("rescaled_prepared", 4_000)
        assert scene.query().history[0].prepared_ms == 4_000

    def test_a_switch_that_nobody_has_heard_of_is_through(self) -> None:
        scene = Scene()
        scene.done(preparing(scene), took_ms=4_000)
        assert "rescaled_unheard" in reasons(goes_on(scene, "running", partitions=4))
        assert (scene.query().state, scene.query().partitions) == ("Executing", 4)

    def test_a_failure_that_was_missed_gives_it_up(self) -> None:
        scene = Scene(CoreSettings(restart=FixedDelay(attempts=9, delay_ms=1_000)))
        preparing(scene)
        goes_on(scene, "failed", failure=Failure(error="disk full", causes=TASK_FAILED))
        assert (scene.query().state, copy(scene), moving(scene)) == ("Restarting", None, set())
        scene.scheduler.validate()

    def test_other_slots_by_then_are_followed(self) -> None:
        scene = Scene()
        preparing(scene)
        scene.scheduler = Scheduler.restore(scene.scheduler.save())
        info = QueryInfo(facts=PREPARED, run="r1", run_state="running", partitions=2)
        assert copies(scene.start(2, 4, queries=[info])) == [("counts", 4), ("counts", 6)]
        assert copy(scene) == (6, scene.now)

    def test_a_copy_that_was_called_off_is_dropped_again(self) -> None:
        scene = Scene()
        preparing(scene)
        dropped = only(scene.lose("1"), PrepareMove)
        again = only(goes_on(scene, "running"), PrepareMove)
        assert dropped.partitions == again.partitions == 2
        assert (copy(scene), moving(scene)) == (None, set())
        assert scene.done(again, took_ms=0) == ()


def test_each_copy_ends_in_a_move(stage: Stage) -> None:
    scene = stage(**AT_ONCE)
    scene.start(1)
    scene.running(1, PREPARED)
    for count in (2, 3, 4):
        assert copies(scene.executor(str(count)) + scene.batches(300, partitions=count - 1)) == [
            ("counts", count)
        ]
        scene.copied()
        scene.rescaled(took_ms=100, prepared=True)
        scene.batches(300, partitions=count)
    assert scene.query().rescaled == 3
    assert [record.prepared_ms for record in scene.query().history] == [4_000, 4_000, 4_000, None]
