"""Slots: shared out between groups of vertices."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from spark_elastic.core.bounds.requirements import Bounds, Vertex, desired_slots, needed_slots
from spark_elastic.core.rescale.allocation import allocate


@st.composite
def vertices(draw: st.DrawFn) -> list[Vertex]:
    result = []
    for number in range(draw(st.integers(1, 6))):
        lower = draw(st.integers(1, 20))
        bounds = Bounds(lower=lower, upper=draw(st.integers(lower, 60)))
        result.append(Vertex(id=f"v{number}", group=draw(st.sampled_from("abc")), bounds=bounds))
    return result


@settings(max_examples=50, deadline=None)
@given(vertices=vertices(), slots=st.integers(0, 300))
def test_shares_keep_within_bounds_and_slots(vertices: list[Vertex], slots: int) -> None:
    shares = allocate(vertices, slots)
    if slots < needed_slots(vertices):
        assert shares is None
        return
    assert shares is not None
    for vertex in vertices:
        assert vertex.bounds.lower <= shares[vertex.id] <= vertex.bounds.upper
    groups = {vertex.group for vertex in vertices}
    used = sum(max(shares[v.id] for v in vertices if v.group == group) for group in groups)
    assert used <= min(slots, desired_slots(vertices))


@settings(max_examples=50, deadline=None)
@given(vertices=vertices(), slots=st.integers(0, 300))
def test_one_more_slot_takes_nothing_away(vertices: list[Vertex], slots: int) -> None:
    fewer, more = allocate(vertices, slots), allocate(vertices, slots + 1)
    if fewer is not None:
        assert more is not None
        assert sum(more.values()) >= sum(fewer.values())
