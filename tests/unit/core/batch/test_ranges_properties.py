"""What holds for the ranges of any group: every byte is read once, within bounds, as evenly as can be."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_elastic.core.batch.front import BatchDecider
from spark_elastic.core.batch.questions import Ranges, RangesAnswer, Spec, WrittenExchange
from spark_elastic.core.batch.settings import BatchSettings
from tests.unit.core.batch.builder import MIB, read_by, specs_of, written

VOLUME = 100 * MIB
SKEWED = 120 * MIB
SIZES = st.one_of(st.integers(0, 60), st.sampled_from([0, 0, 1, 30, 150, 900])).map(lambda size: size * MIB)


def settings_of(**facts: Any) -> BatchSettings:
    return BatchSettings(avg_data_volume_per_task=VOLUME, skew_threshold=SKEWED, **facts)


SETTINGS = st.builds(
    settings_of,
    preset=st.sampled_from(["elastic", "flink"]),
    min_parallelism=st.integers(1, 5),
    max_parallelism=st.integers(5, 30),
    skew_factor=st.sampled_from([0.5, 2.0, 4.0]),
)


@st.composite
def sides(draw: st.DrawFn) -> tuple[WrittenExchange, WrittenExchange]:
    """Make both sides of a join; some partitions come with what each map task has written."""
    count = draw(st.integers(1, 15))
    hot = draw(st.integers(0, count - 1)) if draw(st.booleans()) else None
    result = []
    for side in ("left", "right"):
        maps = draw(st.integers(1, 5))
        sizes = draw(st.lists(SIZES, min_size=count, max_size=count))
        if hot is not None:
            sizes[hot] = draw(st.integers(300, 900)) * MIB
        large = {}
        for place, size in enumerate(sizes):
            if size > SKEWED and draw(st.sampled_from([True, True, True, False])):
                large[place] = [size // maps + (1 if number < size % maps else 0) for number in range(maps)]
        result.append(written(sizes, side=side, id=side, large=large))
    return result[0], result[1]


QUESTIONS = st.builds(
    Ranges,
    group=st.just("g"),
    exchanges=sides(),
    slots=st.integers(0, 12),
    join=st.sampled_from(["inner", "left_outer", "right_outer", "full_outer"]),
)


def ask(question: Ranges, chosen: BatchSettings) -> RangesAnswer:
    answer = BatchDecider(settings=chosen).answer(question)
    assert isinstance(answer, RangesAnswer)
    return answer


@settings(max_examples=250, deadline=None)
@given(question=QUESTIONS, chosen=SETTINGS)
def test_everything_is_read_once_in_order_and_within_bounds(question: Ranges, chosen: BatchSettings) -> None:
    reads_once(question, chosen)


@pytest.mark.parametrize("upper", range(1, 18))
def test_whatever_the_upper_bound_pieces_make_up_blocks(upper: int) -> None:
    left = written([9 * MIB] * 3, side="left", large={1: [200 * MIB, 130 * MIB, 170 * MIB]})
    right = written([9 * MIB] * 3, side="right", large={1: [40 * MIB] * 4 + [150 * MIB]})
    question = Ranges(group="g", exchanges=(left, right), slots=2, join="inner", upper=upper)
    reads_once(question, settings_of(max_parallelism=20))


def reads_once(question: Ranges, chosen: BatchSettings) -> None:
    specs = specs_of(ask(question, chosen))
    count = len(question.exchanges[0].bytes)
    assert specs[0].start == 0
    assert specs[-1].end == count
    for before, after in pairwise(specs):
        assert after.start == before.end or (before.maps and after.maps and after.start == before.start)
    assert all(spec.start < spec.end for spec in specs)
    for partition in {spec.start for spec in specs if spec.maps}:
        meets_once(question.exchanges, partition, [spec for spec in specs if spec.start == partition])
    assert min(chosen.min_parallelism, count) <= len(specs) <= chosen.bounds(question.slots).upper


def meets_once(exchanges: Sequence[WrittenExchange], partition: int, specs: Sequence[Spec]) -> None:
    """Check that each row of a split partition meets each of the other side in one task."""
    met = []
    for spec in specs:
        assert spec.end == partition + 1
        left, right = (maps_read(exchange, spec, place) for place, exchange in enumerate(exchanges))
        met += [(one, other) for one in left for other in right]
    left, right = (whole(exchange, partition) for exchange in exchanges)
    assert sorted(met) == [(one, other) for one in left for other in right]


def whole(exchange: WrittenExchange, partition: int) -> range:
    """Return the map tasks of a partition, as one if nobody can tell them apart."""
    large = next((large for large in exchange.large if large.partition == partition), None)
    return range(len(large.maps)) if large else range(1)


def maps_read(exchange: WrittenExchange, spec: Spec, place: int) -> range:
    part = next((maps for maps in spec.maps if maps.exchange == place), None)
    return range(part.start, part.end) if part else whole(exchange, spec.start)


@settings(max_examples=50, deadline=None)
@given(question=QUESTIONS, others=st.lists(QUESTIONS, max_size=3), chosen=SETTINGS)
def test_an_answer_depends_on_nothing_but_its_question(
    question: Ranges, others: list[Ranges], chosen: BatchSettings
) -> None:
    decider = BatchDecider(settings=chosen)
    answer = decider.answer(question)
    for other in others:
        decider.answer(other)
    assert decider.answer(question) == answer == ask(question, chosen)


plain = st.lists(SIZES, min_size=2, max_size=14)


@settings(max_examples=150, deadline=None)
@given(sizes=plain, slots=st.integers(0, 9))
def test_the_largest_task_is_as_small_as_so_many_tasks_allow(sizes: list[int], slots: int) -> None:
    # So if any ranges keep the largest within 1.1 times the mean, these do.
    exchange = written(sizes)
    answer = ask(Ranges(group="g", exchanges=(exchange,), slots=slots), settings_of())
    read = [read_by(spec, [exchange]) for spec in specs_of(answer)]
    assert max(read) == least_possible(tuple(sizes), len(read))


@cache
def least_possible(sizes: tuple[int, ...], tasks: int) -> int:
    """Try all ways to cut into `tasks` ranges; return the least bytes that the largest of them can have."""
    if tasks == 1:
        return sum(sizes)
    heads = accumulate(sizes[: len(sizes) - tasks + 1])
    return min(max(head, least_possible(sizes[cut:], tasks - 1)) for cut, head in enumerate(heads, 1))


@settings(max_examples=150, deadline=None)
@given(sizes=plain, slots=st.integers(0, 9))
def test_no_slots_make_a_task_read_more_than_its_volume(sizes: list[int], slots: int) -> None:
    exchange = written(sizes)
    answer = ask(Ranges(group="g", exchanges=(exchange,), slots=slots), settings_of(max_parallelism=100))
    for spec in specs_of(answer):
        bytes_of_partitions = [size for size in sizes[spec.start : spec.end] if size]
        assert read_by(spec, [exchange]) <= VOLUME or len(bytes_of_partitions) == 1


@settings(max_examples=100, deadline=None)
@given(sizes=plain, slots=st.integers(1, 9))
def test_no_task_is_empty_unless_all_are(sizes: list[int], slots: int) -> None:
    exchange = written(sizes)
    answer = ask(Ranges(group="g", exchanges=(exchange,), slots=slots), settings_of())
    if answer.specs is not None:
        read = [read_by(spec, [exchange]) for spec in answer.specs]
        assert all(read) or read == [0]


@settings(max_examples=50, deadline=None)
@given(sizes=st.lists(st.integers(0, MIB // 20), min_size=2, max_size=20), slots=st.integers(0, 64))
def test_slots_that_come_or_go_change_nothing_for_what_one_task_reads(sizes: list[int], slots: int) -> None:
    answer = ask(Ranges(group="g", exchanges=(written(sizes),), slots=slots), BatchSettings())
    assert [(spec.start, spec.end) for spec in specs_of(answer)] == [(0, len(sizes))]
