"""Tests of a restored scheduler that meets a snapshot: what continues, is repeated, or was missed."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from attrs import evolve

from spark_elastic.core import actions as ac
from spark_elastic.core import events as ev
from spark_elastic.core.actions import Action
from spark_elastic.core.failures.poison import IO_PATIENCE_MS
from spark_elastic.core.failures.strategy import FixedDelay
from spark_elastic.core.scheduler import Scheduler
from tests.unit.core.builder import (
    STATEFUL,
    STATELESS,
    TASK_FAILED,
    Scene,
    Stage,
    matches,
    only,
    orders,
    reasons,
)
from tests.unit.core.query.reached import creating, executing, restarting, waiting

QUERY = {"query": "counts", "run": "r1"}
DISK_FULL = ev.Failure(error="disk full", offsets="[7]", causes=TASK_FAILED)


def goes_on(
    scene: Scene,
    run_state: ev.RunState,
    partitions: int | None = None,
    failure: ev.Failure | None = None,
    facts: ev.QueryFacts = STATEFUL,
    gap_ms: int = 700,
) -> list[Action]:
    """Replace the scheduler by a restored one, send it the snapshot, and return its orders."""
    scene.scheduler = Scheduler.restore(json.loads(json.dumps(scene.scheduler.save())))
    scene.timers.clear()
    scene.now += gap_ms
    info = ev.QueryInfo(facts=facts, run="r1", run_state=run_state, partitions=partitions, failure=failure)
    executors = [info.cores for info in scene.scheduler.slots.executors.values()]
    return orders(scene.start(*executors, queries=[info]))[1:]


def backing_off(scene: Scene) -> None:
    executing(scene)
    scene.run_fails()


def after_the_backoff(scene: Scene) -> None:
    backing_off(scene)
    scene.advance(1_000)


def failing(scene: Scene) -> None:
    executing(scene)
    scene.run_fails(causes=("org.apache.spark.sql.AnalysisException",))


def canceling(scene: Scene) -> None:
    executing(scene)
    scene.send(ev.CancelRequested, query="counts", by="somebody")


def saving(scene: Scene) -> None:
    executing(scene)
    scene.send(ev.SavepointRequested, query="counts", by="somebody", target="/s", stop=True)


def saved(scene: Scene) -> None:
    saving(scene)
    order = scene.last_order("TakeSavepoint")
    assert order is not None
    taken = {"path": "/s/savepoint-7", "batch": 7, "bytes": 1}
    scene.send(ev.SavepointTaken, **QUERY, action=order.id, **taken)


ANALYSIS = evolve(DISK_FULL, causes=("org.apache.spark.sql.AnalysisException",))
OTHER = evolve(DISK_FULL, error="no route to host")


@pytest.mark.parametrize(
    ("story", "run_state", "partitions", "failure", "state", "ordered"),
    [
        (waiting, "held", None, None, "WaitingForResources", ["HoldQuery"]),
        (waiting, "running", 200, None, "Executing", []),
        (creating, "held", None, None, "CreatingExecutionGraph", ["StartQuery"]),
        (creating, "running", 200, None, "Executing", []),
        (creating, "running", 2, None, "Executing", []),
        (creating, "failed", None, DISK_FULL, "Restarting", ["HoldQuery"]),
        (executing, "running", 2, None, "Executing", []),
        (executing, "failed", 2, DISK_FULL, "Restarting", ["HoldQuery"]),
        (restarting, "running", 2, None, "Restarting", ["Rescale"]),
        (restarting, "running", 4, None, "Executing", []),
        (restarting, "failed", 2, DISK_FULL, "Restarting", ["HoldQuery"]),
        (restarting, "failed", 4, DISK_FULL, "Restarting", ["HoldQuery"]),
        (saving, "running", 2, None, "StopWithSavepoint", ["TakeSavepoint"]),
        (saving, "failed", 2, DISK_FULL, "StopWithSavepoint", ["HoldQuery", "TakeSavepoint"]),
        (saved, "running", 2, None, "StopWithSavepoint", ["CancelQuery"]),
        (saved, "failed", 2, DISK_FULL, "Restarting", ["HoldQuery"]),
        (backing_off, "running", 2, None, "Executing", []),
        (backing_off, "failed", 2, DISK_FULL, "Restarting", ["HoldQuery"]),
        (after_the_backoff, "failed", 2, DISK_FULL, "CreatingExecutionGraph", ["StartQuery"]),
        (after_the_backoff, "failed", 2, OTHER, "Restarting", ["HoldQuery"]),
        (failing, "failed", 2, ANALYSIS, "Failing", ["FailQuery"]),
        (canceling, "running", 2, None, "Canceling", ["CancelQuery"]),
        (canceling, "failed", 2, DISK_FULL, "Canceling", ["CancelQuery"]),
    ],
)
def test_what_a_snapshot_shows_is_followed(
    stage: Stage,
    story: Callable[[Scene], None],
    run_state: ev.RunState,
    partitions: int | None,
    failure: ev.Failure | None,
    state: str,
    ordered: list[str],
) -> None:
    scene = stage(restart=FixedDelay(attempts=3, delay_ms=1_000), rescale_policy="always")
    story(scene)
    history = scene.query().history
    found = goes_on(scene, run_state, partitions, failure)
    assert scene.query().state == state
    assert [type(order).__name__ for order in found] == ordered
    assert [record.number for record in scene.query().history][-len(history) :] == [
        record.number for record in history
    ]


def test_a_backoff_that_is_over_by_now_leads_to_the_start_at_once(stage: Stage) -> None:
    scene = stage(restart=FixedDelay(attempts=3, delay_ms=1_000))
    backing_off(scene)
    (start,) = goes_on(scene, "failed", 2, DISK_FULL, gap_ms=5_000)
    assert matches(start, ac.StartQuery, partitions=2)


def test_a_failure_that_was_judged_costs_no_second_attempt(stage: Stage) -> None:
    scene = stage(restart=FixedDelay(attempts=1, delay_ms=1_000))
    backing_off(scene)
    for _ in range(3):
        goes_on(scene, "failed", 2, DISK_FULL, gap_ms=10)
    scene.advance(1_000)
    scene.started(2)
    assert scene.query().restarted == 1
    assert len(scene.query().exceptions) == 1
    actions = scene.run_fails("no route to host")
    assert only(actions, ac.FailQuery)


def test_a_batch_that_failed_twice_before_is_poison_the_next_time(stage: Stage) -> None:
    scene = stage(restart=FixedDelay(attempts=9, delay_ms=1_000))
    backing_off(scene)
    scene.advance(1_000)
    scene.started(2)
    scene.run_fails()
    goes_on(scene, "failed", 2, DISK_FULL)
    scene.advance(1_000)
    scene.started(2)
    assert "failure_poison" in reasons(scene.run_fails())


def test_for_how_long_storage_may_have_been_away_outlives_the_policy_process(stage: Stage) -> None:
    scene = stage(restart=FixedDelay(attempts=9, delay_ms=1_000))
    executing(scene)
    scene.run_fails(of_io=True)
    goes_on(scene, "failed", 2, evolve(DISK_FULL, of_io=True))
    for wait_ms in (1_000, IO_PATIENCE_MS):
        scene.advance(1_000)
        scene.started(2)
        assert reasons(scene.run_fails(of_io=True))[0] == "failure_restart"
        scene.advance(wait_ms)
    scene.started(2)
    assert "failure_poison" in reasons(scene.run_fails(of_io=True))


def test_a_rescale_that_is_not_in_force_is_ordered_again(stage: Stage) -> None:
    scene = stage(rescale_policy="always")
    restarting(scene)
    first = scene.last_order("Rescale")
    assert first is not None
    (second,) = goes_on(scene, "running", 2)
    assert matches(second, ac.Rescale, partitions=4)
    assert "rescaled_again" in reasons(scene.log[-1][1])
    # The first order was pending all along: the shim answers it when the second one replaces it.
    assert scene.fail(first, "another one was ordered after it") == ()
    assert scene.query().state == "Restarting"
    assert reasons(scene.rescaled()) == ["rescaled"]
    assert (scene.query().state, scene.query().partitions) == ("Executing", 4)
    assert scene.query().history[0].reason == "succeeded"


def test_a_rescale_that_is_carried_out_before_it_is_ordered_again_is_counted_once(stage: Stage) -> None:
    scene = stage(rescale_policy="always")
    restarting(scene)
    first = scene.last_order("Rescale")
    assert first is not None
    (second,) = goes_on(scene, "running", 2)
    assert reasons(scene.done(first, took_ms=900)) == ["rescaled"]
    assert scene.query().state == "Restarting"
    assert reasons(scene.done(second, took_ms=0)) == []
    assert (scene.query().state, scene.query().partitions, scene.query().rescaled) == ("Executing", 4, 1)
    assert scene.query().history[0].reason == "succeeded"


def test_a_rescale_that_is_in_force_is_through(stage: Stage) -> None:
    scene = stage(rescale_policy="always")
    restarting(scene)
    first = scene.last_order("Rescale")
    assert first is not None
    assert goes_on(scene, "running", 4) == []
    assert "rescaled_unheard" in reasons(scene.log[-1][1])
    view = scene.query()
    assert (view.state, view.partitions, view.target, view.rescaled) == ("Executing", 4, None, 1)
    assert view.history[0].reason == "succeeded"
    # Outcomes reported before the snapshot may arrive again after it.
    assert scene.done(first, took_ms=900) == ()
    assert scene.query().rescaled == 1


def test_a_rescale_that_is_in_force_is_said_again_where_one_that_it_has_replaced_may_follow_it(
    stage: Stage,
) -> None:
    scene = stage(rescale_policy="always")
    restarting(scene)
    scene.lose("1")
    scene.executor("1", cores=2)
    assert scene.query().target == 4
    # The first order was carried out, the second waits for a micro-batch, and the third, back to 4, was lost.
    (again,) = goes_on(scene, "running", 4)
    assert matches(again, ac.Rescale, partitions=4)
    assert "rescale_called_off" in reasons(scene.log[-1][1])
    assert scene.query().state == "Restarting"
    scene.done(again, took_ms=0)
    assert (scene.query().state, scene.query().partitions, scene.query().rescaled) == ("Executing", 4, 1)


@pytest.mark.parametrize("in_force", [2, 4])
def test_a_rescale_that_was_called_off_is_off_only_when_that_is_heard(stage: Stage, in_force: int) -> None:
    scene = stage(rescale_policy="always")
    restarting(scene)
    scene.lose("1")
    assert scene.query().target == 2
    # Whether or not the shim carried out the first order, the second would move the state back.
    (again,) = goes_on(scene, "running", in_force)
    assert matches(again, ac.Rescale, partitions=in_force)
    assert scene.query().state == "Restarting"
    scene.rescaled(took_ms=0)
    assert (scene.query().state, scene.query().partitions) == ("Executing", in_force)


def test_a_rescale_that_fails_after_all_lets_the_query_run(stage: Stage) -> None:
    scene = stage(rescale_policy="always")
    restarting(scene)
    (second,) = goes_on(scene, "running", 2)
    # The outcome of the first order is unknown.
    assert "rescale_failed" in reasons(scene.fail(second))
    assert scene.query().state == "Executing"


def test_an_order_that_was_lost_is_not_waited_for_the_next_time(stage: Stage) -> None:
    scene = stage(rescale_policy="always")
    restarting(scene)
    goes_on(scene, "running", 2)
    scene.rescaled()
    scene.batches(300, partitions=4)
    scene.executor("2", cores=2)
    scene.until_rescale()
    order = scene.last_order("Rescale")
    assert order is not None
    scene.fail(order)
    assert scene.query().state == "Executing"


def test_a_query_that_was_moved_and_then_failed_starts_with_the_count_that_it_has(stage: Stage) -> None:
    scene = stage(rescale_policy="always", restart=FixedDelay(attempts=3, delay_ms=1_000))
    restarting(scene)
    goes_on(scene, "failed", 4, DISK_FULL)
    # Its last micro-batch was planned for 4 partitions and cannot run again with another count.
    assert only(scene.advance(1_000), ac.StartQuery).partitions == 4
    scene.started(4)
    assert scene.query().partitions == 4


def test_a_query_that_a_new_process_finds_failed_is_never_moved_by_its_start(stage: Stage) -> None:
    scene = stage(rescale_policy="always", restart=FixedDelay(attempts=3, delay_ms=1_000))
    facts = evolve(STATEFUL, checkpoint_partitions=200)
    info = ev.QueryInfo(facts=facts, run="r1", run_state="failed", partitions=200)
    assert only(scene.start(2, queries=[info]), ac.StartQuery).partitions == 200


def test_a_batch_before_a_failure_is_no_start(stage: Stage) -> None:
    scene = stage(restart=FixedDelay(attempts=3, delay_ms=1_000))
    after_the_backoff(scene)
    scene.batch(300, 2)
    assert scene.query().state == "CreatingExecutionGraph"


def test_what_the_checkpoint_has_by_now_is_what_the_snapshot_shows(stage: Stage) -> None:
    scene = stage(rescale_policy="always")
    scene.start(2)
    plain = evolve(STATEFUL, provider="hdfs", checkpoint_format=1)
    assert only(scene.submit(plain), ac.StartQuery).rescalable
    # That start was carried out, but its outcome was not reported.
    assert goes_on(scene, "running", 2, facts=evolve(plain, provider="rocksdb", checkpoint_format=2)) == []
    scene.batches(300, partitions=2)
    scene.executor("1", cores=2)
    scene.until_rescale()
    assert scene.query().target == 4


@pytest.mark.parametrize("in_force", [2, 4])
def test_a_count_in_place_is_what_the_snapshot_shows(stage: Stage, in_force: int) -> None:
    scene = stage()
    scene.start(2)
    scene.running(2, STATELESS)
    scene.executor("1", cores=2)
    first = scene.last_order("Rescale")
    assert first is not None
    again = goes_on(scene, "running", in_force, facts=STATELESS)
    if in_force == 4:
        assert again == []
        assert scene.query("enrich").partitions == 4
    else:
        assert matches(again[0], ac.Rescale, partitions=4)
        scene.done(again[0], took_ms=0)
    assert scene.done(first, took_ms=0) == ()
    assert (scene.query("enrich").partitions, scene.query("enrich").target) == (4, None)
    assert scene.query("enrich").history[0].reason == "succeeded"


def test_a_count_in_place_of_which_nobody_has_heard_is_what_the_snapshot_shows(stage: Stage) -> None:
    scene = stage()
    scene.start(2)
    scene.running(2, STATELESS)
    (again,) = goes_on(scene, "running", 4, facts=STATELESS)
    assert matches(again, ac.Rescale, partitions=2)
    scene.done(again, took_ms=0)
    assert scene.query("enrich").partitions == 2


def test_another_run_is_another_query(stage: Stage) -> None:
    scene = stage()
    executing(scene)
    scene.scheduler = Scheduler.restore(scene.scheduler.save())
    info = ev.QueryInfo(facts=STATEFUL, run="r2", run_state="running", partitions=2)
    assert "superseded" in reasons(scene.start(2, queries=[info]))
    assert scene.query().run == "r2"


def test_executors_are_asked_for_again_when_nobody_knows_whether_they_were(stage: Stage) -> None:
    scene = stage(mode="adaptive", max_parallelism=8)
    executing(scene)
    scene.send(ev.RequirementsRequested, query="counts", bounds={"shuffle": (1, 6)}, by="somebody")
    first = scene.last_order("RequestExecutors")
    assert first is not None
    assert [type(a) for a in goes_on(scene, "running", 2)] == [ac.KeepText, ac.RequestExecutors]
    again = scene.last_order("RequestExecutors")
    assert again is not None
    scene.done(again, took_ms=1)
    assert scene.done(first, took_ms=1) == ()
    assert [type(a) for a in goes_on(scene, "running", 2)] == [ac.KeepText], "nobody has shown them kept"


def test_surplus_executors_are_given_back_in_time(stage: Stage) -> None:
    scene = stage(mode="adaptive", slot_idle_ms=5_000, max_parallelism=8)
    scene.start(1, 1)
    scene.running(2)
    scene.send(ev.RequirementsRequested, query="counts", bounds={"shuffle": (1, 1)}, by="somebody")
    goes_on(scene, "running", 2, gap_ms=2_000)
    assert scene.advance(2_900) == ()
    assert only(scene.advance(200), ac.KillExecutors)
