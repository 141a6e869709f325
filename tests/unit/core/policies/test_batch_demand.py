"""Tests that batch stages get executors as long as these pay for their start, and give them back."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from spark_elastic.core import actions as ac
from spark_elastic.core import events as ev
from spark_elastic.core.events import BatchStage, BatchStages
from spark_elastic.core.scheduler import Scheduler
from tests.unit.core.builder import STATELESS, Scene, decisions, only, reasons
from tests.unit.core.policies.batch_world import BatchWorld
from tests.unit.core.policies.world import SETTINGS

LONG = BatchStage(stage=1, tasks=200, done=4, running=4, run_ms=120_000, launched=1_000_000)
"""200 tasks of 30 s."""


def scene(*executors: int, **settings: Any) -> Scene:
    made = Scene(evolve(SETTINGS, **settings))
    made.start(*executors, spark_executor_cores="4")
    return made


def requested(actions: tuple[ac.Action, ...]) -> list[int]:
    return [action.total for action in actions if isinstance(action, ac.RequestExecutors)]


def test_many_short_tasks_get_no_executor_and_long_ones_as_many_as_pay() -> None:
    short = scene(4)
    stage = BatchStage(stage=1, tasks=200, done=40, running=4, run_ms=800, launched=999_800)
    assert requested(short.send(BatchStages, stages=(stage,))) == []
    long = scene(4)
    # 5880 s of slot time take 1470 s on 4 slots. With n more executors, which start 30 s later, they take 30
    # + 1440/(n + 1) s: the sixth executor saves 34 s, the seventh 26 s.
    assert requested(long.send(BatchStages, stages=(LONG,))) == [7]
    (up, asks) = decisions(long.actions)[-2:]
    assert (up.reason, asks.reason) == ("batch_up", "executors_for_batch")
    assert (up.before, up.after, up.numbers["left"], up.numbers["work_ms"]) == (0, 7, 196, 5_880_000)
    assert up.numbers["ready_ms"] == 30_000
    assert 30_000 <= up.numbers["saved_ms"] < 40_000  # type: ignore[operator]
    assert asks.numbers["batch"] == 7
    long.check()


def test_where_nothing_is_there_the_first_task_gets_an_executor() -> None:
    empty = scene()
    assert requested(empty.send(BatchStages, stages=(BatchStage(stage=1, tasks=3),))) == [1]
    assert "batch_first" in reasons(empty.actions)


def test_measured_start_ups_are_what_is_paid() -> None:
    quick = BatchWorld(cores=4, startup_ms=5_000)
    quick.start(1)
    quick.job(1, (40, 30_000), (200, 30_000))
    quick.run(400)
    slow = BatchWorld(cores=4, startup_ms=120_000)
    slow.start(1)
    slow.job(1, (40, 30_000), (200, 30_000))
    slow.run(1_000)
    assert max(here for _, here, _ in quick.seen) > max(here for _, here, _ in slow.seen) > 1


def test_more_is_asked_for_the_dearer_it_may_be() -> None:
    asked = {}
    for gain in (0.0, 0.5, 1.0, 4.0, None):
        made = scene(4, batch_gain=gain)
        asked[gain] = requested(made.send(BatchStages, stages=(LONG,)))
    assert asked == {0.0: [49], 0.5: [10], 1.0: [7], 4.0: [4], None: []}


def test_executors_are_given_back_when_the_work_is_done() -> None:
    world = BatchWorld(cores=4)
    world.start(1)
    world.job(10, (200, 30_000))
    world.run(400)
    (ended,) = world.ended
    assert ended < 330  # on one executor it would take 1500 s
    assert max(here for _, here, _ in world.seen) >= 6
    # In each slotIdleTimeout (10 s) as many stay as were wanted at most in it, plus 5 s for a next stage.
    after = [here for second, here, _ in world.seen if second > ended]
    assert after == sorted(after, reverse=True)
    assert after[12] < 4
    assert after[40:] == [0] * len(after[40:])
    assert world.executors == 0
    world.scene.check()


def test_an_application_that_has_run_nothing_keeps_what_it_has() -> None:
    world = BatchWorld(cores=4)
    world.start(3)
    world.run(300)
    assert world.executors == 3


def test_executors_that_are_asked_for_are_not_given_up_before_they_come() -> None:
    world = BatchWorld(cores=4, startup_ms=60_000)
    world.start(1)
    world.job(1, (200, 30_000))
    targets = []
    for _ in range(100):
        world.run(1)
        targets.append(world.target)
    assert targets == sorted(targets)
    assert world.target > 2


def test_what_is_estimated_too_high_at_first_is_asked_back() -> None:
    cold = scene(4)
    # Cold executors have finished none of 2000 tasks after 10 s; after that a task takes 20 ms.
    stage = BatchStage(stage=1, tasks=2_000, running=4, launched=990_000)
    (total,) = requested(cold.send(BatchStages, stages=(stage,)))
    assert total > 5
    cold.advance(1_000)
    warm = evolve(stage, done=200, run_ms=44_000)
    cold.send(BatchStages, stages=(evolve(warm, done=400, run_ms=48_000),))
    cold.advance(10_000)
    assert requested(tuple(cold.actions)) == [total, 1]
    cold.check()


def test_small_jobs_now_and_then_keep_no_executor_alive() -> None:
    world = BatchWorld(cores=4)
    world.start(8)
    for second in range(10, 600, 6):
        world.job(second, (200, 20.0), (50, 20.0))
    world.run(600)
    assert world.executors == 1
    assert "batch_up" not in reasons(world.scene.actions)


def test_small_jobs_that_come_again_and_again_keep_the_last_executor() -> None:
    world = BatchWorld(cores=4)
    world.start(1)
    for second in range(10, 300, 8):
        world.job(second, (20, 20.0))
    world.run(300)
    assert {here for _, here, _ in world.seen} == {1}
    world.run(30)
    assert world.executors == 0


def test_a_short_stage_after_a_long_one_gets_nothing_for_it() -> None:
    world = BatchWorld(cores=4)
    world.start(1)
    world.job(1, (200, 2_000), (200, 40))
    world.run(30)
    assert world.target == 2  # for the long stage, which takes 100 s
    while not world.ended:
        world.run(1)
        assert world.target <= 2


def test_stages_in_a_row_are_taken_to_go_on() -> None:
    alone = BatchWorld(cores=4)
    alone.start(1)
    alone.job(1, (32, 1_000))
    alone.run(60)
    assert "batch_up" not in reasons(alone.scene.actions)
    row = BatchWorld(cores=4)
    row.start(1)
    row.job(1, *[(32, 1_000)] * 60)
    row.run(400)
    assert max(here for _, here, _ in row.seen) > 1
    assert row.ended[0] < 60 * 8  # the time on one executor


def test_queries_come_first_and_batch_stages_get_more_beside_them() -> None:
    world = BatchWorld(cores=4)
    world.start(2)
    world.query(lambda second: 1_000.0, row_ms=4.0)
    world.run(600)
    settled = world.executors
    (granted,) = {granted for _, _, granted in world.seen[-30:]}
    world.job(601, (200, 30_000))
    world.run(60)
    assert world.executors >= settled + 3
    assert world.seen[-1][2] == granted
    world.run(600)
    assert world.executors == settled
    world.scene.check()


def test_with_a_limit_the_queries_have_theirs_first() -> None:
    made = scene(4, 4, max_executors=3)
    made.running(4, STATELESS)
    made.send(BatchStages, stages=(LONG,))
    made.advance(1_000)
    assert requested(tuple(made.actions)) == [3]
    limit = next(one for one in decisions(made.actions) if one.reason == "executors_limited")
    assert (limit.after, limit.numbers["setting"]) == (3, "spark.elastic.maxExecutors")
    assert made.query("enrich").share.slots >= 4


@pytest.mark.parametrize(
    ("settings", "most"),
    [({"max_executors": 3}, 3), ({"quota_cores": 8}, 2), ({"quota_memory": 5 << 30}, 3)],
)
def test_limits_hold_for_batch_stages_alone(settings: dict[str, int], most: int) -> None:
    made = scene(4, **settings)
    assert requested(made.send(BatchStages, stages=(LONG,))) == [most]


def test_the_fewest_executors_stay() -> None:
    world = BatchWorld(settings=evolve(SETTINGS, min_executors=2), cores=4)
    world.start(4)
    world.job(1, (8, 1_000))
    world.run(120)
    assert world.executors == 2


def test_advice_orders_nothing_and_says_why() -> None:
    made = scene(4, advise_only=True)
    assert requested(made.send(BatchStages, stages=(LONG,))) == []
    (said,) = [one for one in decisions(made.actions) if one.reason == "batch_up"]
    assert said.after == 7
    assert "adviseOnly" in said.message
    made.check()


def over(made: Scene, seconds: int) -> list[str]:
    """End the stages and let some time pass; return the executors that were given back."""
    made.send(BatchStages)
    gone: list[str] = []
    for _ in range(seconds):
        for action in made.advance(1_000):
            if isinstance(action, ac.KillExecutors | ac.DecommissionExecutors):
                gone += action.executors
                for executor in action.executors:
                    made.lose(executor)
    return gone


def test_what_is_dear_to_make_again_is_kept_longer() -> None:
    made = scene(4, 4)
    stage = BatchStage(stage=1, tasks=8, done=4, running=4, run_ms=400_000, written_bytes=1_000)
    made.send(BatchStages, stages=(stage,))
    made.send(ev.ExecutorUsage, executor="0", cached_bytes=0, shuffle_bytes=1_000)
    made.send(ev.ExecutorUsage, executor="1", cached_bytes=1_000_000, shuffle_bytes=0)
    # Its 1000 bytes took 400 s of slot time, so all of its slots need 100 s to write them again.
    assert over(made, 15) == ["1"]
    assert over(made, 80) == []
    assert over(made, 20) == ["0"]
    made.check()


def test_what_is_not_lost_keeps_no_executor() -> None:
    made = Scene(SETTINGS)
    conf: dict[str, Any] = {
        "spark_decommission_enabled": "true",
        "spark_storage_decommission_enabled": "true",
    }
    made.start(4, 4, spark_executor_cores="4", **conf)
    stage = BatchStage(stage=1, tasks=8, done=4, running=4, run_ms=400_000, written_bytes=1_000)
    made.send(BatchStages, stages=(stage,))
    made.send(ev.ExecutorUsage, executor="0", cached_bytes=0, shuffle_bytes=1_000)
    assert sorted(over(made, 30)) == ["0", "1"]


def test_data_that_nobody_needs_any_more_lets_an_executor_go() -> None:
    made = scene(4)
    stage = BatchStage(stage=1, tasks=8, done=4, running=4, run_ms=400_000, written_bytes=1_000)
    made.send(BatchStages, stages=(stage,))
    made.send(ev.ExecutorUsage, executor="0", cached_bytes=0, shuffle_bytes=1_000)
    assert over(made, 30) == []
    made.send(ev.ExecutorUsage, executor="0", cached_bytes=0, shuffle_bytes=0)
    assert only(tuple(made.log[-1][1]), ac.KillExecutors).executors == ("0",)
    made.check()


def test_an_executor_that_runs_a_task_goes_after_those_that_run_none() -> None:
    made = scene(4, 4, 4)
    stage = BatchStage(stage=1, tasks=8, done=7, running=1, run_ms=70_000, launched=made.now)
    for _ in range(12):
        made.send(BatchStages, stages=(stage,), idle=("0", "1"))
        made.advance(1_000)
    kills = [action.executors for action in made.actions if isinstance(action, ac.KillExecutors)]
    assert [sorted(executors) for executors in kills] == [["0", "1"]]


def test_batches_beside_batch_stages_do_not_tell_what_slots_do() -> None:
    made = scene(4)
    made.running(4, STATELESS)
    running = BatchStage(stage=1, tasks=8, running=2)
    made.send(BatchStages, stages=(running,))
    for stages in ((running,), ()):
        made.send(BatchStages, stages=stages)
        made.now += 5_000
        made.batch(50, 4, "enrich")
    samples = made.scheduler._planner._memories["enrich"].samples
    assert [sample.steady for sample in samples[-2:]] == [False, True]


def test_a_scheduler_that_is_restored_goes_on_alike() -> None:
    made = scene(4)
    made.send(BatchStages, stages=(LONG,), idle=("0",))
    again = Scheduler.restore(made.scheduler.save())
    event = BatchStages(id="s99", at=made.now + 1_000, stages=(evolve(LONG, done=100, run_ms=3_000_000),))
    assert again.handle(event) == made.scheduler.handle(event)


def test_where_spark_requests_executors_nothing_is_said_of_batch_stages() -> None:
    made = Scene(SETTINGS)
    made.start(4, spark_executor_cores="4", spark_dynamicAllocation_enabled="true")
    assert reasons(made.send(BatchStages, stages=(LONG,))) == []


def test_nobody_heeds_stages_where_bounds_alone_say_what_is_needed() -> None:
    made = scene(4, policy=("declared",))
    assert made.send(BatchStages, stages=(LONG,)) == ()
    assert not only(tuple(made.actions), ac.Configure).batch_stages
    assert only(tuple(scene(4).actions), ac.Configure).batch_stages
