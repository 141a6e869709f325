"""Tests of several policies in a row: what each one sees, which one decides, and the limits behind them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from attrs import evolve, frozen
from hypothesis import given
from hypothesis import strategies as st

from spark_elastic.core.actions import Decision, Report, RequestExecutors
from spark_elastic.core.policies import planner
from spark_elastic.core.policies.custom import Chain
from spark_elastic.core.policies.limits import grant, narrowed
from spark_elastic.core.policies.planner import POLICIES
from spark_elastic.core.policies.policy import Policy, QueryWish, Wish
from spark_elastic.core.policies.view import Allowed, ClusterView, SlotLimits, allowed
from tests.unit.core.builder import STATELESS, Scene
from tests.unit.core.policies.seen import bounds, query, view
from tests.unit.core.policies.world import SETTINGS, World


@frozen
class Says:
    """A policy that always has the same wish, and keeps the views it has seen."""

    wish: Wish
    seen: list[ClusterView]

    def decide(self, view: ClusterView) -> Wish:
        self.seen.append(view)
        return self.wish


def says(slots: int | None = None, limits: tuple[SlotLimits, ...] = (), **fields: Any) -> Says:
    queries = {} if slots is None else {"q": QueryWish(slots=slots, reason="autoscale_idle")}
    return Says(Wish(queries=queries, limits={"q": limits} if limits else {}, **fields), [])


def limit(lower: int | None = None, upper: int | None = None, by: str = "the test") -> SlotLimits:
    return SlotLimits(lower=lower, upper=upper, by=by)


def test_the_last_that_names_a_number_decides() -> None:
    chain = Chain([says(3), says(7), says()])
    assert chain.decide(view(query())).queries["q"].slots == 7


def test_later_members_see_the_limits_of_those_before_and_not_the_other_way_round() -> None:
    first, second, third = says(limits=(limit(2, 9),)), says(limits=(limit(4, 20),)), says(5)
    wish = Chain([first, second, third]).decide(view(query(requirements=bounds(1, 64))))
    seen = [
        (one.lower, one.upper) for said in (first, second, third) for one in said.seen[0].queries.values()
    ]
    assert seen == [(1, 64), (2, 9), (4, 9)]
    assert wish.limits["q"] == (limit(2, 9), limit(4, 20))
    assert third.seen[0].queries["q"].requirements == bounds(1, 64), "what was declared is still to be seen"


def test_what_is_said_of_the_application_adds_up() -> None:
    chain = Chain(
        [says(executors=3, executors_by="a", until=50), says(executors=5, executors_by="b", until=70)]
    )
    wish = chain.decide(view())
    assert (wish.executors, wish.executors_by, wish.until) == (5, "b", 50)
    nothing = Chain([says(), says()]).decide(view())
    assert (nothing.executors, nothing.until) == (None, None)


def test_limits_for_a_query_that_is_not_there_are_left_out() -> None:
    assert Chain([says(limits=(limit(2),))]).decide(view()).limits == {}


@pytest.mark.parametrize(
    ("slots", "granted", "reason", "by"),
    [
        (5, 5, None, ""),
        (9, 6, "wish_above_limit", "the test"),
        (1, 3, "wish_below_limit", "the test"),
    ],
)
def test_a_wish_is_trimmed_to_limits_and_it_says_whose(
    slots: int, granted: int, reason: str | None, by: str
) -> None:
    seen = view(query(requirements=bounds(2, 20)))
    found = grant(Chain([says(limits=(limit(3, 6),)), says(slots)]).decide(seen), seen)["q"]
    assert (found.slots, found.reason, found.by) == (granted, reason, by)


def test_a_limit_beyond_the_declared_bounds_is_trimmed_to_them() -> None:
    assert allowed(2, 8, [limit(10, 20)]) == Allowed(lower=8, upper=8, lower_by="the test")
    seen = view(query(requirements=bounds(4, 8)))
    assert grant(Chain([says(limits=(limit(upper=2),)), says(6)]).decide(seen), seen)["q"].slots == 4


def test_limits_that_contradict_themselves_are_refused() -> None:
    with pytest.raises(ValueError, match="above"):
        limit(5, 4)
    with pytest.raises(ValueError, match="lower"):
        limit(0)


RANGES = st.tuples(st.integers(1, 40), st.integers(0, 40)).map(lambda pair: (pair[0], sum(pair)))
LIMITS = st.lists(
    st.one_of(
        RANGES.map(lambda pair: limit(*pair)),
        st.integers(1, 60).map(lambda lower: limit(lower)),
        st.integers(1, 60).map(lambda upper: limit(None, upper)),
    ),
    max_size=4,
)


@given(declared=RANGES, limits=LIMITS, slots=st.none() | st.integers(1, 80))
def test_whatever_is_stated_stays_within_what_is_declared(
    declared: tuple[int, int], limits: list[SlotLimits], slots: int | None
) -> None:
    may = allowed(*declared, limits)
    assert declared[0] <= may.lower <= may.upper <= declared[1]
    assert (may.lower_by is None) == (may.lower == declared[0])
    assert (may.upper_by is None) == (may.upper == declared[1])
    for count in range(1, len(limits)):
        before = allowed(*declared, limits[:count])
        assert before.lower <= may.lower, "what was stated first counts most"
        assert may.upper <= before.upper
    found = narrowed(bounds(*declared), slots, tuple(limits))
    assert (found.lower, found.upper) == declared, "its state would be moved into limits"
    assert found.groups["q"].lower == declared[0], "a start would wait for limits"
    assert declared[0] <= found.groups["q"].upper <= declared[1]
    found.validate()


def scene(monkeypatch: pytest.MonkeyPatch, policies: Mapping[str, Policy], **fields: Any) -> Scene:
    monkeypatch.setattr(planner, "POLICIES", policies)
    return Scene(evolve(SETTINGS, policy=tuple(policies), **fields))


def decisions(scene: Scene) -> list[Decision]:
    return [action.decision for action in scene.actions if isinstance(action, Report)]


def of_enrich(said: Says) -> Says:
    """Apply the wish for `q` to the query of the scene."""
    wish = said.wish
    named: dict[str, Any] = {"queries": {}, "limits": {}}
    for of in wish.queries:
        named["queries"] = {"enrich": wish.queries[of]}
    for of in wish.limits:
        named["limits"] = {"enrich": wish.limits[of]}
    return Says(evolve(wish, **named), [])


def test_limits_alone_are_in_force(monkeypatch: pytest.MonkeyPatch) -> None:
    one = scene(monkeypatch, {"limits": of_enrich(says(limits=(limit(2, 3, by="the window noon"),)))})
    one.start(8)
    one.running(3, STATELESS)
    found = one.query("enrich")
    assert (found.share.slots, found.requirements.upper) == (3, 32_768)
    said = [decision.message for decision in decisions(one) if decision.reason == "slots_limited"]
    assert said == ["Slot limits: 2 to 3, by the window noon."]
    one.check()


def test_a_lower_limit_without_an_upper_one_is_requested(monkeypatch: pytest.MonkeyPatch) -> None:
    one = scene(monkeypatch, {"limits": of_enrich(says(limits=(limit(6),)))})
    one.start(2)
    one.running(2, STATELESS)
    assert [action.total for action in one.actions if isinstance(action, RequestExecutors)] == [3]
    assert one.query("enrich").share.suffices, "its start would wait for the limit, and fail without it"
    one.check()


def test_a_number_that_is_trimmed_says_who_trims_it(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = of_enrich(says(limits=(limit(upper=3, by="the window noon"),)))
    one = scene(monkeypatch, {"limits": limits, "numbers": of_enrich(says(7))})
    one.start(8)
    one.running(3, STATELESS)
    assert one.query("enrich").granted_slots == 3
    said = [decision.message for decision in decisions(one) if decision.reason == "autoscale_idle"]
    assert said[0].endswith("Limited to 3 by the window noon.")
    one.check()


def test_who_is_only_advised_keeps_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    one = scene(
        monkeypatch, {"limits": of_enrich(says(limits=(limit(2, 3),), executors=5))}, advise_only=True
    )
    one.start(8)
    one.running(8, STATELESS)
    assert one.query("enrich").share.slots == 8
    assert not [action for action in one.actions if isinstance(action, RequestExecutors)]
    said = [decision.message for decision in decisions(one) if decision.reason == "slots_limited"]
    assert said[0].endswith("nothing is changed.")
    one.check()


def test_executors_are_wanted_before_there_is_any_query(monkeypatch: pytest.MonkeyPatch) -> None:
    one = scene(monkeypatch, {"least": says(executors=4, executors_by="the window noon")})
    one.start(1)
    assert [action.total for action in one.actions if isinstance(action, RequestExecutors)] == [4]
    said = [decision.message for decision in decisions(one) if decision.reason == "executors_at_least"]
    assert said == ["Request 1 → 4 executors: required by the window noon."]
    one.check()


def test_policies_are_asked_again_when_one_says_so_though_nothing_happens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[int] = []

    class Minutely:
        def decide(self, view: ClusterView) -> Wish:
            seen.append(view.at)
            return Wish(until=view.at + 60_000)

    one = scene(monkeypatch, {"minutely": Minutely()})
    one.start(1)
    one.advance(59_000)
    assert len(seen) == 1
    one.advance(62_000)
    assert [at - seen[0] for at in seen] == [0, 60_000, 120_000]


def test_who_wants_nothing_any_more_leaves_the_declared_bounds_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    wish = of_enrich(says(2, limits=(limit(upper=4),))).wish

    class Once:
        def decide(self, view: ClusterView) -> Wish:
            return wish if view.at < 1_002_000 else Wish()

    one = scene(monkeypatch, {"once": Once()})
    one.start(8)
    one.running(2, STATELESS)
    assert one.query("enrich").share.slots == 2
    one.advance(2_000)
    one.batch(50, 2, "enrich")
    one.advance(2_000)
    assert (one.query("enrich").granted_slots, one.query("enrich").share.slots) == (None, 8)
    assert "slots_not_limited" in [decision.reason for decision in decisions(one)]
    one.check()


def test_autoscale_decides_within_the_limits_of_another_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = says(limits=(limit(3, 5, by="the window noon"),))
    monkeypatch.setattr(planner, "POLICIES", {**POLICIES, "limits": limits})
    world = World(evolve(SETTINGS, policy=("limits", "autoscale")))
    world.start(1)
    world.query(lambda second: 100 if second < 600 else 20_000)
    world.run(590)
    assert {granted for _, _, granted in world.seen[60:]} == {3}
    world.run(600)
    assert max(granted for _, _, granted in world.seen) == 5
    assert world.executors == 5
    world.scene.check()
