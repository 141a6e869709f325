"""Tests of the ranges that the tasks of a group read once it is written."""

from __future__ import annotations

import pytest
from attrs import evolve

from spark_elastic.core.batch.settings import BatchSettings
from tests.unit.core.batch.builder import MIB, ask_ranges, read_by, spans, specs_of, written

SMALL = BatchSettings(avg_data_volume_per_task=100)
"""100 bytes per task keep the sizes in these tests short."""


def test_a_wave_is_filled_where_that_costs_nothing() -> None:
    answer = ask_ranges(written([8 * MIB] * 64))
    assert spans(answer) == [(start, start + 8) for start in range(0, 64, 8)]
    assert ask_ranges(written([MIB] * 504), slots=3).record.after == 9
    assert answer.record.message == (
        "Read 64 partitions in 8 tasks on 8 slots: 512 MiB, at most 64 MiB per task; the "
        "largest has 64 MiB, 1.0 × the mean."
    )


def test_what_the_application_tells_spark_is_what_a_task_reads() -> None:
    assert ask_ranges(written([8 * MIB] * 64), advised=32 * MIB).record.after == 16


def test_a_task_is_not_started_for_less_than_a_mebibyte() -> None:
    assert spans(ask_ranges(written([1000] * 64))) == [(0, 64)]
    assert len(spans(ask_ranges(written([MIB // 16] * 64)))) == 4


def test_slots_that_came_meanwhile_get_work() -> None:
    exchange = written([8 * MIB] * 64)
    assert [ask_ranges(exchange, slots=slots).record.after for slots in (4, 8, 16, 32)] == [8, 8, 16, 32]


@pytest.mark.parametrize("slots", [0, -1])
def test_unknown_slots_leave_the_number_to_the_bytes(slots: int) -> None:
    assert ask_ranges(written([8 * MIB] * 60), slots=slots).record.after == 8


def test_both_sides_of_a_join_are_cut_at_the_same_places_by_their_sum() -> None:
    answer = ask_ranges(written([30, 10, 20, 20]), written([20, 30, 50, 40]), settings=SMALL, slots=1)
    assert spans(answer) == [(0, 2), (2, 3), (3, 4)]


def test_a_large_partition_stands_alone_and_the_others_are_even() -> None:
    answer = ask_ranges(written([5, 5, 5, 900, 5, 5, 5]), settings=SMALL, slots=3)
    assert spans(answer) == [(0, 3), (3, 4), (4, 7)]


def test_empty_partitions_cost_no_task() -> None:
    answer = ask_ranges(written([0, 60, 0, 0, 90, 0, 0, 80, 0]), settings=SMALL, slots=1)
    assert spans(answer) == [(0, 4), (4, 5), (5, 9)]


def test_more_tasks_are_taken_if_they_are_even_and_hardly_slower() -> None:
    # On four slots, four tasks would read three, three, three and one of the partitions.
    answer = ask_ranges(written([20 * MIB] * 10), slots=4)
    assert (answer.record.after, answer.record.numbers["ratio"]) == (10, 1.0)
    # With small partitions, starting ten tasks would take longer than they save.
    answer = ask_ranges(written([2 * MIB] * 10), slots=4)
    assert (answer.record.after, answer.record.numbers["ratio"]) == (4, 1.2)


@pytest.mark.parametrize(("count", "tasks"), [(4, 4), (7, 7), (20, 10)])
def test_nothing_to_read_is_read_by_as_few_as_are_allowed(count: int, tasks: int) -> None:
    assert spans(ask_ranges(written([0] * 10))) == [(0, 10)]
    answer = ask_ranges(written([0] * 10), lower=count)
    assert len(specs_of(answer)) == tasks


def test_the_upper_bound_holds_and_is_told() -> None:
    answer = ask_ranges(written([80] * 8), settings=evolve(SMALL, max_parallelism=4))
    assert spans(answer) == [(0, 2), (2, 4), (4, 6), (6, 8)]
    assert answer.record.reason == "ranges_bounded"


def test_the_lower_bound_holds() -> None:
    assert len(spans(ask_ranges(written([8] * 12), settings=SMALL, slots=1, lower=4))) == 4


def test_empty_tasks_are_started_only_where_the_lower_bound_asks_for_them() -> None:
    assert spans(ask_ranges(written([50, 0, 0, 50]), settings=SMALL, lower=2)) == [(0, 3), (3, 4)]
    assert spans(ask_ranges(written([50, 0, 0, 50]), settings=SMALL, lower=3)) == [(0, 1), (1, 3), (3, 4)]


def test_where_no_limit_gives_an_allowed_number_the_decided_one_is_taken() -> None:
    # Six equal partitions cannot be packed into exactly four ranges.
    settings = evolve(SMALL, max_parallelism=5)
    answer = ask_ranges(written([10] * 6), settings=settings, slots=1, lower=4)
    flink = evolve(settings, preset="flink")
    assert spans(answer) == [(0, 1), (1, 3), (3, 4), (4, 6)]
    assert len(spans(ask_ranges(written([10] * 6), settings=flink, lower=4))) == 5


def test_what_cannot_be_joined_is_read_as_it_was_written() -> None:
    answer = ask_ranges(written([80] * 4), settings=SMALL)
    assert spans(answer) == [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert (answer.record.reason, answer.record.after) == ("ranges_as_written", 4)


def test_skew_is_told_even_if_nothing_is_changed() -> None:
    answer = ask_ranges(written([80 * MIB, 80 * MIB, 900 * MIB, 80 * MIB]))
    assert spans(answer) == [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert (answer.record.reason, answer.record.after) == ("ranges_skewed", 4)
    assert answer.record.message == (
        "Read 4 partitions in 4 tasks on 8 slots, each partition whole: Spark split none for a "
        "join, with 1 partition far above the others; the largest task has 900 "
        "MiB, 3.16 × the mean."
    )


def test_a_partition_that_any_exchange_has_far_more_of_is_skewed_once() -> None:
    answer = ask_ranges(written([MIB, 300 * MIB, MIB]), written([MIB, 900 * MIB, MIB]))
    assert answer.record.numbers["skewed"] == 1
    assert "split none for a join" in answer.record.message


@pytest.mark.parametrize(
    ("sizes", "skewed"),
    [
        ([MIB, 256 * MIB, MIB], 0),
        ([MIB, 256 * MIB + 1, MIB], 1),
        ([100 * MIB, 400 * MIB, 100 * MIB], 0),
        ([100 * MIB, 400 * MIB + 1, 100 * MIB], 1),
    ],
)
def test_skewed_is_what_exceeds_both_four_times_the_median_and_256_mib(sizes: list[int], skewed: int) -> None:
    assert ask_ranges(written(sizes)).record.numbers["skewed"] == skewed


def test_a_group_without_exchanges_has_nothing_to_decide() -> None:
    answer = ask_ranges()
    assert (answer.specs, answer.record.reason) == (None, "ranges_nothing")
    assert answer.record.kind == "nothing_to_do"


def test_exchanges_with_different_numbers_of_partitions_are_no_group() -> None:
    with pytest.raises(ValueError, match=r"zip\(\) argument 2 is longer"):
        ask_ranges(written([7, 8]), written([7, 8, 9]))


@pytest.mark.parametrize(("left", "message"), [("skew", "splits skewed ones"), ("local", "where the map")])
def test_what_spark_has_done_itself_stays(left: str, message: str) -> None:
    answer = ask_ranges(written([MIB] * 4), left=left)
    assert (answer.specs, answer.record.reason) == (None, f"ranges_left_{left}")
    assert message in answer.record.message
    assert "4 MiB" in answer.record.message


@pytest.mark.parametrize("settings", [BatchSettings(enabled=False), BatchSettings(ranges_enabled=False)])
def test_switched_off_it_says_so(settings: BatchSettings) -> None:
    assert ask_ranges(written([1, 2]), settings=settings).record.reason == "ranges_off"


def test_the_record_has_the_numbers_that_were_compared() -> None:
    exchanges = written([10, 20, 10, 90]), written([10, 10, 10, 10])
    answer = ask_ranges(*exchanges, settings=SMALL, slots=2)
    numbers = answer.record.numbers
    read = [read_by(spec, exchanges) for spec in specs_of(answer)]
    assert numbers["bytes"] == sum(read) == 170
    assert numbers["largest"] == max(read)
    assert numbers["ratio"] == round(max(read) * len(read) / 170, 2)
    assert (numbers["exchanges"], numbers["skewed"], numbers["slots"], numbers["volume"]) == (2, 0, 2, 100)
