"""Tests of the first start of a query: its number of partitions, and what it waits for."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from spark_elastic.core.actions import Configure, FailQuery, HoldQuery, Rescale, StartQuery
from spark_elastic.core.events import (
    ExecutorInfo,
    Failure,
    QueryEvent,
    QueryFacts,
    QueryFailed,
    QueryInfo,
    QueryStarted,
    QueryTerminated,
)
from spark_elastic.core.failures.strategy import FixedDelay
from tests.unit.core.builder import OLD, STATEFUL, STATELESS, Scene, Stage, decisions, only, orders, reasons

PLAIN = evolve(STATEFUL, provider="hdfs", checkpoint_format=1)
"""The windowed count with Spark's own settings for a new checkpoint."""


def test_the_answer_to_a_snapshot_is_the_configuration(stage: Stage) -> None:
    limits = {"warm_up_ms": 2000, "start_wait_ms": 9000}
    scene = stage(**limits, decision_wait_ms=300, restart=FixedDelay())
    (action,) = scene.start(2)
    assert action == Configure(
        id="a1", cause="s1", **limits, decision_wait_ms=300, restarts=True, batch_stages=False,
        mode="reactive",
    )  # fmt: skip


def test_the_configuration_says_in_words_how_the_application_is_scaled(stage: Stage) -> None:
    scene = stage(mode="adaptive", policy=("schedule", "autoscale"), advise_only=True)
    assert only(scene.start(2), Configure).mode == "adaptive with policy schedule,autoscale, advice only"


def test_executors_are_not_warmed_up_for_advice(stage: Stage) -> None:
    assert only(stage(warm_up_ms=2000, advise_only=True).start(2), Configure).warm_up_ms == 0


def test_runs_that_fail_are_asked_about_only_where_they_may_be_started_again(stage: Stage) -> None:
    assert not only(stage().start(2), Configure).restarts
    assert not only(stage(restart=FixedDelay(), advise_only=True).start(2), Configure).restarts


def test_a_new_stateful_query_gets_one_partition_per_slot_and_a_rescalable_checkpoint(scene: Scene) -> None:
    scene.start(2)
    actions = scene.submit()
    (start,) = orders(actions)
    assert start == StartQuery(
        id=start.id, cause="s2", query="counts", run="r1", partitions=2, rescalable=True
    )
    assert reasons(actions) == ["start_per_slot"]
    assert "Start with 2 partitions on 2 slots" in decisions(actions)[0].message
    scene.started(2)
    assert scene.query().state == "Executing"
    assert scene.query().partitions == 2


def test_a_stateless_query_gets_one_partition_per_slot(scene: Scene) -> None:
    scene.start(4)
    start = only(scene.submit(STATELESS), StartQuery)
    assert (start.partitions, start.rescalable) == (4, False)


def test_without_a_slot_the_query_is_held_and_told_what_it_waits_for(scene: Scene) -> None:
    scene.start()
    actions = scene.submit()
    hold = only(actions, HoldQuery)
    assert hold.message == "Waiting for resources (no time limit): 0 of 1 slot available."
    assert decisions(actions)[0].until is None
    scene.advance(3_600_000)
    assert scene.query().state == "WaitingForResources"
    assert orders(scene.executor("0", cores=2))[0] == only(scene.log[-1][1], StartQuery)
    assert scene.query().state == "CreatingExecutionGraph"


def test_a_limited_wait_ends_with_an_exception_that_says_what_it_was_for(stage: Stage) -> None:
    scene = stage(resource_wait_ms=300_000)
    scene.start()
    actions = scene.submit()
    assert "at most 5 min" in only(actions, HoldQuery).message
    assert decisions(actions)[0].until == scene.now + 300_000
    assert orders(scene.advance(299_999)) == []
    actions = scene.advance(1)
    assert reasons(actions) == ["failure_no_resources"]
    assert only(actions, FailQuery).message == (
        "Failed: needs 1 slot, has 0 after 5 min. Add executors, or raise "
        "spark.elastic.adaptiveScheduler.submission.resourceWaitTimeout (5 min)."
    )
    assert scene.query().state == "Failing"


def test_a_limited_wait_that_brings_a_slot_is_a_start_like_any_other(stage: Stage) -> None:
    scene = stage(resource_wait_ms=300_000, submission_stabilization_ms=600_000)
    scene.start()
    scene.submit()
    scene.executor("0", cores=3)
    assert only(scene.advance(300_000), StartQuery).partitions == 3


def test_after_a_failure_the_wait_is_limited_as_well(stage: Stage) -> None:
    scene = stage(resource_wait_ms=60_000, restart=FixedDelay(attempts=9, delay_ms=1_000))
    scene.start(2)
    scene.running(2)
    scene.run_fails()
    scene.lose("0")
    assert orders(scene.advance(60_999)) == [scene.last_order("HoldQuery")]
    assert "has 0" in str(only(scene.advance(1), FailQuery).message)


