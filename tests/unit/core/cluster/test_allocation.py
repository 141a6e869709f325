"""Tests of how slots are divided among groups."""

from __future__ import annotations

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_elastic.core.bounds.requirements import Bounds, SlotGroup, Vertex, slot_groups
from spark_elastic.core.bounds.shares import allocate

WEIGHTS = st.sampled_from([0.1, 0.5, 1.0, 1.0, 2.0, 3.5])


@st.composite
def groups(draw: st.DrawFn) -> dict[str, SlotGroup]:
    result = {}
    for number in range(draw(st.integers(1, 6))):
        lower = draw(st.integers(1, 20))
        result[f"g{number}"] = SlotGroup(lower, draw(st.integers(lower, 60)), draw(WEIGHTS))
    return result


def some(*bounds: tuple[int, int, float]) -> dict[str, SlotGroup]:
    return {f"g{number}": SlotGroup(*group) for number, group in enumerate(bounds)}


def divided(slots: int, *bounds: tuple[int, int, float]) -> list[int] | None:
    given = allocate(some(*bounds), slots)
    return None if given is None else list(given.values())


@settings(max_examples=100)
@given(groups=groups(), slots=st.integers(0, 300))
def test_shares_keep_within_bounds_and_leave_no_slot_that_is_wanted(
    groups: dict[str, SlotGroup], slots: int
) -> None:
    shares = allocate(groups, slots)
    if slots < sum(group.lower for group in groups.values()):
        assert shares is None
        return
    assert shares is not None
    assert all(group.lower <= shares[name] <= group.upper for name, group in groups.items())
    assert sum(shares.values()) == min(slots, sum(group.upper for group in groups.values()))


@settings(max_examples=100)
@given(groups=groups(), slots=st.integers(0, 300))
def test_with_equal_weights_one_more_slot_takes_nothing_away(
    groups: dict[str, SlotGroup], slots: int
) -> None:
    equal = {name: evolve(group, weight=1.0) for name, group in groups.items()}
    fewer, more = allocate(equal, slots), allocate(equal, slots + 1)
    if fewer is not None:
        assert more is not None
        assert all(more[name] >= share for name, share in fewer.items())


@settings(max_examples=100)
@given(groups=groups(), slots=st.integers(0, 300))
def test_who_could_use_more_has_what_its_weight_says_but_for_less_than_a_slot(
    groups: dict[str, SlotGroup], slots: int
) -> None:
    shares = allocate(groups, slots)
    if shares is None:
        return
    extra = {name: (shares[name] - group.lower) / group.weight for name, group in groups.items()}
    lightest = {name: 1 / group.weight for name, group in groups.items()}
    for name, group in groups.items():
        if shares[name] < group.upper:
            assert all(extra[name] > extra[other] - lightest[name] - lightest[other] for other in groups)


def test_what_is_above_the_lower_bounds_is_divided_by_weight() -> None:
    assert divided(10, (1, 9, 3.0), (1, 9, 1.0)) == [7, 3]
    assert divided(12, (3, 12, 3.0), (1, 9, 1.0)) == [9, 3]
    # of the 6 left over, the shares are 4.5 and 1.5; the heavier group gets the odd slot
    assert divided(10, (3, 9, 3.0), (1, 9, 1.0)) == [8, 2]
    assert divided(4, (1, 8, 3.0), (1, 8, 1.0)) == [3, 1]


def test_what_a_narrow_group_cannot_use_flows_to_the_others() -> None:
    assert divided(12, (1, 3, 10.0), (1, 20, 1.0), (1, 20, 1.0)) == [3, 4, 5]


def test_the_largest_remainders_get_what_is_left() -> None:
    # of the 7 left over: 3.5, 2.1 and 1.4
    assert divided(10, (1, 30, 5.0), (1, 30, 3.0), (1, 30, 2.0)) == [5, 3, 2]
    assert divided(8, (1, 30, 1.0), (1, 30, 1.0), (1, 30, 1.0)) == [2, 3, 3]


def test_lower_bounds_come_first_and_all_of_them_or_none() -> None:
    assert divided(5, (2, 9, 0.1), (3, 9, 100.0)) == [2, 3]
    assert divided(4, (2, 9, 1.0), (3, 9, 1.0)) is None


def test_a_group_is_as_wide_as_its_widest_vertex() -> None:
    vertices = [
        Vertex(id="a", group="g", bounds=Bounds(lower=2, upper=3)),
        Vertex(id="b", group="h", bounds=Bounds(upper=5), weight=2.0),
        Vertex(id="c", group="g", bounds=Bounds(upper=9), weight=0.5),
        Vertex(id="d", group="g", bounds=Bounds(lower=3, upper=99), demands=False),
    ]
    assert slot_groups(vertices) == {"g": SlotGroup(3, 9, 1.0), "h": SlotGroup(1, 5, 2.0)}
