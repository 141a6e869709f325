"""Tests of the number of partitions that is chosen before anything is written."""

from __future__ import annotations

from typing import Any

import pytest

from spark_elastic.core.batch.decider import BatchDecider
from spark_elastic.core.batch.questions import PlannedExchange
from spark_elastic.core.batch.settings import BatchSettings
from tests.unit.core.batch.builder import MIB, ask_count, ask_ranges, planned, spans, written


def test_bytes_make_tasks_the_last_wave_is_filled_and_each_task_has_two_partitions() -> None:
    answer = ask_count(planned(900 * MIB))
    assert answer.record.numbers["tasks"] == 16
    assert answer.partitions == 32
    assert answer.record.message == (
        "Write 32 partitions instead of 200: 900 MiB expected, read in 16 tasks of at most 64 MiB on 8 slots."
    )


def test_all_exchanges_of_a_group_count_and_get_one_number() -> None:
    assert ask_count(planned(450 * MIB, 450 * MIB)).partitions == ask_count(planned(900 * MIB)).partitions


def test_what_the_application_tells_spark_is_what_a_task_reads() -> None:
    assert ask_count(planned(900 * MIB), advised=128 * MIB).record.numbers["tasks"] == 8


@pytest.mark.parametrize(("size", "partitions"), [(3 * MIB, 201), (150 * MIB, 300), (900 * MIB, 1024)])
def test_a_small_size_that_spark_is_told_makes_no_more_partitions_than_spark_has(
    size: int, partitions: int
) -> None:
    """Spark coalesces partitions up to the advisory size, but never writes more of them because of it."""
    assert ask_count(planned(size), advised=10 << 10, smallest=1).partitions == partitions
    ours = BatchSettings(avg_data_volume_per_task=10 << 10)
    assert ask_count(planned(3 * MIB), settings=ours).partitions == 616


@pytest.mark.parametrize("size", [3 * MIB, 10, 0])
def test_a_small_result_leaves_work_for_every_slot(size: int) -> None:
    assert ask_count(planned(size)).partitions == 16
    assert ask_count(planned(size), slots=1).partitions == 2


@pytest.mark.parametrize(
    ("tasks", "partitions", "bounded"), [(24, 48, 48), (26, 201, 52), (100, 201, 100), (102, 204, 100)]
)
def test_where_spark_would_write_many_small_files_it_has_as_many_partitions_as_let_it_sort(
    tasks: int, partitions: int, bounded: int
) -> None:
    assert ask_count(planned(tasks * 64 * MIB), slots=2).partitions == partitions
    assert ask_count(planned(tasks * 64 * MIB), slots=2, chosen=100).partitions == bounded


@pytest.mark.parametrize(
    ("expected", "most", "slots", "partitions"),
    [
        (MIB, None, 8, 201),
        (MIB, None, 1, 201),
        (MIB, None, 300, 600),
        (1 << 40, None, 8, 1024),
        (MIB, 640 * MIB, 8, 32),
        (MIB, 1 << 50, 8, 201),
        (1 << 40, 640 * MIB, 8, 32),
    ],
)
def test_what_can_be_more_than_a_plan_says_gets_sparks_number_up_to_what_it_can_be(
    expected: int, most: int | None, slots: int, partitions: int
) -> None:
    assert ask_count(planned(expected, most=most), slots=slots).partitions == partitions


def test_one_exchange_of_a_group_that_can_be_any_number_of_bytes_is_enough() -> None:
    group = (*planned(MIB), *planned(MIB, id="e1", most=None))
    answer = ask_count(group, planned=2000, chosen=2000)
    assert (answer.partitions, answer.record.reason) == (2000, "initial_unbounded")


@pytest.mark.parametrize(("slots", "partitions"), [(0, 30), (-1, 30), (1, 30), (4, 32), (5, 30), (16, 32)])
def test_slots_fill_waves_and_unknown_ones_do_nothing(slots: int, partitions: int) -> None:
    assert ask_count(planned(15 * 64 * MIB), slots=slots).partitions == partitions


@pytest.mark.parametrize(
    ("bounds", "partitions"),
    [({"chosen": 10}, 10), ({"lower": 50}, 201), ({"lower": 50, "chosen": 10}, 10), ({}, 32)],
)
def test_bounds_hold(bounds: dict[str, Any], partitions: int) -> None:
    answer = ask_count(planned(900 * MIB), **bounds)
    assert answer.partitions == partitions
    assert answer.record.reason == ("initial_bounded" if partitions == 10 else "initial_from_bytes")


