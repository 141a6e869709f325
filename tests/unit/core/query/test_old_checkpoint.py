"""Tests of starts from an existing checkpoint, and of queries that a new policy process finds."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from spark_elastic.core.actions import StartQuery
from spark_elastic.core.events import (
    QueryInfo,
)
from tests.unit.core.builder import OLD, STATEFUL, STATELESS, Scene, Stage, decisions, only, orders, reasons


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
            ({"provider": "hdfs"}, "no_repartition_provider", "stateStore.providerClass"),
            ({"checkpoint_format": 1}, "no_repartition_format", "checkpointFormatVersion=2"),
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