def test_no_wait_at_all_starts_at_once_or_fails(stage: Stage) -> None:
    scene = stage(resource_wait_ms=0)
    scene.start()
    assert [type(action) for action in orders(scene.submit())] == [FailQuery]
    other = stage(resource_wait_ms=0)
    other.start(1)
    assert [type(action) for action in orders(other.submit())] == [StartQuery]


def test_who_only_advises_lets_no_query_fail_for_its_slots(stage: Stage) -> None:
    scene = stage(resource_wait_ms=0, advise_only=True)
    scene.start()
    actions = scene.submit()
    assert [type(action) for action in orders(actions)] == [StartQuery]
    assert "start_without_resources" in reasons(actions)


def test_a_stabilization_before_the_start_waits_for_more_slots(stage: Stage) -> None:
    scene = stage(submission_stabilization_ms=10_000)
    scene.start(1)
    assert "Waiting up to 10 s for more than 1 slot" in only(scene.submit(), HoldQuery).message
    scene.advance(4_000)
    assert [type(action) for action in orders(scene.executor("1"))] == [HoldQuery]
    assert only(scene.advance(6_000), StartQuery).partitions == 2


def test_slots_are_counted_by_the_cpus_of_a_task(scene: Scene) -> None:
    scene.start(4, 3, spark_task_cpus="2")
    assert only(scene.submit(), StartQuery).partitions == 3


def test_slots_are_counted_by_the_gpus_of_a_task(scene: Scene) -> None:
    scene.start(4, 1, spark_executor_resource_gpu_amount="1", spark_task_resource_gpu_amount="0.5")
    assert only(scene.submit(), StartQuery).partitions == 3


def test_excluded_and_decommissioning_executors_do_not_count(scene: Scene) -> None:
    executors = [
        ExecutorInfo(executor="0", host="h", cores=2),
        ExecutorInfo(executor="1", host="h", cores=2, excluded=True),
        ExecutorInfo(executor="2", host="h", cores=2, decommissioning=True),
    ]
    from spark_elastic.core.events import Snapshot
    from tests.unit.core.builder import snapshot

    scene.send(Snapshot, **snapshot(executors))
    assert only(scene.submit(), StartQuery).partitions == 2


@pytest.mark.parametrize(
    ("change", "settings"),
    [
        ({"provider_chosen": True}, {}),
        ({"stateful": False, "in_place": True}, {}),
        ({}, {"state_store": "unchanged"}),
        ({"checkpoint_partitions": 2}, {}),
        ({"trigger": "real_time"}, {}),
        ({"global_state": True}, {}),
    ],
)
def test_a_checkpoint_is_made_rescalable_only_where_that_is_ours_to_do(
    stage: Stage, change: dict[str, Any], settings: dict[str, Any]
) -> None:
    scene = stage(**settings)
    scene.start(2)
    assert only(scene.submit(STATEFUL, **change), StartQuery).rescalable is False


class TestExplicit:
    """The meaning of the user's own spark.sql.shuffle.partitions."""

    def test_ignored_by_default_and_said_once(self, scene: Scene) -> None:
        scene.start(2)
        actions = scene.submit(explicit_partitions=64, session_partitions=64)
        assert only(actions, StartQuery).partitions == 2
        assert "explicit_ignored" in reasons(actions)

    def test_an_upper_bound(self, stage: Stage) -> None:
        scene = stage(explicit_parallelism="upperBound")
        scene.start(8)
        actions = scene.submit(explicit_partitions=4)
        assert only(actions, StartQuery).partitions == 4
        assert reasons(actions) == ["start_bounded"]
        assert "as an upper bound, allows no more" in decisions(actions)[0].message

    def test_an_upper_bound_above_the_slots(self, stage: Stage) -> None:
        scene = stage(explicit_parallelism="upperBound")
        scene.start(2)
        assert only(scene.submit(explicit_partitions=64), StartQuery).partitions == 2

    @pytest.mark.parametrize("facts", [STATEFUL, STATELESS, OLD])
    def test_fixed_is_never_touched(self, stage: Stage, facts: Any) -> None:
        scene = stage(explicit_parallelism="fixed")
        scene.start(2)
        actions = scene.submit(facts, explicit_partitions=64)
        assert only(actions, StartQuery).partitions is None
        assert reasons(actions) == ["untouched_fixed"]
        scene.started(64, facts.query)
        scene.advance(60_000)
        assert orders(scene.executor("9", cores=8) + scene.advance(60_000)) == []

    def test_the_default_of_the_session_is_nobodys_choice(self, stage: Stage) -> None:
        scene = stage(explicit_parallelism="fixed")
        scene.start(2)
        assert only(scene.submit(), StartQuery).partitions == 2


