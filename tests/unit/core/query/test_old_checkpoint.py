"""Tests of starts from an existing checkpoint, and of queries that a new policy process finds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from attrs import evolve

from spark_elastic.core.actions import Action, DropOriginal, Rescale, StartQuery
from spark_elastic.core.events import ActionDone, ActionFailed, QueryInfo
from tests.unit.core.builder import OLD, STATEFUL, STATELESS, Scene, Stage, decisions, only, orders, reasons


def dropped(actions: Sequence[Action]) -> list[DropOriginal]:
    """Return the orders to delete an original."""
    return [action for action in actions if isinstance(action, DropOriginal)]


class TestOldCheckpoint:
    """A checkpoint that was written earlier: its count is changed where that pays."""

    def test_two_hundred_partitions_on_two_slots_are_moved(self, scene: Scene) -> None:
        scene.start(2)
        actions = scene.submit(OLD)
        start = only(actions, StartQuery)
        assert (start.partitions, start.rescalable) == (2, False)
        (decision,) = decisions(actions)
        assert decision.reason == "start_repartitioned"
        assert (decision.before, decision.after) == (200, 2)
        assert decision.numbers["before_ms"] == 8225.0
        assert decision.numbers["after_ms"] == 305.0
        assert decision.alternatives == (
            "1 partition: 430 ms per batch",
            "4 partitions: 385 ms per batch",
            "200 partitions: 8.2 s per batch",
        )

    def test_a_query_that_runs_once_is_not_running_yet(self, scene: Scene) -> None:
        scene.start(2)
        assert only(scene.submit(OLD, trigger="once", trigger_ms=0), StartQuery).partitions == 2

    def test_a_count_that_fits_is_left_alone(self, scene: Scene) -> None:
        scene.start(2)
        actions = scene.submit(OLD, checkpoint_partitions=2)
        assert only(actions, StartQuery).partitions is None
        assert reasons(actions) == ["start_checkpoint_same"]

    def test_what_does_not_pay_is_left_alone(self, scene: Scene) -> None:
        scene.start(2)
        actions = scene.submit(OLD, checkpoint_partitions=3, trigger="once", trigger_ms=0)
        assert only(actions, StartQuery).partitions is None
        assert reasons(actions) == ["start_checkpoint_kept"]

    def test_always_means_always(self, stage: Stage) -> None:
        scene = stage(rescale_policy="always")
        scene.start(2)
        assert only(scene.submit(OLD, checkpoint_partitions=3, trigger="once"), StartQuery).partitions == 2

    @pytest.mark.parametrize(
        ("change", "reason", "names"),
        [
            ({"provider": "hdfs"}, "no_repartition_unconverted", "stateStore.convert=atStart"),
            ({"provider": "hdfs", "provider_chosen": True}, "no_repartition_chosen", "settings name"),
            (
                {"provider": "hdfs", "provider_chosen": True, "store_needed": True},
                "no_repartition_needed",
                "which this query needs",
            ),
            ({"provider": "other"}, "no_repartition_provider", "needs state in RocksDB"),
            ({"global_state": True}, "no_repartition_global", "operator without keys"),
        ],
    )
    def test_what_cannot_be_moved_says_why_once(
        self, scene: Scene, change: dict[str, Any], reason: str, names: str
    ) -> None:
        scene.start(2)
        actions = scene.submit(OLD, **change)
        assert only(actions, StartQuery).partitions is None
        assert reasons(actions) == [reason]
        assert names in decisions(actions)[0].message
        scene.started(200)
        scene.advance(60_000)
        assert reasons(scene.executor("9") + scene.batches(900, 900, partitions=200)) == []

    def test_format_1_is_moved_as_it_is(self, scene: Scene) -> None:
        scene.start(2)
        start = only(scene.submit(OLD, checkpoint_format=1, provider_chosen=True), StartQuery)
        assert (start.partitions, start.rescalable) == (2, False)

    def test_where_the_last_batch_was_not_committed_the_state_is_moved_once_it_runs(
        self, scene: Scene
    ) -> None:
        scene.start(2)
        actions = scene.submit(OLD, pending=True)
        assert only(actions, StartQuery).partitions is None
        assert reasons(actions) == ["start_checkpoint_pending"]
        assert "must run before" in decisions(actions)[0].message
        scene.started(200)
        scene.advance(40_000)
        actions = scene.batches(8000, partitions=200)
        assert scene.query().target == 2
        scene.rescaled()
        assert reasons(scene.batches(300, 300, partitions=2)) == []

    def test_a_failed_move_goes_on_with_the_old_count_and_is_not_tried_again_at_once(
        self, scene: Scene
    ) -> None:
        scene.start(2)
        start = only(scene.submit(OLD), StartQuery)
        actions = scene.fail(start)
        assert reasons(actions) == ["start_failed"]
        assert "continuing with the previous count: no space left" in decisions(actions)[0].message
        scene.started(200)
        assert scene.query().partitions == 200
        assert scene.query().history[0].status == "failed"
        actions = scene.advance(45_000) + scene.batches(8000, 8000, 8000, partitions=200)
        assert orders(actions + scene.advance(14_000) + scene.batches(8000, partitions=200)) == []
        # Another slot is a new reason to try.
        scene.executor("1")
        scene.advance(11_000)
        scene.batch(8000, 200)
        assert scene.query().state == "Restarting"


HDFS: dict[str, Any] = {"provider": "hdfs", "checkpoint_format": 1}
DAY_MS = 86_400_000


class TestConversion:
    """A checkpoint in Spark's own store is converted when its query starts, if the settings say so."""

    @pytest.mark.parametrize("pending", [False, True])
    @pytest.mark.parametrize(("before", "after"), [(200, 2), (2, 2), (1, 2)])
    def test_it_gets_the_form_and_the_count_of_a_new_one(
        self, stage: Stage, before: int, after: int, pending: bool
    ) -> None:
        scene = stage(convert="atStart")
        scene.start(2)
        actions = scene.submit(OLD, checkpoint_partitions=before, pending=pending, **HDFS)
        start = only(actions, StartQuery)
        assert (start.partitions, start.rescalable) == (after, True)
        assert reasons(actions) == ["start_converted"]
        scene.send(ActionDone, action=start.id, query="counts", took_ms=900)
        scene.started(after)
        # It is moved as others are, later: its state is copied first.
        scene.batches(8000, 8000, partitions=after)
        scene.executor("1", cores=6)
        scene.advance(60_000)
        scene.batches(8000, partitions=after)
        assert only(scene.copied(), Rescale).partitions == 8

    def test_format_1_becomes_format_2(self, stage: Stage) -> None:
        scene = stage(convert="atStart")
        scene.start(2)
        assert only(scene.submit(OLD, checkpoint_format=1), StartQuery).rescalable

    @pytest.mark.parametrize(
        "facts",
        [
            {**HDFS, "provider_chosen": True},
            {**HDFS, "global_state": True},
            {**HDFS, "moves_state": False},
            {"provider": "other", "checkpoint_format": 1},
            {"provider": "rocksdb", "checkpoint_format": 2},
        ],
    )
    def test_nothing_else_is_converted(self, stage: Stage, facts: dict[str, Any]) -> None:
        scene = stage(convert="atStart")
        scene.start(2)
        assert not only(scene.submit(OLD, **facts), StartQuery).rescalable

    @pytest.mark.parametrize("settings", [{"convert": "never"}, {"convert": "atStart", "advise_only": True}])
    def test_nothing_is_converted_against_the_settings(self, stage: Stage, settings: dict[str, Any]) -> None:
        scene = stage(**settings)
        scene.start(2)
        start = only(scene.submit(OLD, **HDFS), StartQuery)
        assert (start.partitions, start.rescalable) == (None, False)

    def test_where_it_fails_the_query_goes_on_as_it_was(self, stage: Stage) -> None:
        scene = stage(convert="atStart")
        scene.start(2)
        start = only(scene.submit(OLD, **HDFS), StartQuery)
        assert reasons(scene.fail(start)) == ["start_failed"]
        scene.started(200)
        scene.executor("1", cores=6)
        actions = scene.advance(600_000) + scene.batches(8000, 8000, partitions=200)
        assert orders(actions) == []
        assert scene.query().provider == "hdfs"
        assert not [a for a in scene.advance(2 * DAY_MS) if isinstance(a, DropOriginal)]

    def test_the_original_is_deleted_once_it_was_kept_long_enough(self, stage: Stage) -> None:
        scene = stage(convert="atStart")
        scene.start(2)
        start = only(scene.submit(OLD, **HDFS), StartQuery)
        scene.send(ActionDone, action=start.id, query="counts", took_ms=900)
        scene.started(2)
        # Its time begins with the first micro-batch of the converted state.
        assert not dropped(scene.advance(3 * DAY_MS))
        scene.batch(800, partitions=2)
        assert not dropped(scene.advance(DAY_MS - 1_000))
        actions = scene.advance(1_000)
        (order,) = dropped(actions)
        assert "original_dropped" in reasons(actions)
        scene.send(ActionFailed, action=order.id, query="counts", error="no such disk")
        assert "original_not_dropped" in reasons(scene.actions)
        scene.batch(800, partitions=2)
        assert not dropped(scene.advance(DAY_MS))

    def test_one_from_an_earlier_start_is_deleted_as_soon_as_the_query_runs(self, stage: Stage) -> None:
        scene = stage(keep_original_ms=60_000)
        scene.start(2)
        scene.submit(OLD, original_since=scene.now - 90_000)
        assert not dropped(scene.advance(1_000))
        assert len(dropped(scene.started(2))) == 1

    def test_one_from_an_earlier_start_is_kept_until_its_time_is_over(self, stage: Stage) -> None:
        scene = stage(keep_original_ms=60_000)
        scene.start(2)
        scene.submit(OLD, original_since=scene.now - 50_000)
        assert not dropped(scene.started(2))
        assert not dropped(scene.advance(9_000))
        assert len(dropped(scene.advance(1_000))) == 1

    @pytest.mark.parametrize("keep_ms", [0, 60_000])
    def test_none_is_deleted_before_the_converted_state_has_committed_a_micro_batch(
        self, stage: Stage, keep_ms: int
    ) -> None:
        scene = stage(keep_original_ms=keep_ms)
        scene.start(2)
        scene.submit(OLD, original_since=0)
        scene.started(2)
        assert not dropped(scene.advance(DAY_MS))
        scene.batch(800, partitions=200)
        scene.advance(60_000)
        assert len(dropped(scene.actions)) == 1


