"""Tests of queries under `autoscale` in simulated time: executors follow the load, and then settle."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from attrs import evolve

from spark_elastic.core import actions as ac
from spark_elastic.core import events as ev
from spark_elastic.core.scheduler import Scheduler
from tests.unit.core.builder import STATEFUL, STATELESS
from tests.unit.core.policies.seen import work
from tests.unit.core.policies.world import SETTINGS, Source, World


def turns(seen: list[tuple[int, int, int]]) -> list[int]:
    """Return the granted slots, one entry per change."""
    granted = [slots for _, _, slots in seen]
    return [granted[0], *(after for before, after in pairwise(granted) if after != before)]


def test_it_comes_to_rest_with_the_slots_that_the_load_takes() -> None:
    # 4000 rows/s of 1 ms each keep 4 slots busy; at a load of 0.75, less the fixed part, that takes 6.
    world = World()
    world.start(2)
    world.query(lambda _: 4_000)
    world.run(900)
    assert world.executors in (5, 6)
    assert len(turns(world.seen[300:])) == 1, "it does not come to rest"
    world.scene.check()


def test_more_load_gets_executors_at_once_and_less_gives_them_back_after_the_window() -> None:
    world = World()
    world.start(2)
    world.query(lambda second: 2_000 if second < 600 or second > 1_200 else 6_000)
    world.run(600)
    low = world.executors
    assert low in (3, 4)
    world.run(120)
    high = world.executors
    assert high in (8, 9, 10)
    world.run(480)
    world.run(240)
    assert world.executors >= high - 1, "given back before the window is over"
    world.run(600)
    assert world.executors in (low, low + 1)
    assert "autoscale_up" in world.reasons() or "autoscale_up_backlog" in world.reasons()
    assert {"autoscale_down", "executors_wanted", "executors_not_wanted"} <= {*world.reasons()}
    world.scene.check()


def test_it_holds_what_there_is_while_nothing_is_known() -> None:
    world = World()
    world.start(3)
    world.query(lambda _: 0)
    assert world.scene.query("q").granted_slots == 3
    assert world.reasons() == ["autoscale_measuring"]
    assert world.target == 3, "requested before anything is known"


def test_an_idle_query_goes_to_its_lower_bound_after_the_window() -> None:
    world = World()
    world.start(4)
    world.query(lambda second: 2_000 if second < 300 else 0)
    world.run(1_200)
    assert world.executors == 1


def test_a_backlog_is_drained_and_nothing_is_given_back_before() -> None:
    def outage(second: float) -> float:
        return 600_000 if second == 300 else 2_000

    world = World()
    world.start(2)
    source = world.query(outage, limit=30_000)
    world.run(400)
    while source.offered - source.read > 30_000:
        world.run(10)
    drained = (world.scene.now - world.began) // 1_000
    assert 400 < drained < 900, "not caught up within the time for it"
    assert "autoscale_up_backlog" in world.reasons()
    granted = turns([seen for seen in world.seen if 300 < seen[0] < drained - 20])
    assert granted == sorted(granted), "scaled down while it drains"
    world.run(600)
    assert world.executors <= 4
    world.scene.check()


def test_a_limit_of_the_source_is_named_and_gets_no_executors() -> None:
    world = World()
    world.start(2)
    world.query(lambda _: 5_000, limit=5_000)
    world.run(600)
    assert "autoscale_admission" in world.reasons()
    assert max(executors for _, executors, _ in world.seen) <= 3


def test_a_fixed_part_that_fills_the_interval_is_named_and_gets_no_executors_without_end() -> None:
    world = World()
    world.start(2)
    world.query(lambda second: 500 if second % 120 < 60 else 1_500, fixed_ms=4_800)
    world.run(900)
    assert "autoscale_fixed_part" in world.reasons()
    assert world.executors <= 12


def test_declared_bounds_are_kept_and_it_says_so() -> None:
    bounded = evolve(SETTINGS, max_parallelism=3)
    world = World(bounded)
    world.start(2)
    world.query(lambda _: 9_000)
    world.run(300)
    assert world.executors == 3
    assert max(granted for _, _, granted in world.seen) == 3
    said = [action.decision.message for action in world.scene.actions if hasattr(action, "decision")]
    assert any("Bounds allow 3." in message for message in said)


def test_executors_are_limited_to_what_the_quota_allows_and_it_says_so() -> None:
    world = World(evolve(SETTINGS, quota_cores=5), cores=2)
    world.start(1)
    world.query(lambda _: 9_000)
    world.run(300)
    assert world.executors == 2
    said = [action.decision.message for action in world.scene.actions if hasattr(action, "decision")]
    assert any("spark.elastic.quota.cores allows 2." in message for message in said)


def test_two_queries_get_what_each_needs() -> None:
    world = World()
    world.start(2)
    world.query(lambda _: 3_000, name="a")
    world.query(lambda _: 1_000, name="b")
    world.run(900)
    granted = {name: world.scene.query(name).granted_slots for name in "ab"}
    assert granted["a"] in (4, 5)
    assert granted["b"] in (2, 3)
    assert world.executors == sum(slots or 0 for slots in granted.values())
    world.scene.check()


def test_a_query_without_an_interval_is_scaled_too() -> None:
    world = World()
    world.start(2)
    world.query(lambda _: 3_000, interval_ms=0)
    world.run(900)
    assert world.executors in (4, 5)


@pytest.mark.parametrize("seconds", [137, 600])
def test_what_is_saved_goes_on_as_if_nothing_had_been(seconds: int) -> None:
    world = World()
    world.start(2)
    world.query(lambda second: 2_000 + 1_000 * (second > 200))
    world.run(seconds)
    scheduler = world.scene.scheduler
    again = Scheduler.restore(json.loads(json.dumps(scheduler.save())))
    assert again == scheduler


def test_who_is_only_advised_is_told_and_keeps_what_it_has() -> None:
    world = World(evolve(SETTINGS, advise_only=True))
    world.start(2)
    world.query(lambda _: 6_000)
    world.run(300)
    assert world.executors == 2
    said = [action.decision.message for action in world.scene.actions if hasattr(action, "decision")]
    assert any(message.endswith("nothing is changed.") and "Scale " in message for message in said)
    assert world.scene.query("q").granted_slots is None


def test_a_stateful_query_is_moved_seldom() -> None:
    world = World()
    world.start(2)
    facts = evolve(STATEFUL, query="q", name="q", trigger_ms=5_000)
    world.add(Source(facts, lambda second: 3_000 + 300 * (int(second) // 7 % 3)))
    world.run(1_800)
    assert world.scene.query("q").rescaled <= 3
    assert world.executors in (5, 6)
    world.scene.check()


def test_slots_that_do_not_come_are_expected_for_ten_minutes() -> None:
    # Its micro-batches grow. Those that are told as they begin get slots sooner, and then one lasts too long.
    world = World(evolve(SETTINGS, cooldown_ms=120_000), most=2, told_plans=False)
    world.start(1)
    facts = evolve(STATEFUL, query="q", name="q", trigger_ms=10_000, checkpoint_partitions=200)
    world.add(Source(facts, lambda _: 8_000))

    def moves() -> list[tuple[str, int]]:
        said = (action.decision for action in world.scene.actions if isinstance(action, ac.Report))
        return [(one.reason, one.after or 0) for one in said if one.kind == "rescale_state"]

    world.run(690)
    assert world.target > world.executors == 2
    assert not moves()
    world.run(110)
    assert moves() == [("reserve_dear", 12)]
    world.scene.check()


@pytest.mark.parametrize("stateful", [False, True])
def test_who_is_short_of_memory_gets_no_executors_until_there_is_enough(stateful: bool) -> None:
    world = World()
    world.start(2)
    facts = evolve(STATEFUL if stateful else STATELESS, query="q", name="q", trigger_ms=5_000)
    source = world.add(Source(facts, lambda second: 1_000 if second < 60 else 2_500, work=work(gc_ms=600)))
    world.run(160)
    assert world.executors == 2
    assert "autoscale_memory" in world.reasons()
    source.work = work(gc_ms=20)
    world.run(300)
    assert world.executors > 2
    world.scene.check()


def test_an_executor_that_is_about_to_go_is_replaced_before_it_is_gone() -> None:
    world = World()
    world.start(2)
    facts = evolve(STATEFUL, query="q", name="q", trigger_ms=5_000)
    world.add(Source(facts, lambda _: 4_000))
    world.run(900)
    before = world.executors
    slots = world.scene.query("q").share.slots
    going = next(iter(world.scene.scheduler.slots.executors))
    world.take(world.scene.send(ev.ExecutorDecommissioning, executor=going))
    assert world.scene.query("q").share.slots == slots - 1, "its next tasks would wait for it"
    assert world.target == before + 1
    world.run(25)
    assert len(world.scene.scheduler.slots.usable) == before
    assert world.target == before
    world.take(world.scene.lose(going))
    world.run(300)
    assert (world.executors, world.target) == (before, before)
    assert world.scene.query("q").share.slots == slots
    world.scene.check()


def test_where_there_is_no_successor_a_query_goes_down_before_the_executor_is_gone() -> None:
    world = World(evolve(SETTINGS, rescale_policy="always", max_parallelism=4), most=4)
    world.start(4)
    facts = evolve(STATEFUL, query="q", name="q", trigger_ms=5_000)
    world.add(Source(facts, lambda _: 2_700))
    world.run(300)
    assert world.scene.query("q").partitions == 4
    world.most = 3
    world.take(world.scene.send(ev.ExecutorDecommissioning, executor="0"))
    assert world.scene.query("q").share.slots == 3
    world.run(60)
    assert "0" in world.scene.scheduler.slots.executors, "it is still there"
    ordered = [action.partitions for action in world.scene.actions if isinstance(action, ac.Rescale)]
    assert ordered[-1] == 3
    world.scene.check()
