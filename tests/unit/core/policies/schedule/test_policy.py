"""Tests of the policy `schedule`: alone, before `autoscale`, for single queries, and in excluded periods."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from spark_elastic.core.actions import Report, RequestExecutors
from spark_elastic.core.keys import policies
from spark_elastic.core.policies.policy import Wish
from spark_elastic.core.policies.schedule import Schedule
from spark_elastic.core.policies.view import QueryMetrics, SlotLimits, allowed
from tests.unit.core.builder import STATELESS, Scene
from tests.unit.core.policies import world
from tests.unit.core.policies.seen import SETTINGS, query, view
from tests.unit.core.policies.world import World

HOUR = 3_600_000
NOON = 1_767_571_200_000 + 12 * HOUR
"""Monday, 5 January 2026, 12:00 UTC."""

DAY = "0 8 * * * for 10h name=day lowerBound=4 upperBound=8 minExecutors=3"


def set_(windows: str = DAY, excluded: str = "none", **fields: Any) -> dict[str, Any]:
    return {
        "policy": ("schedule", "autoscale"),
        "schedule_windows": policies.WINDOWS.kind.parse(windows),
        "schedule_excluded": policies.EXCLUDED.kind.parse(excluded),
        **fields,
    }


def decide(
    *queries: QueryMetrics, at: int = NOON, settings: dict[str, Any] | None = None, **fields: Any
) -> Wish:
    application = evolve(SETTINGS, **(settings or {}))
    seen = view(*queries, at=at, settings=application, **fields)
    assert Schedule().decide(seen) == Schedule().decide(seen)
    return Schedule().decide(seen)


def test_it_states_limits_and_no_number() -> None:
    wish = decide(query(settings=set_()))
    assert wish.queries == {}
    assert wish.limits["q"] == (
        SlotLimits(lower=4, by="the window day"),
        SlotLimits(upper=8, by="the window day"),
    )
    assert (wish.executors, wish.executors_by) == (3, "the window day")
    assert wish.until == NOON + 6 * HOUR - 60_000


def test_outside_of_all_windows_it_states_nothing_and_wants_to_be_asked_before_the_next() -> None:
    wish = decide(query(settings=set_(schedule_lead_ms=120_000)), at=NOON + 7 * HOUR)
    assert (wish.limits, wish.executors) == ({}, None)
    assert wish.until == NOON + 20 * HOUR - 120_000


@pytest.mark.parametrize(
    ("startups", "lead", "ahead"),
    [
        ((), None, 60_000),
        ((20_000, 90_000, 30_000), None, 90_000),
        ((20_000,), 300_000, 300_000),
        ((9 * HOUR,), None, HOUR),
    ],
)
def test_executors_are_wanted_so_long_before_as_they_take_to_come(
    startups: tuple[int, ...], lead: int | None, ahead: int
) -> None:
    begin = NOON + 20 * HOUR
    own = query(settings=set_(schedule_lead_ms=lead))
    assert decide(own, at=begin - ahead - 1, startups_ms=startups).limits == {}
    found = decide(own, at=begin - ahead, startups_ms=startups)
    assert (allowed(1, 64, found.limits["q"]).lower, found.executors) == (4, 3)


def test_each_query_has_its_own_windows_and_the_application_its_executors() -> None:
    queries = (
        query(query="a", settings=set_()),
        query(query="b", settings=set_("0 0 * * * for 1d lowerBound=2 minExecutors=7")),
        query(query="c", settings=set_("none")),
        query(query="d", settings=set_(policy=("autoscale",))),
    )
    wish = decide(*queries, settings=set_("0 0 * * * for 1d name=all minExecutors=5"))
    assert {name: allowed(1, 64, limits).lower for name, limits in wish.limits.items()} == {"a": 4, "b": 2}
    assert wish.executors == 7


def test_without_any_query_the_application_has_its_executors() -> None:
    assert decide(settings=set_()).executors == 3
    assert decide(settings=set_(policy=("autoscale",))).executors is None


def held(excluded: str, granted: int | None, **fields: Any) -> tuple[int, int]:
    own = query(settings=set_(excluded=excluded), granted=granted, **fields)
    may = allowed(1, 64, decide(own, settings=own_settings(own)).limits.get("q", ()))
    return may.lower, may.upper


def own_settings(one: QueryMetrics) -> dict[str, Any]:
    return {"policy": one.settings.policy}


def test_in_an_excluded_period_a_query_keeps_what_it_was_granted() -> None:
    assert held("0 11 * * * for 2h name=x", 6) == (6, 6)
    assert held("0 11 * * * for 2h name=x", 2) == (2, 2), "not even a window changes it"
    assert held("0 13 * * * for 2h name=x", 2) == (4, 8), "not yet"


def test_in_one_that_allows_scaling_up_it_keeps_that_at_least() -> None:
    up = "0 11 * * * for 2h name=x allow=scaleUp"
    assert held(up, 6) == (6, 8)
    assert held(up, 2) == (4, 8)
    assert held(up, 12) == (12, 12)


def test_a_query_without_a_grant_keeps_the_limits_that_it_had() -> None:
    before = (SlotLimits(lower=2, upper=20, by="the window night"),)
    assert held("0 11 * * * for 2h", None, limited=before) == (2, 20)
    assert held("0 11 * * * for 2h", None) == (1, 64)
    assert held("0 11 * * * for 2h allow=scaleUp", None, limited=before) == (4, 20)
    assert held("0 11 * * * for 2h allow=scaleUp", None) == (4, 64)


@pytest.mark.parametrize(
    ("excluded", "before", "executors"),
    [
        ("0 11 * * * for 2h name=x", 0, None),
        ("0 11 * * * for 2h name=x", 9, 9),
        ("0 11 * * * for 2h name=x allow=scaleUp", 0, 3),
        ("0 11 * * * for 2h name=x allow=scaleUp", 9, 9),
    ],
)
def test_executors_are_kept_as_well(excluded: str, before: int, executors: int | None) -> None:
    assert decide(settings=set_(excluded=excluded), least_executors=before).executors == executors


def test_it_is_asked_again_when_an_excluded_period_begins_and_ends() -> None:
    settings = set_("none", "0 13 * * * for 2h")
    assert decide(settings=settings).until == NOON + HOUR
    assert decide(settings=settings, at=NOON + HOUR).until == NOON + 3 * HOUR


# With a scheduler


def scene(start: int, **fields: Any) -> Scene:
    one = Scene(evolve(world.SETTINGS, **set_(**fields)))
    one.now = start
    return one


def requested(one: Scene) -> list[int]:
    return [action.total for action in one.actions if isinstance(action, RequestExecutors)]


def said(one: Scene, reason: str) -> list[str]:
    reports = [action.decision for action in one.actions if isinstance(action, Report)]
    return [decision.message for decision in reports if decision.reason == reason]


def told(one: Scene) -> list[str]:
    return [action.decision.message for action in one.actions if isinstance(action, Report)]


def test_executors_of_a_window_are_requested_before_it_begins_though_no_query_needs_them() -> None:
    one = scene(NOON - 5 * HOUR, policy=("schedule",))
    one.start(1)
    assert requested(one) == []
    one.advance(HOUR - 61_000)
    assert requested(one) == []
    one.advance(2_000)
    assert requested(one) == [3]
    assert said(one, "executors_at_least") == ["Request 1 → 3 executors: required by the window day."]
    one.check()


def test_alone_the_limits_of_its_windows_are_in_force() -> None:
    one = scene(NOON + 5 * HOUR, policy=("schedule",))
    one.start(4, 4, 4)
    one.running(8, STATELESS)
    assert one.query("enrich").share.slots == 8
    one.advance(2 * HOUR)
    assert one.query("enrich").share.slots == 12
    assert said(one, "slots_limited") == ["Slot limits: 4 to 8, by the window day."]
    assert said(one, "slots_not_limited") == ["Slot limits lifted, only declared bounds apply."]
    one.check()


def test_a_measured_query_goes_no_lower_than_its_window_and_no_higher() -> None:
    day = World(evolve(world.SETTINGS, **set_()))
    day.scene.now = day.began = NOON
    day.start(1)
    day.query(lambda second: 100 if second < 600 else 30_000)
    day.run(300)
    assert (day.executors, day.seen[-1][2]) == (4, 4)
    day.run(900)
    assert (day.executors, day.seen[-1][2]) == (8, 8)
    assert any(message.endswith("Limited to 8 by the window day.") for message in told(day.scene))
    day.scene.check()


def test_in_an_excluded_period_no_executor_comes_or_goes() -> None:
    settings = set_("none", "30 12 * * * for 1h name=sale")
    busy = World(evolve(world.SETTINGS, **settings))
    busy.scene.now = busy.began = NOON
    busy.start(2)
    busy.query(lambda second: 2_000 if second < 2_000 else 5_000)
    busy.run(1_780)
    before = busy.executors
    busy.run(3_500)
    assert {executors for _, executors, _ in busy.seen[1_790:]} == {before}
    busy.run(600)
    assert busy.executors > before + 1
    assert any("the excluded period sale" in message for message in told(busy.scene))
    busy.scene.check()


def test_what_is_saved_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    one = scene(NOON, excluded="0 20 * * * for 1h")
    one.start(4)
    one.running(4, STATELESS)
    again = one.scheduler.restore(one.scheduler.save())
    assert again == one.scheduler


def test_a_query_that_starts_in_an_excluded_period_keeps_what_it_begins_with() -> None:
    new = World(evolve(world.SETTINGS, **set_("none", "0 12 * * * for 1h name=sale")))
    new.scene.now = new.began = NOON
    new.start(3)
    new.query(lambda _: 20_000)
    new.run(900)
    assert {(executors, granted) for _, executors, granted in new.seen[5:]} == {(3, 3)}
    new.scene.check()
