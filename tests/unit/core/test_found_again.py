"""A scheduler that is read back and meets a snapshot: what goes on, what is repeated, what was missed."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from attrs import evolve

from spark_elastic.core import actions as ac
from spark_elastic.core import events as ev
from spark_elastic.core.actions import Action
from spark_elastic.core.failures.strategy import FixedDelay
from spark_elastic.core.scheduler import Scheduler
from tests.unit.core.builder import STATEFUL, STATELESS, Scene, matches, only, orders, reasons
from tests.unit.core.reached import creating, executing, restarting, waiting

Stage = Callable[..., Scene]
QUERY = {"query": "counts", "run": "r1"}
DISK_FULL = ev.Failure(error="disk full", offsets="[7]", causes=("java.io.IOException",))


def goes_on(
    scene: Scene,
    phase: ev.Phase,
    partitions: int | None = None,
    failure: ev.Failure | None = None,
    facts: ev.QueryFacts = STATEFUL,
    gap_ms: int = 700,
) -> list[Action]:
    """Replace the scheduler by one that is read back, show it the world, and return what it orders."""
    scene.scheduler = Scheduler.restore(json.loads(json.dumps(scene.scheduler.save())))
    scene.timers.clear()
    scene.now += gap_ms
    info = ev.QueryInfo(facts=facts, run="r1", phase=phase, partitions=partitions, failure=failure)
    executors = [info.cores for info in scene.scheduler.slots.executors.values()]
    return orders(scene.start(*executors, queries=[info]))[1:]


def creating_again(scene: Scene) -> None:
    restarting(scene)
    scene.stopped()


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


ANALYSIS = evolve(DISK_FULL, causes=("org.apache.spark.sql.AnalysisException",))
OTHER = evolve(DISK_FULL, error="no route to host")


@pytest.mark.parametrize(
    ("story", "phase", "partitions", "failure", "state", "ordered"),
    [
        (waiting, "held", None, None, "WaitingForResources", ["HoldQuery"]),
        (waiting, "running", 200, None, "Executing", []),
        (creating, "held", None, None, "CreatingExecutionGraph", ["StartQuery"]),
        (creating, "running", None, None, "CreatingExecutionGraph", []),
        (creating, "running", 2, None, "Executing", []),
        (creating, "failed", None, DISK_FULL, "Restarting", ["HoldQuery"]),
        (executing, "running", 2, None, "Executing", []),
        (executing, "failed", 2, DISK_FULL, "Restarting", ["HoldQuery"]),
        (restarting, "running", 2, None, "Restarting", ["StopQuery"]),
        (restarting, "stopped", 2, None, "CreatingExecutionGraph", ["StartQuery"]),
        (restarting, "failed", 2, DISK_FULL, "Restarting", ["HoldQuery"]),
        (creating_again, "stopped", 2, None, "CreatingExecutionGraph", ["StartQuery"]),
        (creating_again, "running", 2, None, "CreatingExecutionGraph", []),
        (creating_again, "running", 4, None, "Executing", []),
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
    phase: ev.Phase,
    partitions: int | None,
    failure: ev.Failure | None,
    state: str,
    ordered: list[str],
) -> None:
    scene = stage(restart=FixedDelay(attempts=3, delay_ms=1_000), rescale_policy="always")
    story(scene)
    history = scene.query().history
    found = goes_on(scene, phase, partitions, failure)
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


def test_a_stop_that_is_under_way_is_waited_for(stage: Stage) -> None:
    scene = stage(rescale_policy="always")
    restarting(scene)
    first = scene.last_order("StopQuery")
    assert first is not None
    (second,) = goes_on(scene, "running", 2)
    assert scene.fail(second, "query counts is stopping, not running") == ()
    assert scene.query().state == "Restarting"
    found = orders(scene.send(ev.QueryStopped, **QUERY, action=first.id))
    scene.send(ev.ActionDone, action=first.id, took_ms=9)
    assert matches(found[0], ac.StartQuery, partitions=4, repartition=True)
    scene.started(4)
    assert scene.query().history[0].reason == "succeeded"


def test_a_stop_that_fails_after_all_lets_the_query_run(stage: Stage) -> None:
    scene = stage(rescale_policy="always")
    restarting(scene)
    first = scene.last_order("StopQuery")
    assert first is not None
    (second,) = goes_on(scene, "running", 2)
    scene.fail(second)
    assert "stop_failed" in reasons(scene.fail(first))
    assert scene.query().state == "Executing"


def test_an_order_that_was_lost_is_not_waited_for_the_next_time(stage: Stage) -> None:
    scene = stage(rescale_policy="always")
    restarting(scene)
    goes_on(scene, "running", 2)
    scene.stopped()
    scene.started(4)
    scene.batches(300, partitions=4)
    scene.executor("2", cores=2)
    scene.until_stop()
    stop = scene.last_order("StopQuery")
    assert stop is not None
    scene.fail(stop)
    assert scene.query().state == "Executing"


def test_a_query_on_its_way_is_known_to_run_by_its_first_batch(stage: Stage) -> None:
    scene = stage(rescale_policy="always")
    creating_again(scene)
    assert goes_on(scene, "running", 2) == []
    scene.now += 5_000
    scene.batch(300, 4)
    assert scene.query().state == "Executing"
    assert (scene.query().partitions, scene.query().history[0].reason) == (4, "succeeded")


def test_a_batch_of_the_run_before_is_no_start(stage: Stage) -> None:
    scene = stage(rescale_policy="always")
    creating_again(scene)
    scene.batch(300, 2)
    assert scene.query().state == "CreatingExecutionGraph"


@pytest.mark.parametrize("in_force", [2, 4])
def test_a_count_in_place_is_what_the_snapshot_shows(stage: Stage, in_force: int) -> None:
    scene = stage()
    scene.start(2)
    scene.running(2, STATELESS)
    scene.executor("1", cores=2)
    first = scene.last_order("SetParallelism")
    assert first is not None
    again = goes_on(scene, "running", in_force, facts=STATELESS)
    if in_force == 4:
        assert again == []
        assert scene.query("enrich").partitions == 4
    else:
        assert matches(again[0], ac.SetParallelism, partitions=4)
        scene.send(ev.ActionDone, action=again[0].id, took_ms=0)
    assert scene.send(ev.ActionDone, action=first.id, took_ms=0) == ()
    assert (scene.query("enrich").partitions, scene.query("enrich").target) == (4, None)
    assert scene.query("enrich").history[0].reason == "succeeded"


def test_a_count_in_place_of_which_nobody_has_heard_is_what_the_snapshot_shows(stage: Stage) -> None:
    scene = stage()
    scene.start(2)
    scene.running(2, STATELESS)
    (again,) = goes_on(scene, "running", 4, facts=STATELESS)
    assert matches(again, ac.SetParallelism, partitions=2)
    scene.send(ev.ActionDone, action=again.id, took_ms=0)
    assert scene.query("enrich").partitions == 2


def test_another_run_is_another_query(stage: Stage) -> None:
    scene = stage()
    executing(scene)
    scene.scheduler = Scheduler.restore(scene.scheduler.save())
    info = ev.QueryInfo(facts=STATEFUL, run="r2", phase="running", partitions=2)
    assert "superseded" in reasons(scene.start(2, queries=[info]))
    assert scene.query().run == "r2"


def test_executors_are_asked_for_again_when_nobody_knows_whether_they_were(stage: Stage) -> None:
    scene = stage(mode="adaptive", max_parallelism=8)
    executing(scene)
    scene.send(ev.RequirementsRequested, query="counts", bounds={"shuffle": (1, 6)}, by="somebody")
    first = scene.last_order("RequestExecutors")
    assert first is not None
    assert [type(a) for a in goes_on(scene, "running", 2)] == [ac.RequestExecutors]
    again = scene.last_order("RequestExecutors")
    assert again is not None
    scene.send(ev.ActionDone, action=again.id, took_ms=1)
    assert scene.send(ev.ActionDone, action=first.id, took_ms=1) == ()
    assert goes_on(scene, "running", 2) == []


def test_surplus_executors_are_given_back_in_time(stage: Stage) -> None:
    scene = stage(mode="adaptive", slot_idle_ms=5_000, max_parallelism=8)
    scene.start(1, 1)
    scene.running(2)
    scene.send(ev.RequirementsRequested, query="counts", bounds={"shuffle": (1, 1)}, by="somebody")
    goes_on(scene, "running", 2, gap_ms=2_000)
    assert scene.advance(2_900) == ()
    assert only(scene.advance(200), ac.KillExecutors)
