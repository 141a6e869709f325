"""Tests that a backlog is read in micro-batches that last about one interval, not in a single one."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from spark_elastic.core import actions as ac
from spark_elastic.core import events as ev
from spark_elastic.core.policies.view import QueryMetrics
from tests.unit.core.builder import STATELESS
from tests.unit.core.policies.world import SETTINGS, Source, World

KAFKA = evolve(
    STATELESS,
    query="q",
    name="q",
    trigger_ms=5_000,
    sources=(ev.SourceFacts(name="kafka", divisible=True, ordered=True, limitable=True),),
)
SECOND = 1_000


def outage(second: float) -> float:
    """Return the rows of each second; the input of a two-minute outage arrives at once."""
    return 500 if second < 300 or second > 301 else 60_000


def orders(world: World) -> list[ac.LimitRows]:
    return [action for action in world.scene.actions if isinstance(action, ac.LimitRows)]


class Refusing(World):
    """Answers like a build of Spark that cannot limit rows."""

    def take(self, actions: tuple[ac.Action, ...]) -> None:
        for action in actions:
            if isinstance(action, ac.LimitRows):
                super().take(self.scene.fail(action, error="this build of Spark has no uniqueSources"))
            else:
                super().take((action,))


def run(facts: ev.QueryFacts = KAFKA, **settings: Any) -> tuple[World, Source]:
    world = World(evolve(SETTINGS, catch_up_ms=60 * SECOND, **settings))
    world.start(1)
    source = world.add(Source(facts, outage))
    world.run(300)
    source.longest = 0
    world.run(300)
    return world, source


def test_no_micro_batch_lasts_much_longer_than_its_interval_and_more_slots_come_as_soon() -> None:
    world, source = run()
    without, flooded = run(backpressure=False)
    assert not orders(without)
    assert flooded.longest > 20 * SECOND
    assert source.longest <= 8 * SECOND
    assert world.reasons().count("autoscale_backpressure") == 1
    assert source.offered - source.read < 10 * 500, "all of it was read"
    assert max(there for _, there, _ in world.seen) > 2

    def up(seen: list[tuple[int, int, int]]) -> int:
        return next(second for second, _, granted in seen if second > 301 and granted > seen[299][2])

    assert up(world.seen) <= up(without.seen)
    world.scene.check()


def test_the_limit_follows_the_slots_and_is_ordered_seldom() -> None:
    world, _ = run()
    limits = [order.sources[0].rows for order in orders(world)]
    assert max(limits) >= 3 * min(limits)
    assert len(limits) <= 12
    assert all(order.run == world.scene.query("q").run for order in orders(world))


def test_an_order_that_fails_is_said_once() -> None:
    world = Refusing(evolve(SETTINGS, catch_up_ms=60 * SECOND))
    world.start(1)
    world.add(Source(KAFKA, outage))
    world.run(600)
    assert len(orders(world)) == 1
    assert max(there for _, there, _ in world.seen) > 1, "what it needs is decided all the same"
    said = [message for message in world.said() if "uniqueSources" in message]
    assert said == [
        "Could not limit micro-batches, they read all that is available: this build of Spark "
        "has no uniqueSources"
    ]


def test_our_own_limit_is_no_bottleneck() -> None:
    world, _ = run()
    assert "autoscale_admission" not in world.reasons()


@pytest.mark.parametrize(
    "source",
    [ev.SourceFacts(name="kafka", divisible=True, ordered=True), ev.SourceFacts(name="FileSource[/in]")],
)
def test_a_source_with_a_limit_of_its_own_or_of_another_kind_keeps_it(source: ev.SourceFacts) -> None:
    world, _ = run(evolve(KAFKA, sources=(source,)))
    assert not orders(world)
    assert "autoscale_backpressure" not in world.reasons()


def test_who_is_only_advised_is_not_limited() -> None:
    world, source = run(advise_only=True)
    assert not orders(world)
    assert source.longest > 20 * SECOND


def test_a_query_that_no_policy_decides_about_any_more_is_not_limited() -> None:
    world, source = run()
    assert source.limit
    off = {"q": {"policy": "declared"}}
    world.take(world.scene.send(ev.PolicyFileChanged, path="/p", settings=off))
    world.run(5)
    assert orders(world)[-1].sources == ()
    assert world.sources["q"].limit is None
    world.scene.check()


def test_one_that_is_over_by_then_gets_no_order() -> None:
    world, _ = run()
    before = len(orders(world))
    run_of = world.scene.query("q").run
    world.take(world.scene.send(ev.QueryTerminated, query="q", run=run_of))
    world.run(5)
    assert len(orders(world)) == before


def test_after_a_snapshot_it_is_limited_anew() -> None:
    """The shim has lifted the limits that the previous policy process ordered."""
    world, source = run()
    before, source.limit = len(orders(world)), None
    view = world.scene.query("q")
    info = ev.QueryInfo(facts=KAFKA, run=view.run, run_state="running", partitions=view.partitions)
    world.take(world.scene.start(*[1] * world.executors, queries=[info]))
    world.run(30)
    assert len(orders(world)) > before
    assert source.limit


def test_after_a_rest_it_is_limited_all_the_same() -> None:
    world, source = run()
    limit, source.longest = source.limit, 0
    world.take(world.scene.send(ev.QueryIdle, query="q", run=world.scene.query("q").run))
    world.run(2)
    assert source.limit == limit
    source.offered += 60_000
    world.run(100)
    assert source.longest <= 8 * SECOND


def test_a_policy_sees_whether_a_query_is_throttled() -> None:
    world, _ = run()
    planner = world.scene.scheduler._planner
    seen: QueryMetrics = planner.view(
        {"q": world.scene.scheduler._machines["q"].record}, world.scene.scheduler.slots,
        world.scene.scheduler._supply, world.scene.now,
    ).queries["q"]  # fmt: skip
    assert seen.throttled
