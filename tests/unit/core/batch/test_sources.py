"""Tests of how the scan of files is split."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from spark_elastic.core.batch.decider import BatchDecider
from spark_elastic.core.batch.questions import (
    JoinPartitions,
    JoinPartitionsAnswer,
    SplitOffsets,
    SplitOffsetsAnswer,
    SplitSize,
    SplitSizeAnswer,
)
from spark_elastic.core.batch.settings import BatchSettings
from spark_elastic.core.keys.batch import PresetName
from tests.unit.core.batch.builder import MIB


def ask(size: int, settings: BatchSettings | None = None, **facts: Any) -> SplitSizeAnswer:
    sizes = {"smallest": 4 * MIB, "largest": 128 * MIB, "openings": 0}
    question = SplitSize(**{"scan": "s", "bytes": size, "slots": 8, "planned": 1, **sizes, **facts})
    answer = BatchDecider(settings=settings or BatchSettings()).answer(question)
    assert isinstance(answer, SplitSizeAnswer)
    return answer


def split_of(answer: SplitSizeAnswer) -> Any:
    return answer.record.numbers["split"]


@pytest.mark.parametrize(
    ("size", "slots", "split", "tasks"),
    [
        (1600 * MIB, 8, 100 * MIB, 16),
        (80 * MIB, 8, 10 * MIB, 8),
        (9 * MIB, 8, 4.5 * MIB, 2),
        (MIB, 8, MIB, 1),
        (300 * MIB, 1, 100 * MIB, 3),
    ],
)
def test_splits_fill_the_slots_and_stay_between_smallest_and_largest(
    size: int, slots: int, split: int, tasks: int
) -> None:
    answer = ask(size, slots=slots)
    assert (split_of(answer), answer.tasks, answer.record.reason) == (split, tasks, "split_from_bytes")


@pytest.mark.parametrize(
    ("openings", "size", "planned", "slots", "tasks"),
    [
        # 400 small files, which Spark packs into 13 tasks.
        (400, 400 * 1024, 13, 8, 16),
        (8, 5 * MIB, 8, 8, 8),
        (3, 3 * 1024, 3, 2, 2),
        (2, 2 * 1024, 2, 8, 2),
        (1, 5 * MIB, 2, 8, 2),
        # Spark does not count the cost of the last opened file towards the largest split either.
        (1, 128 * MIB, 1, 1, 1),
        (1, 1280 * MIB, 10, 1, 10),
    ],
)
def test_what_opening_files_counts_for_is_shared_out_as_well(
    openings: int, size: int, planned: int, slots: int, tasks: int
) -> None:
    answer = ask(size, openings=openings, planned=planned, slots=slots)
    assert answer.tasks == tasks
    assert split_of(answer) == -(-(size + openings * 4 * MIB) // tasks)
    assert f"{openings} opening" in answer.record.message


def test_a_task_has_no_more_than_the_largest_split_where_opening_counts_for_more() -> None:
    assert ask(1280 * MIB, openings=1, smallest=1024 * MIB, slots=1).tasks == 10


@given(
    openings=st.integers(0, 500),
    size=st.integers(0, 1 << 40),
    planned=st.integers(1, 1000),
    slots=st.integers(1, 64),
    opening=st.sampled_from([0, 1, 1000, 4 * MIB, 1 << 40]),
)
def test_there_are_never_fewer_tasks_than_spark_has_up_to_the_slots(
    openings: int, size: int, planned: int, slots: int, opening: int
) -> None:
    asked: dict[str, Any] = {"openings": openings, "planned": planned, "slots": slots, "smallest": opening}
    answer = ask(size, **asked)
    assert answer == ask(size, **asked)
    assert answer.tasks is None or answer.tasks >= min(planned, slots)


def test_the_floor_gives_way_to_what_the_user_allows_and_what_can_be_split() -> None:
    assert ask(MIB, BatchSettings(max_parallelism=2), planned=8).tasks == 2
    assert ask(MIB, planned=8, most=5).tasks == 5


def test_what_a_filter_has_left_is_split_anew() -> None:
    assert split_of(ask(80 * MIB)) == 10 * MIB
    assert split_of(ask(40 * MIB)) == 5 * MIB


def test_the_bound_of_sources_counts_before_the_global_one() -> None:
    answer = ask(1600 * MIB, BatchSettings(default_source_parallelism=4, max_parallelism=2))
    assert (split_of(answer), answer.record.reason) == (400 * MIB, "split_bounded")
    assert answer.tasks == 4
    assert split_of(ask(1600 * MIB, BatchSettings(max_parallelism=2))) == 800 * MIB


def test_the_preset_flink_does_not_look_at_the_slots() -> None:
    assert ask(150 * MIB, BatchSettings(preset="flink")).record.after == 2


def test_files_that_cannot_be_split_make_no_more_tasks_than_there_are() -> None:
    answer = ask(80 * MIB, most=3, planned=5)
    assert (answer.tasks, split_of(answer)) == (3, -(-80 * MIB // 3))
    assert (answer.record.before, answer.record.after) == (5, 3)


def test_without_slots_spark_splits_unless_the_preset_never_looks_at_them() -> None:
    answer = ask(300 * MIB, slots=0, planned=3)
    assert (answer.tasks, answer.record.reason) == (None, "split_no_slots")
    assert ask(300 * MIB, BatchSettings(preset="flink"), slots=0).tasks == 3


@pytest.mark.parametrize("default", [None, 6])
def test_where_there_is_nothing_to_read_it_is_left_to_spark(default: int | None) -> None:
    answer = ask(0, BatchSettings(default_source_parallelism=default))
    assert (answer.tasks, answer.record.reason) == (None, "split_nothing")


@pytest.mark.parametrize("settings", [BatchSettings(enabled=False), BatchSettings(sources_enabled=False)])
def test_switched_off_it_says_so(settings: BatchSettings) -> None:
    assert ask(100 * MIB, settings).record.reason == "split_off"


def ask_offsets(settings: BatchSettings | None = None, **facts: Any) -> SplitOffsetsAnswer:
    question = SplitOffsets(**{"scan": "s", "late": False, "slots": 8, **facts})
    answer = BatchDecider(settings=settings or BatchSettings()).answer(question)
    assert isinstance(answer, SplitOffsetsAnswer)
    return answer


@pytest.mark.parametrize(
    ("settings", "tasks"),
    [
        ({}, 8),
        ({"max_parallelism": 5}, 5),
    ],
)
def test_kafka_is_read_in_a_task_per_slot_within_the_bounds(settings: dict[str, Any], tasks: int) -> None:
    answer = ask_offsets(BatchSettings(divide_ordered=True, **settings))
    assert (answer.tasks, answer.record.reason) == (tasks, "offsets_divided")


def test_the_end_is_found_out_before_only_where_that_is_wanted() -> None:
    answer = ask_offsets(BatchSettings(divide_ordered=True), late=True)
    assert (answer.tasks, answer.record.reason) == (None, "offsets_late")
    assert ask_offsets(BatchSettings(divide_ordered=True, kafka_latest=True), late=True).tasks == 8


@pytest.mark.parametrize(
    ("settings", "slots", "reason"),
    [
        ({"enabled": False}, 8, "split_off"),
        ({"sources_enabled": False}, 8, "split_off"),
        ({"preset": "flink"}, 8, "offsets_by_partition"),
        ({}, 8, "offsets_in_order"),
        ({"divide_ordered": True}, 0, "offsets_no_slots"),
    ],
)
def test_else_kafka_is_read_in_a_task_per_partition(
    settings: dict[str, Any], slots: int, reason: str
) -> None:
    answer = ask_offsets(BatchSettings(**settings), slots=slots)
    assert (answer.tasks, answer.record.reason) == (None, reason)


@pytest.mark.parametrize("preset", ["elastic", "flink"])
@pytest.mark.parametrize(("default", "slots"), [(3, 8), (20, 8), (20, 0)])
def test_kafka_is_read_in_the_default_number_of_tasks_where_there_is_one(
    default: int, slots: int, preset: PresetName
) -> None:
    settings = BatchSettings(preset=preset, default_source_parallelism=default)
    assert ask_offsets(settings).record.reason == "offsets_in_order"
    answer = ask_offsets(evolve(settings, divide_ordered=True), slots=slots)
    assert (answer.tasks, answer.record.reason) == (default, "offsets_default")


def ask_join(planned: int, *, joinable: bool = True, **settings: Any) -> JoinPartitionsAnswer:
    question = JoinPartitions(scan="s", source="JDBCRelation", planned=planned, joinable=joinable, slots=8)
    answer = BatchDecider(settings=BatchSettings(**settings)).answer(question)
    assert isinstance(answer, JoinPartitionsAnswer)
    assert answer.record.before == planned
    return answer


@pytest.mark.parametrize(
    ("planned", "settings", "tasks", "reason"),
    [
        (7, {"default_source_parallelism": 4}, 4, "source_joined"),
        (7, {"max_parallelism": 5}, 5, "source_joined"),
        (7, {"default_source_parallelism": 4, "max_parallelism": 2}, 4, "source_joined"),
        (4, {"default_source_parallelism": 4}, None, "source_as_made"),
        (5000, {}, None, "source_as_made"),
        (5000, {"preset": "flink"}, None, "source_as_made"),
        (1, {"default_source_parallelism": 4}, None, "source_whole"),
        (7, {"default_source_parallelism": 4, "sources_enabled": False}, None, "split_off"),
    ],
)
def test_partitions_that_a_source_makes_itself_are_at_most_joined(
    planned: int, settings: dict[str, Any], tasks: int | None, reason: str
) -> None:
    answer = ask_join(planned, **settings)
    assert (answer.tasks, answer.record.reason) == (tasks, reason)


def test_partitions_that_the_plan_relies_on_stay() -> None:
    answer = ask_join(7, joinable=False, default_source_parallelism=4)
    assert (answer.tasks, answer.record.reason) == (None, "source_relied_on")


def test_a_source_is_named_as_what_it_is() -> None:
    assert "Read JDBCRelation in one task" in ask_join(1).record.message
    assert "numPartitions" in ask_join(1).record.message
    assert (
        "Read 7 partitions of JDBCRelation in 4 tasks"
        in ask_join(7, default_source_parallelism=4).record.message
    )