def test_the_upper_bound_goes_by_the_slots_and_ends_at_32768() -> None:
    assert ask_count(planned(1 << 50), slots=2).partitions == 256
    assert ask_count(planned(1 << 50), slots=2000).partitions == 32_768


@pytest.mark.parametrize("size", [-1, 1 << 60, (1 << 63) - 1])
def test_an_unknown_size_leaves_the_group_alone(size: int) -> None:
    answer = ask_count(planned(900 * MIB, size))
    assert (answer.partitions, answer.record.reason) == (None, "initial_unknown")
    assert "exchange e1" in answer.record.message


def test_an_empty_group_has_nothing_to_decide() -> None:
    assert ask_count(()).record.reason == "initial_nothing"


@pytest.mark.parametrize("settings", [BatchSettings(enabled=False), BatchSettings(initial_enabled=False)])
def test_switched_off_it_says_so(settings: BatchSettings) -> None:
    answer = ask_count(planned(900 * MIB), settings=settings)
    assert (answer.partitions, answer.record.reason) == (None, "initial_off")


def test_the_preset_flink_writes_as_many_partitions_as_may_ever_be_read() -> None:
    assert ask_count(planned(900 * MIB), settings=BatchSettings(preset="flink")).partitions == 128
    settings = BatchSettings(preset="flink", max_parallelism=60)
    assert ask_count(planned(900 * MIB), settings=settings).partitions == 60