@pytest.mark.parametrize(("facts", "rescalable"), [(PLAIN, True), (STATELESS, False), (OLD, False)])
def test_a_query_that_is_held_first_hears_the_same_of_its_checkpoint_twice(
    scene: Scene, facts: QueryFacts, rescalable: bool
) -> None:
    scene.start()
    assert only(scene.submit(facts), HoldQuery).rescalable is rescalable
    assert only(scene.executor("0", cores=2), StartQuery).rescalable is rescalable


def test_a_query_that_was_held_first_can_be_rescaled_once_it_runs(stage: Stage) -> None:
    scene = stage(rescale_policy="always")
    scene.start()
    scene.submit(PLAIN)
    scene.executor("0", cores=2)
    scene.started(2)
    scene.batches(300, partitions=2)
    scene.executor("1", cores=2)
    scene.until_rescale()
    assert only(scene.copied(), Rescale).partitions == 4


@pytest.mark.parametrize("is_ordered", [True, False])
def test_one_that_was_let_run_as_it_was_has_the_checkpoint_of_its_session(
    stage: Stage, is_ordered: bool
) -> None:
    scene = stage(rescale_policy="always")
    scene.start(*([2] if is_ordered else []))
    scene.submit(PLAIN)
    # The shim started the query after its timeout; a hold or a start that arrives later changes nothing.
    scene.send(QueryStarted, query="counts", run="r1", partitions=200)
    late = scene.last_order("StartQuery" if is_ordered else "HoldQuery")
    assert late is not None
    scene.fail(late, "query counts runs, it waits for no answer")
    actions = scene.batches(300, 300, partitions=200) + scene.executor("1", cores=8) + scene.advance(600_000)
    assert orders(actions) == []
    assert "no_repartition_unconverted" in reasons(scene.actions)


def test_the_maximum_of_the_settings_holds(stage: Stage) -> None:
    scene = stage(max_parallelism=3)
    scene.start(8)
    actions = scene.submit()
    assert only(actions, StartQuery).partitions == 3
    assert "spark.elastic.maxParallelism allows no more" in decisions(actions)[0].message


@pytest.mark.parametrize("trigger", ["continuous", "real_time"])
def test_queries_without_micro_batches_are_left_alone(scene: Scene, trigger: Any) -> None:
    scene.start(2)
    actions = scene.submit(trigger=trigger)
    assert only(actions, StartQuery).partitions is None
    assert reasons(actions) == ["untouched_trigger"]


def test_a_query_that_was_started_without_an_answer_is_taken_as_it_is(scene: Scene) -> None:
    scene.start()
    scene.submit()
    actions = scene.started(200)
    assert reasons(actions) == ["started_unasked"]
    assert scene.query().state == "Executing"


def test_the_start_may_bring_another_count_than_ordered(scene: Scene) -> None:
    scene.start(2)
    scene.submit(OLD)
    scene.started(200)
    assert scene.query().partitions == 200
    assert scene.query().history[0].reason == "exception_occurred"


def test_an_unknown_count_is_taken_from_what_is_known(scene: Scene) -> None:
    scene.start(2)
    scene.submit()
    scene.started(0)
    scene.batches(300, 300, partitions=0)
    assert scene.query().partitions == 200


def test_a_second_snapshot_keeps_what_holds_and_drops_what_does_not(scene: Scene) -> None:
    scene.start(2)
    scene.running(2)
    scene.running(2, STATELESS)
    kept = QueryInfo(facts=STATEFUL, run="r1", run_state="running", partitions=2)
    actions = scene.start(2, queries=[kept])
    assert reasons(actions) == ["superseded"]
    assert scene.query().state == "Executing"
    assert scene.query("enrich").state == "Finished"


def test_a_query_that_is_submitted_again_begins_anew(scene: Scene) -> None:
    scene.start(2)
    scene.running(2)
    scene.terminated()
    actions = scene.submit(OLD, run="r2", checkpoint_partitions=2)
    assert reasons(actions) == ["start_checkpoint_same"]
    assert scene.query().run == "r2"


def test_a_new_run_ends_the_old_one(scene: Scene) -> None:
    scene.start(2)
    scene.running(2)
    actions = scene.submit(run="r2")
    assert reasons(actions) == ["superseded", "start_per_slot"]


@pytest.mark.parametrize("kind", [QueryTerminated, QueryFailed])
def test_the_late_end_of_an_old_run_is_not_that_of_the_new_one(scene: Scene, kind: type[QueryEvent]) -> None:
    scene.start(2)
    scene.running(2)
    scene.submit(run="r2")
    fields = {"failure": Failure(error="disk full")} if kind is QueryFailed else {}
    assert scene.send(kind, query="counts", run="r1", **fields) == ()
    scene.started(2, run="r2")
    assert scene.query().state == "Executing"


def test_a_repeated_question_while_it_waits_is_answered_again(scene: Scene) -> None:
    scene.start()
    scene.submit()
    assert [type(action) for action in orders(scene.submit())] == [HoldQuery]
