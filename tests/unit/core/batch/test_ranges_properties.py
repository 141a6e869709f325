"""Properties of the ranges of any group: every byte is read once, within bounds, as evenly as possible."""

from __future__ import annotations

from functools import cache
from itertools import accumulate, pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_elastic.core.batch.decider import BatchDecider
from spark_elastic.core.batch.questions import Ranges, RangesAnswer, WrittenExchange
from spark_elastic.core.batch.settings import BatchSettings
from tests.unit.core.batch.builder import MIB, read_by, specs_of, written

pytestmark = pytest.mark.long

VOLUME = 100 * MIB
SIZES = st.one_of(st.integers(0, 60), st.sampled_from([0, 0, 1, 30, 150, 900])).map(lambda size: size * MIB)


def settings_of(**facts: Any) -> BatchSettings:
    return BatchSettings(avg_data_volume_per_task=VOLUME, **facts)


SETTINGS = st.builds(
    settings_of,
    preset=st.sampled_from(["elastic", "flink"]),
    min_parallelism=st.integers(1, 5),
    max_parallelism=st.integers(5, 30),
)


@st.composite
def exchanges(draw: st.DrawFn) -> tuple[WrittenExchange, ...]:
    """Make the exchanges of a group; in some, one partition is far larger than the others."""
    count = draw(st.integers(1, 15))
    hot = draw(st.integers(0, count - 1)) if draw(st.booleans()) else None
    result = []
    for number in range(draw(st.integers(1, 3))):
        sizes = draw(st.lists(SIZES, min_size=count, max_size=count))
        if hot is not None:
            sizes[hot] = draw(st.integers(300, 900)) * MIB
        result.append(written(sizes, id=f"e{number}"))
    return tuple(result)


QUESTIONS = st.builds(
    Ranges,
    group=st.just("g"),
    exchanges=exchanges(),
    slots=st.integers(0, 12),
    lower=st.none() | st.integers(1, 20),
)


def ask(question: Ranges, chosen: BatchSettings) -> RangesAnswer:
    answer = BatchDecider(settings=chosen).answer(question)
    assert isinstance(answer, RangesAnswer)
    return answer


@settings(max_examples=250)
@given(question=QUESTIONS, chosen=SETTINGS)
def test_everything_is_read_once_in_order_and_within_bounds(question: Ranges, chosen: BatchSettings) -> None:
    specs = specs_of(ask(question, chosen))
    count = len(question.exchanges[0].bytes)
    assert specs[0].start == 0
    assert specs[-1].end == count
    assert all(after.start == before.end for before, after in pairwise(specs))
    assert all(spec.start < spec.end for spec in specs)
    upper = chosen.bounds(question.slots).upper
    least = min(max(chosen.min_parallelism, question.lower or 1), upper)
    assert min(least, count) <= len(specs) <= upper


@settings(max_examples=50)
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


@settings(max_examples=150)
@given(sizes=plain, slots=st.integers(0, 9))
def test_the_largest_task_is_as_small_as_so_many_tasks_allow(sizes: list[int], slots: int) -> None:
    # So if any ranges keep the largest task within 1.1 times the mean, these do.
    exchange = written(sizes)
    answer = ask(Ranges(group="g", exchanges=(exchange,), slots=slots), settings_of())
    read = [read_by(spec, [exchange]) for spec in specs_of(answer)]
    assert max(read) == least_possible(tuple(sizes), len(read))


@cache
def least_possible(sizes: tuple[int, ...], tasks: int) -> int:
    """Try every way to cut into `tasks` ranges; return the least bytes that the largest can have."""
    if tasks == 1:
        return sum(sizes)
    heads = accumulate(sizes[: len(sizes) - tasks + 1])
    return min(max(head, least_possible(sizes[cut:], tasks - 1)) for cut, head in enumerate(heads, 1))


@settings(max_examples=150)
@given(sizes=plain, slots=st.integers(0, 9))
def test_no_slots_make_a_task_read_more_than_its_volume(sizes: list[int], slots: int) -> None:
    exchange = written(sizes)
    answer = ask(Ranges(group="g", exchanges=(exchange,), slots=slots), settings_of(max_parallelism=100))
    for spec in specs_of(answer):
        bytes_of_partitions = [size for size in sizes[spec.start : spec.end] if size]
        assert read_by(spec, [exchange]) <= VOLUME or len(bytes_of_partitions) == 1


@settings(max_examples=100)
@given(sizes=plain, slots=st.integers(1, 9))
def test_no_task_is_empty_unless_all_are(sizes: list[int], slots: int) -> None:
    exchange = written(sizes)
    answer = ask(Ranges(group="g", exchanges=(exchange,), slots=slots), settings_of())
    if answer.specs is not None:
        read = [read_by(spec, [exchange]) for spec in answer.specs]
        assert all(read) or read == [0]


@settings(max_examples=50)
@given(sizes=st.lists(st.integers(0, MIB // 20), min_size=2, max_size=20), slots=st.integers(0, 64))
def test_slots_that_come_or_go_change_nothing_for_what_one_task_reads(sizes: list[int], slots: int) -> None:
    answer = ask(Ranges(group="g", exchanges=(written(sizes),), slots=slots), BatchSettings())
    assert [(spec.start, spec.end) for spec in specs_of(answer)] == [(0, len(sizes))]
