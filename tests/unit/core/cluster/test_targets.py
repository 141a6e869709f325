"""Tests of targets: the slots of a query between its bounds where no policy decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_elastic.core import actions as ac
from spark_elastic.core import events as ev
from spark_elastic.core.bounds.declared import WantedBounds
from spark_elastic.core.bounds.requirements import Bounds, SlotGroup, Vertex, needed_slots, slot_groups
from spark_elastic.core.bounds.shares import allocate
from tests.unit.core.builder import STATEFUL, STATELESS, Scene, only

Stage = Callable[..., Scene]
COUNT = st.integers(1, 20)


def divided(slots: int, **groups: SlotGroup) -> dict[str, int]:
    given = allocate(groups, slots)
    assert given is not None
    return dict(given)


@pytest.mark.parametrize(
    ("slots", "shares"),
    [
        # Lower bounds come first, then targets.
        (3, (2, 1)),
        (6, (5, 1)),
        # Slots left over are divided as if there were no targets: of two, one each.
        (8, (6, 2)),
        (40, (8, 20)),
    ],
)
def test_targets_are_met_before_anybody_has_more_than_that(slots: int, shares: tuple[int, int]) -> None:
    groups = {"a": SlotGroup(1, 8, target=5), "b": SlotGroup(1, 20)}
    assert tuple(divided(slots, **groups).values()) == shares


def test_of_several_targets_what_there_is_is_divided_by_weight() -> None:
    groups = {"a": SlotGroup(1, 20, 3.0, target=10), "b": SlotGroup(1, 20, target=10), "c": SlotGroup(1, 20)}
    assert divided(7, **groups) == {"a": 4, "b": 2, "c": 1}
    assert divided(21, **groups) == {"a": 10, "b": 10, "c": 1}


@settings(max_examples=100)
@given(
    groups=st.dictionaries(
        st.sampled_from("abcde"),
        st.tuples(COUNT, COUNT, COUNT, st.booleans()).map(
            lambda it: SlotGroup(it[0], sum(it[:3]), target=it[0] + it[1] if it[3] else 0)
        ),
        min_size=1,
    ),
    slots=st.integers(0, 400),
)
def test_nobody_has_more_than_its_target_while_another_has_less(
    groups: dict[str, SlotGroup], slots: int
) -> None:
    shares = allocate(groups, slots)
    if shares is None:
        assert slots < sum(group.lower for group in groups.values())
        return
    assert sum(shares.values()) == min(slots, sum(group.upper for group in groups.values()))
    assert all(group.lower <= shares[name] <= group.upper for name, group in groups.items())
    if any(shares[name] < group.target for name, group in groups.items()):
        assert all(shares[name] <= max(group.lower, group.target) for name, group in groups.items())


def vertex(**more: Any) -> Vertex:
    return Vertex(id="shuffle", group="g", bounds=Bounds(lower=1, upper=8, target=3), **more)


def test_what_a_policy_grants_outranks_it() -> None:
    assert slot_groups([vertex()])["g"] == SlotGroup(1, 8, target=3, wanted=3)
    assert slot_groups([vertex(granted=6)])["g"] == SlotGroup(1, 6, target=0, wanted=6)


def test_a_group_wants_as_much_as_the_vertex_that_wants_most() -> None:
    other = Vertex(id="shuffle", group="g", bounds=Bounds(upper=5))
    assert slot_groups([vertex(), other])["g"] == SlotGroup(1, 8, target=3, wanted=5)


@pytest.mark.parametrize("target", [0, 1, 7])
def test_it_is_within_the_bounds(target: int) -> None:
    with pytest.raises(ValueError, match=f"target {target} is not within 2 to 6"):
        Bounds(lower=2, upper=6, target=target)


def world(stage: Stage, *, target: int | None = 3, upper: int = 6, **more: Any) -> Scene:
    bounds = {"counts": WantedBounds(lower=1, upper=upper, target=target)}
    return stage(mode="adaptive", rescale_policy="always", cooldown_ms=0, bounds=bounds, **more)


def test_executors_are_requested_for_it_and_not_for_the_upper_bound(stage: Stage) -> None:
    scene = world(stage)
    scene.start(1)
    assert only(scene.submit(), ac.RequestExecutors).total == 3
    assert needed_slots([scene.scheduler.queries["counts"].requirements], 32_768) == 3


@pytest.mark.parametrize(("slots", "waits"), [(2, True), (3, False), (6, False)])
def test_a_start_waits_for_no_more_than_it_and_uses_what_is_there(
    stage: Stage, slots: int, waits: bool
) -> None:
    scene = world(stage, submission_stabilization_ms=10_000)
    scene.start(*[1] * slots)
    starts = [one for one in scene.submit() if isinstance(one, ac.StartQuery)]
    if waits:
        assert starts == []
        starts = [one for one in scene.advance(10_000) if isinstance(one, ac.StartQuery)]
    assert [start.partitions for start in starts] == [slots]


def test_it_is_asked_for_with_bounds_and_goes_with_them(stage: Stage) -> None:
    scene = world(stage, target=None)
    scene.start(1)
    scene.submit(STATEFUL)
    bounds = {"shuffle": (1, 6)}

    def ask(**targets: int) -> Bounds:
        scene.send(ev.RequirementsRequested, query="counts", bounds=bounds, targets=targets, by="somebody")
        return scene.scheduler.queries["counts"].declared.shuffle.bounds

    assert ask(shuffle=4) == Bounds(lower=1, upper=6, target=4)
    assert ask() == Bounds(lower=1, upper=6)


def test_two_queries_have_their_targets_first(stage: Stage) -> None:
    names = {"a": WantedBounds(lower=1, upper=8, target=4), "b": WantedBounds(lower=1, upper=8)}
    scene = stage(mode="adaptive", rescale_policy="always", bounds=names, submission_stabilization_ms=0)
    scene.start(*[1] * 5)
    for name in names:
        scene.submit(evolve(STATELESS, query=name, name=name))
    shares = {name: view.share.slots for name, view in scene.scheduler.queries.items()}
    assert shares == {"a": 4, "b": 1}
