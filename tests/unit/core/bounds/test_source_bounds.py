"""Tests of sources as vertices of a query: their bounds, the resulting slots and the orders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve

from spark_elastic.core import events as ev
from spark_elastic.core.actions import BoundSources, KeepText, RequestExecutors, SourceBounds, StartQuery
from spark_elastic.core.bounds.declared import WantedBounds
from spark_elastic.core.bounds.requirements import Bounds, SlotGroup
from spark_elastic.core.declarations import adaptive_requirements
from spark_elastic.core.settings import CoreSettings
from tests.unit.core.builder import STATEFUL, Scene, decisions, matches, only, orders, reasons

KAFKA = ev.SourceFacts(name="kafka", divisible=True)
RATE = ev.SourceFacts(name="RateStream")
FACTS = evolve(STATEFUL, sources=(KAFKA, RATE))
OPEN = SourceBounds(least=1, most=32_768)
ADAPTIVE = CoreSettings(mode="adaptive")


def pair(lower: int = -1, upper: int = -1) -> WantedBounds:
    return WantedBounds(lower=lower, upper=upper)


@pytest.fixture
def adaptive(stage: Callable[..., Scene]) -> Callable[..., Scene]:
    def make(**settings: Any) -> Scene:
        return stage(mode="adaptive", submission_stabilization_ms=0, **settings)

    return make


def request(scene: Scene, **bounds: tuple[int, int]) -> Any:
    named = {vertex.replace("_", "-"): pair for vertex, pair in bounds.items()}
    whole = {"shuffle": (1, 32_768), "source-0": (1, 32_768), "source-1": (1, 32_768), **named}
    return scene.send(ev.RequirementsRequested, query="counts", bounds=whole, by="alice")


class TestSlots:
    def test_the_widest_vertex_says_how_many_slots_a_query_could_use(self) -> None:
        bounds = {"shuffle": Bounds(lower=2, upper=4), "source-1": Bounds(lower=3, upper=6)}
        found = adaptive_requirements(FACTS, ADAPTIVE, bounds)
        assert [vertex.id for vertex in found.vertices] == ["shuffle", "source-0", "source-1"]
        assert (found.lower, found.upper) == (2, 4)
        assert found.groups == {"counts": SlotGroup(3, 6)}

    def test_a_source_without_an_upper_bound_demands_no_slots(self) -> None:
        bounds = {"shuffle": Bounds(upper=4), "source-0": Bounds(lower=2, upper=32_768)}
        found = adaptive_requirements(FACTS, ADAPTIVE, bounds)
        assert found.groups == {"counts": SlotGroup(2, 4)}
        assert found.sources == (Bounds(lower=2, upper=32_768), Bounds(upper=32_768))

    def test_executors_are_requested_for_the_widest_vertex(self, adaptive: Callable[..., Scene]) -> None:
        scene = adaptive(
            bounds={"counts": pair(upper=2)}, source_bounds={"counts": {"source-0": pair(upper=5)}}
        )
        scene.start(1, spark_executor_cores="1")
        actions = scene.submit(FACTS)
        assert only(actions, RequestExecutors).total == 5
        assert only(actions, StartQuery).partitions == 1

    def test_the_count_of_partitions_keeps_to_the_bounds_of_the_shuffle(
        self, adaptive: Callable[..., Scene]
    ) -> None:
        scene = adaptive(
            bounds={"counts": pair(upper=2)}, source_bounds={"counts": {"source-0": pair(upper=5)}}
        )
        scene.start(4)
        assert only(scene.submit(FACTS), StartQuery).partitions == 2

    def test_a_query_waits_for_the_slots_that_a_source_needs(self, adaptive: Callable[..., Scene]) -> None:
        scene = adaptive(source_bounds={"counts": {"source-0": pair(lower=3)}})
        scene.start(2)
        scene.submit(FACTS)
        assert scene.query().state == "WaitingForResources"
        assert matches(orders(scene.executor("9"))[-1], StartQuery, partitions=3)


class TestOrders:
    def test_bounds_are_in_force_before_the_first_batch(self, adaptive: Callable[..., Scene]) -> None:
        scene = adaptive(source_bounds={"counts": {"source-0": pair(lower=2, upper=4)}})
        scene.start(4)
        actions = scene.submit(FACTS)
        assert only(actions, BoundSources).sources == (SourceBounds(least=2, most=4), OPEN)
        assert [type(order) for order in orders(actions)].index(BoundSources) == 0
        assert "source-0 is read in 2 to 4 tasks" in decisions(actions)[0].message

    def test_nothing_is_said_where_nothing_is_declared(self, adaptive: Callable[..., Scene]) -> None:
        scene = adaptive(bounds={"counts": pair(upper=2)})
        scene.start(4)
        assert not [action for action in scene.submit(FACTS) if isinstance(action, BoundSources)]

    def test_a_change_is_in_force_at_once_and_no_restart(self, adaptive: Callable[..., Scene]) -> None:
        scene = adaptive()
        scene.start(2)
        scene.running(2, FACTS)
        actions = request(scene, source_0=(1, 3))
        assert orders(actions) == [only(actions, KeepText), only(actions, BoundSources)]
        assert scene.query().requirements.sources[0] == Bounds(upper=3)
        again = request(scene, source_0=(1, 3))
        assert orders(again) == [only(again, KeepText)]
        assert only(request(scene), BoundSources).sources == (OPEN, OPEN)

    def test_an_order_that_fails_is_said_once(self, adaptive: Callable[..., Scene]) -> None:
        scene = adaptive()
        scene.start(2)
        scene.running(2, FACTS)
        first = only(request(scene, source_0=(1, 3)), BoundSources)
        (said,) = decisions(scene.fail(first, error="this build of Spark has no getBatch"))
        assert (said.reason, said.query) == ("sources_not_bounded", "counts")
        assert said.message == (
            "Source bounds not applied, sources are read as before: this build of Spark has no getBatch"
        )
        second = only(request(scene, source_0=(1, 2)), BoundSources)
        assert not decisions(scene.fail(second, error="this build of Spark has no getBatch"))
        scene.check()

    def test_outcomes_that_never_come_are_not_waited_for(self, adaptive: Callable[..., Scene]) -> None:
        scene = adaptive()
        scene.start(2)
        scene.running(2, FACTS)
        for most in range(2, 40):
            request(scene, source_0=(1, most))
            scene.check()

    def test_what_cannot_be_had_is_said_once(self, adaptive: Callable[..., Scene]) -> None:
        scene = adaptive()
        scene.start(4)
        scene.running(4, FACTS)
        said = [d for d in decisions(request(scene, source_1=(2, 4))) if d.reason == "source_not_divisible"]
        assert [decision.message for decision in said] == [
            ("Cannot read source-1 (RateStream) in 2 tasks or more: its partitions cannot be divided.")
        ]
        assert "source_not_divisible" not in reasons(request(scene, source_1=(2, 4), shuffle=(1, 8)))

    def test_who_only_wants_advice_gets_no_order(self, adaptive: Callable[..., Scene]) -> None:
        scene = adaptive(advise_only=True, source_bounds={"counts": {"source-0": pair(upper=4)}})
        scene.start(4)
        actions = scene.submit(FACTS)
        assert not [action for action in actions if isinstance(action, BoundSources)]
        assert "nothing is changed" in decisions(actions)[0].message

    def test_they_are_ordered_again_when_the_world_is_read_anew(self, adaptive: Callable[..., Scene]) -> None:
        scene = adaptive(source_bounds={"counts": {"source-0": pair(upper=4)}})
        scene.start(4)
        scene.running(4, FACTS)
        info = ev.QueryInfo(facts=FACTS, run="r1", run_state="running", partitions=4)
        actions = scene.start(4, queries=[info])
        assert only(actions, BoundSources).sources[0] == SourceBounds(least=1, most=4)
        assert "source_bounds" not in reasons(actions)

    @pytest.mark.parametrize("anew", [True, False])
    def test_those_of_an_earlier_process_are_lifted(self, adaptive: Callable[..., Scene], anew: bool) -> None:
        scene = adaptive()
        if not anew:
            scene.start(4)
            scene.running(4, FACTS)
        info = ev.QueryInfo(facts=FACTS, run="r1", run_state="running", partitions=4)
        actions = scene.start(4, queries=[info])
        assert only(actions, BoundSources).sources == (OPEN, OPEN)
        assert "source_bounds" not in reasons(actions)

    @pytest.mark.parametrize("settings", [{"mode": "adaptive", "advise_only": True}, {"mode": "reactive"}])
    def test_where_nothing_may_be_ordered_nothing_is_lifted(
        self, stage: Callable[..., Scene], settings: dict[str, Any]
    ) -> None:
        info = ev.QueryInfo(facts=FACTS, run="r1", run_state="running", partitions=4)
        actions = stage(**settings).start(4, queries=[info])
        assert not [action for action in actions if isinstance(action, BoundSources)]

    def test_a_source_that_is_not_there_is_refused(self, adaptive: Callable[..., Scene]) -> None:
        scene = adaptive(source_bounds={"counts": {"source-2": pair(upper=4)}})
        scene.start(4)
        actions = scene.submit(FACTS)
        assert "'source-2' is not a vertex of this query" in decisions(actions)[0].message
        assert not [action for action in actions if isinstance(action, BoundSources)]

    def test_the_policy_file_has_sources_too(self, adaptive: Callable[..., Scene]) -> None:
        scene = adaptive()
        scene.start(4)
        scene.running(4, FACTS)
        file = {"counts": {"source-0": pair(upper=2)}}
        actions = scene.send(ev.PolicyFileChanged, path="policy.yaml", defaults=pair(upper=8), bounds=file)
        assert only(actions, BoundSources).sources == (SourceBounds(least=1, most=2), OPEN)
        # Default bounds apply to the shuffle.
        assert scene.query().requirements.upper == 8


def test_in_reactive_mode_sources_have_no_bounds(stage: Callable[..., Scene]) -> None:
    scene = stage()
    scene.start(2)
    assert [vertex.id for vertex in (scene.submit(FACTS), scene.query())[1].requirements.vertices] == [
        "shuffle"
    ]
