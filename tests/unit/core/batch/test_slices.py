"""Rows of slices, how they are cut, and what is found by halving."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_elastic.core.batch.even import fed_by, split_evenly, split_pointwise
from spark_elastic.core.batch.search import greatest, least
from spark_elastic.core.batch.slices import Slices
from spark_elastic.core.batch.spans import clip, gather, merge

WEIGHTS = st.lists(st.integers(0, 30), min_size=1, max_size=40)


@settings(max_examples=100, deadline=None)
@given(weights=WEIGHTS, limit=st.integers(0, 90), data=st.data())
def test_leaping_and_walking_are_the_same_where_nothing_is_shared(
    weights: list[int], limit: int, data: st.DataObject
) -> None:
    breaks = data.draw(st.lists(st.integers(0, len(weights) - 1), max_size=3))
    parts = {place: ((place, weight),) for place, weight in enumerate(weights)}
    leaping = Slices(weights=weights, breaks=breaks)
    walking = Slices(weights=weights, breaks=breaks, parts=parts)
    assert leaping.cut(limit) == walking.cut(limit)
    assert leaping.sizes(leaping.cut(limit)) == walking.sizes(walking.cut(limit))


@settings(max_examples=100, deadline=None)
@given(weights=WEIGHTS, limit=st.integers(0, 90), enough=st.integers(0, 40))
def test_counting_may_stop_when_it_is_too_many(weights: list[int], limit: int, enough: int) -> None:
    slices = Slices(weights=weights)
    assert (slices.count(limit, enough) <= enough) == (slices.count(limit) <= enough)


def test_what_slices_have_in_common_counts_once_in_a_range() -> None:
    # One side in three pieces of 10, each read with all of the other side, 50.
    parts = {place: ((place, 10), (9, 50)) for place in range(3)}
    slices = Slices(weights=[60, 60, 60], parts=parts)
    assert slices.cut(70) == [0, 2]
    assert slices.sizes([0, 2]) == [70, 60]


def test_ranges_without_bytes_join_a_neighbour_but_not_across_a_break() -> None:
    assert Slices(weights=[0, 5, 0, 5, 0]).without_empty([0, 1, 2, 3, 4]) == [0, 3]
    assert Slices(weights=[5, 0, 5], breaks=[1]).without_empty([0, 1, 2]) == [0, 1]
    assert Slices(weights=[0, 0]).without_empty([0, 1]) == [0]


@settings(max_examples=100, deadline=None)
@given(low=st.integers(-20, 20), high=st.integers(-20, 20), edge=st.integers(-25, 25))
def test_halving_finds_what_trying_finds(low: int, high: int, edge: int) -> None:
    tried = [number for number in range(low, high + 1) if number >= edge]
    assert least(lambda number: number >= edge, low, high) == min(tried, default=None)
    tried = [number for number in range(low, high + 1) if number <= edge]
    assert greatest(lambda number: number <= edge, low, high) == max(tried, default=None)


@settings(max_examples=100, deadline=None)
@given(count=st.integers(1, 60), data=st.data())
def test_an_even_split_leaves_nothing_out_and_differs_by_one_at_most(count: int, data: st.DataObject) -> None:
    tasks = data.draw(st.integers(1, count))
    spans = split_evenly(count, tasks)
    assert [place for span in spans for place in range(*span)] == list(range(count))
    sizes = {end - start for start, end in spans}
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(("count", "tasks"), [(3, 4), (3, 0), (0, 1)])
def test_more_tasks_than_there_is_to_split_is_an_error(count: int, tasks: int) -> None:
    with pytest.raises(ValueError, match=f"{count} cannot be split between {tasks} tasks"):
        split_evenly(count, tasks)


@settings(max_examples=100, deadline=None)
@given(producers=st.integers(1, 12), tasks=st.integers(1, 40), spare=st.integers(0, 3))
def test_pointwise_tasks_read_every_subpartition_once(producers: int, tasks: int, spare: int) -> None:
    readers = [end - first for first, end in (fed_by(k, producers, tasks) for k in range(producers))]
    written = max(1, *readers) + spare
    cells = [
        (partition, subpartition)
        for blocks in split_pointwise(producers, tasks, written)
        for block in blocks
        for partition in range(*block.partitions)
        for subpartition in range(*block.subpartitions)
    ]
    assert sorted(cells) == [(p, s) for p in range(producers) for s in range(written)]


def test_spans_that_touch_are_one() -> None:
    assert merge([(8, 11), (1, 4), (2, 7), (15, 19), (19, 21)]) == [(1, 7), (8, 11), (15, 21)]


def test_a_span_beyond_everything_is_an_error() -> None:
    assert clip((0, 3), 2) == (0, 2)
    with pytest.raises(ValueError, match="3 to 5 is beyond the 3"):
        clip((3, 5), 3)


def test_cells_are_gathered_into_blocks() -> None:
    cells = [((p, p + 1), (s, s + 1)) for p in range(2) for s in range(3)]
    assert gather([*cells, ((2, 3), (0, 1)), ((2, 3), (2, 3))]) == [
        ((0, 2), (0, 3)),
        ((2, 3), (0, 1)),
        ((2, 3), (2, 3)),
    ]