def run(
    decider: BatchDecider, size: int, written_bytes: int, kept: int | None = None, **facts: Any
) -> int | None:
    """Plan an exchange of unbounded size, report what it has written, and return its number of partitions."""
    group = planned(size, source=facts.pop("source", "orders"), most=None)
    facts = {"plan": "orders 200", "pinned": False, "kept": kept, **facts}
    count = ask_count(group, decider, **facts).partitions
    ask_ranges(written([written_bytes // 10] * 10, id="e0"), decider=decider)
    return count


def test_the_same_plan_keeps_its_number_whatever_was_written_unless_that_is_far_off() -> None:
    decider = BatchDecider()
    assert run(decider, 1 << 40, 64 << 30) == 1024
    assert [run(decider, 1 << 40, size << 30, kept=1024) for size in (5, 64, 5)] == [1024] * 3
    # 5 GiB fill 160 partitions, fewer than an eighth of 2048.
    assert run(decider, 1 << 40, 5 << 30, kept=2048) == 201


def test_too_few_partitions_are_corrected_at_once_and_stay() -> None:
    decider = BatchDecider()
    assert run(decider, MIB, 100 << 30, planned=12, slots=2) == 12
    assert run(decider, MIB, 90 << 30, kept=12, planned=12, slots=2) == 256
    assert run(decider, MIB, 90 << 30, kept=256, planned=12, slots=2) == 256


def test_nearly_nothing_for_five_times_leaves_work_for_every_slot_the_sixth_time() -> None:
    decider = BatchDecider()
    kept = None
    for _ in range(5):
        kept = run(decider, MIB, 10, kept=kept)
    assert kept == 16
    assert run(decider, 4 << 30, 1 << 30, source="more orders", plan="more orders 200") == 201


def test_what_something_above_can_tell_is_never_corrected() -> None:
    decider = BatchDecider()
    assert run(decider, MIB, 10, pinned=True) == 201
    assert run(decider, MIB, 10, kept=200, pinned=True) == 200
    assert run(decider, MIB, 10, pinned=True) == 201


def test_other_slots_may_change_the_number_and_unknown_ones_do_not() -> None:
    decider = BatchDecider()
    facts: dict[str, Any] = {"plan": "p", "pinned": True}
    assert ask_count(planned(MIB), decider, **facts).partitions == 16
    assert ask_count(planned(MIB), decider, kept=16, slots=20, **facts).partitions == 40
    assert ask_count(planned(MIB), decider, kept=40, slots=20, **facts).record.reason == "initial_kept"
    # A new policy process uses the number that the shim has kept.
    assert ask_count(planned(MIB), kept=16, slots=20, **facts).partitions == 16


def test_ranges_are_kept_for_about_the_same_sizes_on_the_same_slots() -> None:
    decider = BatchDecider()
    sizes = written([8 * MIB] * 64)
    assert spans(ask_ranges(sizes, decider=decider, plan="p", kept=(40, 64))) == [(0, 40), (40, 64)]
    assert len(spans(ask_ranges(sizes, decider=decider, plan="p", kept=(40, 64), slots=16))) == 16
    left = ask_ranges(sizes, decider=decider, plan="q", kept=())
    assert (left.specs, left.record.reason) == (None, "ranges_kept")


def test_exchanges_without_a_source_teach_each_other_nothing() -> None:
    decider = BatchDecider()
    for _ in range(2):
        answer = ask_count(planned(MIB, most=None), decider, plan="p", pinned=False)
        ask_ranges(written([10] * 10, id="e0"), decider=decider)
        assert answer.partitions == 201


def test_what_is_remembered_is_bounded() -> None:
    decider = BatchDecider()
    for number in range(5000):
        group = planned(MIB, source=f"s{number}", most=None)
        ask_count(group, decider, plan=f"p{number}", pinned=False)
        ask_ranges(written([10] * 10, id="e0"), decider=decider)
    for number, count in ((0, 201), (4999, 16)):
        group = planned(MIB, source=f"s{number}", most=None)
        assert ask_count(group, decider, plan=f"p{number}", pinned=False).partitions == count


@pytest.mark.parametrize(
    ("words", "tasks"),
    [
        ({}, 8),
        ({"parallelism_first": True}, 8),
        ({"parallelism_first": False}, 1),
        ({"parallelism_first": False, "advised": 16 * MIB}, 2),
        ({"parallelism_first": False, "lower": 3}, 3),
        ({"smallest": 16 * MIB}, 2),
        ({"smallest": 64 * MIB}, 1),
        ({"smallest": 64 * MIB, "advised": 4 * MIB}, 1),
        ({"lower": 16}, 16),
        ({"chosen": 4}, 4),
    ],
)
def test_what_the_application_says_of_joining_partitions_is_what_it_means(
    words: dict[str, Any], tasks: int
) -> None:
    assert ask_ranges(written([MIB] * 32), **words).record.after == tasks


def test_as_many_tasks_as_spark_would_start_are_started_up_to_the_slots() -> None:
    assert ask_ranges(written([MIB * 5 // 200] * 100)).record.after == 3


@pytest.mark.parametrize(
    ("meaning", "partitions", "reason"),
    [
        ({}, 12, "initial_bounded"),
        ({"explicit_parallelism": "ignore"}, 12, "initial_bounded"),
        ({"explicit_parallelism": "upperBound"}, 12, "initial_bounded"),
        ({"explicit_parallelism": "fixed"}, None, "initial_fixed"),
        ({"explicit_parallelism": "fixed", "own_parallelism": "upperBound"}, 12, "initial_bounded"),
        ({"own_parallelism": "fixed"}, None, "initial_fixed"),
        ({"own_parallelism": "ignore"}, 32, "initial_from_bytes"),
        ({"max_parallelism": 20}, 20, "initial_bounded"),
    ],
)
def test_the_applications_own_number_means_what_the_settings_say(
    meaning: dict[str, Any], partitions: int | None, reason: str
) -> None:
    settings = BatchSettings(**meaning)
    answer = ask_count(planned(16 * 64 * MIB), settings=settings, planned=12, chosen=12)
    assert (answer.partitions, answer.record.reason) == (partitions, reason)


def test_where_a_size_has_no_bound_an_ignored_number_leaves_what_spark_would_take() -> None:
    settings = BatchSettings(own_parallelism="ignore")
    exchange = PlannedExchange(id="e", bytes=MIB, most=None)
    assert ask_count((exchange,), settings=settings, planned=3, chosen=3).partitions == 201


@pytest.mark.parametrize(
    ("own", "meaning", "partitions"),
    [
        ({"chosen": 60}, {}, 60),
        ({"parallelism": 50}, {}, 50),
        ({"chosen": 60, "parallelism": 50}, {}, 60),
        ({"chosen": 200}, {}, 200),
        ({"chosen": 60, "parallelism": 50}, {"own_parallelism": "ignore"}, 128),
        ({"chosen": 60}, {"max_parallelism": 100}, 100),
    ],
)
def test_in_the_preset_flink_it_is_what_parallelism_default_is_to_the_model(
    own: dict[str, Any], meaning: dict[str, Any], partitions: int
) -> None:
    settings = BatchSettings(preset="flink", **meaning)
    assert ask_count(planned(900 * MIB), settings=settings, **own).partitions == partitions


def test_by_our_own_rules_the_parallelism_of_rdds_says_nothing_of_shuffles() -> None:
    assert ask_count(planned(900 * MIB), parallelism=4).partitions == 32


def test_of_what_was_written_no_more_tasks_read_than_the_application_has_said() -> None:
    whole = [40 * MIB] * 200
    assert ask_ranges(written(whole, id="e0"), chosen=10).record.after == 10
    flink = BatchSettings(preset="flink")
    assert ask_ranges(written(whole, id="e0"), settings=flink, parallelism=10).record.after == 10
    assert ask_ranges(written(whole, id="e0"), settings=flink).record.after == 100
