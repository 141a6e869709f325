"""Tests of the planner: policies' wishes count within limits, and slots beyond a grant stay unused."""

from __future__ import annotations

import pytest
from attrs import evolve, frozen

from spark_elastic.core.actions import RequestExecutors
from spark_elastic.core.policies import planner
from spark_elastic.core.policies.policy import QueryWish, Wish
from spark_elastic.core.policies.view import ClusterView
from tests.unit.core.builder import STATEFUL, STATELESS, Scene, reasons
from tests.unit.core.policies.world import SETTINGS, World


@frozen
class Says:
    """A policy that always has the same wish."""

    wish: Wish
    seen: list[ClusterView]

    def decide(self, view: ClusterView) -> Wish:
        self.seen.append(view)
        return self.wish


def keeps(**slots: int) -> dict[str, QueryWish]:
    return {query: QueryWish(slots=count, reason="autoscale_idle") for query, count in slots.items()}


def wants(monkeypatch: pytest.MonkeyPatch, wish: Wish) -> list[ClusterView]:
    seen: list[ClusterView] = []
    monkeypatch.setattr(planner, "POLICIES", {"autoscale": Says(wish, seen)})
    return seen


def test_executors_that_a_policy_wants_are_requested_whatever_queries_need(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wants(monkeypatch, Wish(queries=keeps(enrich=1), executors=5))
    scene = Scene(SETTINGS)
    scene.start(1)
    scene.running(1, STATELESS)
    requests = [action.total for action in scene.actions if isinstance(action, RequestExecutors)]
    assert requests == [5]
    scene.check()


def test_what_is_granted_is_used_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    wants(monkeypatch, Wish(queries=keeps(enrich=2)))
    scene = Scene(SETTINGS)
    scene.start(8)
    scene.running(8, STATELESS)
    view = scene.query("enrich")
    assert (view.granted_slots, view.share.slots, view.share.complete) == (2, 2, True)
    assert (view.declared.upper, view.requirements.upper) == (32_768, 32_768)
    scene.check()


def test_a_policy_sees_what_was_declared_and_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = wants(monkeypatch, Wish(queries=keeps(enrich=2)))
    scene = Scene(evolve(SETTINGS, max_parallelism=6))
    scene.start(4, 4)
    scene.running(6, STATELESS)
    last = seen[-1]
    assert (last.slots, last.usual_slots, len(last.executors)) == (8, 4, 2)
    assert (last.queries["enrich"].lower, last.queries["enrich"].upper) == (1, 6)


def test_it_is_asked_once_a_second_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = wants(monkeypatch, Wish())
    scene = Scene(SETTINGS)
    scene.start(4)
    scene.running(4, STATELESS)
    before = len(seen)
    for _ in range(20):
        scene.now += 100
        scene.batch(50, 4, "enrich")
    scene.advance(2_000)
    assert 2 <= len(seen) - before <= 4


def test_without_a_policy_nobody_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = wants(monkeypatch, Wish())
    scene = Scene(evolve(SETTINGS, policy=("declared",)))
    scene.start(4)
    scene.running(4, STATELESS)
    scene.batches(300, 300, partitions=4, query="enrich")
    assert seen == []


def test_the_state_of_a_query_is_moved_only_where_that_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    wants(monkeypatch, Wish(queries=keeps(counts=4)))
    scene = Scene(evolve(SETTINGS, cooldown_ms=0, executing_stabilization_ms=0))
    scene.start(8)
    scene.running(8, STATEFUL)
    scene.batches(300, 300, 300, partitions=8)
    said = reasons(scene.actions)
    assert "rescale_into_bounds" not in said, "a grant is no bound"
    scene.check()


def test_how_long_executors_take_to_come_is_measured() -> None:
    world = World(startup_ms=25_000)
    world.start(1)
    world.query(lambda _: 2_000)
    world.run(300)
    startups = world.scene.scheduler._planner._startups.took_ms
    assert startups
    assert all(24_000 <= took <= 27_000 for took in startups)
