"""Tests of how partitions are cut into ranges, and of the search by bisection."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_elastic.core.batch.balance import Partitions, greatest, least

SIZES = st.lists(st.integers(0, 30), min_size=1, max_size=40)


@settings(max_examples=100)
@given(sizes=SIZES, limit=st.integers(0, 90))
def test_leaping_cuts_where_going_one_by_one_does(sizes: list[int], limit: int) -> None:
    starts: list[int] = []
    read: list[int] = []
    for position, size in enumerate(sizes):
        if read and read[-1] + size <= limit:
            read[-1] += size
        else:
            starts.append(position)
            read.append(size)
    partitions = Partitions(sizes)
    assert partitions.cut(limit) == starts
    assert partitions.sizes_of(starts) == read


@settings(max_examples=100)
@given(sizes=SIZES, limit=st.integers(0, 90), enough=st.integers(0, 40))
def test_counting_may_stop_when_it_is_too_many(sizes: list[int], limit: int, enough: int) -> None:
    partitions = Partitions(sizes)
    assert (partitions.count(limit, enough) <= enough) == (partitions.count(limit) <= enough)


def test_ranges_without_bytes_join_a_neighbour() -> None:
    assert Partitions([0, 5, 0, 5, 0]).without_empty([0, 1, 2, 3, 4]) == [0, 3]
    assert Partitions([5, 0, 5]).without_empty([0, 1, 2]) == [0, 2]
    assert Partitions([0, 0]).without_empty([0, 1]) == [0]


@settings(max_examples=100)
@given(low=st.integers(-20, 20), high=st.integers(-20, 20), edge=st.integers(-25, 25))
def test_halving_finds_what_trying_finds(low: int, high: int, edge: int) -> None:
    tried = [number for number in range(low, high + 1) if number >= edge]
    assert least(lambda number: number >= edge, low, high) == min(tried, default=None)
    tried = [number for number in range(low, high + 1) if number <= edge]
    assert greatest(lambda number: number <= edge, low, high) == max(tried, default=None)


@settings(max_examples=100)
@given(count=st.integers(1, 60), data=st.data())
def test_an_even_split_leaves_nothing_out_and_differs_by_one_at_most(count: int, data: st.DataObject) -> None:
    tasks = data.draw(st.integers(1, count))
    starts = Partitions([1] * count).cut_evenly(tasks)
    assert starts[0] == 0
    sizes = [end - start for start, end in pairwise([*starts, count])]
    assert (len(sizes), sum(sizes)) == (tasks, count)
    assert 1 <= min(sizes) <= max(sizes) <= min(sizes) + 1


@pytest.mark.parametrize(("count", "tasks"), [(3, 4), (3, 0), (0, 1)])
def test_more_tasks_than_there_is_to_split_is_an_error(count: int, tasks: int) -> None:
    with pytest.raises(ValueError, match=f"{count} cannot be split between {tasks} tasks"):
        Partitions([1] * count).cut_evenly(tasks)