class TestRestartedPolicy:
    """A policy process that starts over and reads the state of the world from the snapshot."""

    def test_running_queries_go_on_untouched(self, scene: Scene) -> None:
        info = QueryInfo(facts=STATEFUL, run="r1", run_state="running", partitions=2)
        actions = scene.start(2, queries=[info])
        assert orders(actions)[1:] == []
        assert reasons(actions) == ["adopted"]
        assert scene.query().state == "Executing"

    def test_a_running_query_is_rescaled_as_before(self, scene: Scene) -> None:
        facts = evolve(STATEFUL, pending=True)
        scene.start(2, queries=[QueryInfo(facts=facts, run="r1", run_state="running", partitions=2)])
        scene.batch(300, 2)
        scene.executor("1", cores=2)
        scene.advance(40_000)
        scene.batch(300, 2)
        assert scene.query().state == "Restarting"

    def test_held_queries_get_an_answer(self, scene: Scene) -> None:
        actions = scene.start(2, queries=[QueryInfo(facts=STATEFUL, run="r1", run_state="held")])
        assert only(actions, StartQuery).partitions == 2
        # The question itself may still be on its way.
        assert orders(scene.submit()) == []

    def test_a_running_query_without_a_known_count(self, scene: Scene) -> None:
        scene.start(2, queries=[QueryInfo(facts=STATELESS, run="r1", run_state="running")])
        assert scene.query("enrich").target == 2
