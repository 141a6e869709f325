"""How many partitions are written, before anything is."""

from __future__ import annotations

from typing import Any

import pytest

from spark_elastic.core.batch.corrections import Corrections
from spark_elastic.core.batch.front import BatchDecider
from spark_elastic.core.batch.settings import BatchSettings
from tests.unit.core.batch.builder import MIB, ask_count, ask_ranges, knowing, planned, written


def test_bytes_make_tasks_the_last_wave_is_filled_and_each_task_has_two_partitions() -> None:
    answer = ask_count(planned(900 * MIB))
    assert answer.record.numbers["tasks"] == 16
    assert answer.partitions == 32
    assert answer.record.message == (
        "Writes 32 partitions instead of 200: 900 MiB are expected, 16 tasks of at most 64 MiB read them on "
        "8 slots."
    )


def test_all_exchanges_of_a_group_count_and_get_one_number() -> None:
    assert ask_count(planned(450 * MIB, 450 * MIB)).partitions == ask_count(planned(900 * MIB)).partitions


def test_what_the_application_tells_spark_is_what_a_task_reads() -> None:
    assert ask_count(planned(900 * MIB), advised=128 * MIB).record.numbers["tasks"] == 8


def test_a_small_result_that_was_measured_is_not_spread_over_all_slots() -> None:
    for size, partitions in ((3 * MIB, 6), (10, 2), (0, 2)):
        assert ask_count(planned(size, source="orders"), knowing("orders")).partitions == partitions


def test_a_small_result_that_is_only_a_guess_leaves_work_for_every_slot() -> None:
    assert ask_count(planned(10)).partitions == 16
    assert ask_count(planned(10), slots=1).partitions == 2


@pytest.mark.parametrize(("slots", "partitions"), [(0, 30), (-1, 30), (1, 30), (4, 32), (5, 30), (16, 32)])
def test_slots_fill_waves_and_unknown_ones_do_nothing(slots: int, partitions: int) -> None:
    exchanges = planned(15 * 64 * MIB, source="orders")
    assert ask_count(exchanges, knowing("orders"), slots=slots).partitions == partitions


@pytest.mark.parametrize(
    ("bounds", "partitions"),
    [({"chosen": 10}, 10), ({"lower": 50}, 112), ({"lower": 50, "chosen": 10}, 10), ({}, 32)],
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


def test_what_was_written_corrects_the_next_expectation_of_the_same_source() -> None:
    decider = BatchDecider()
    before = ask_count(planned(900 * MIB, source="orders"), decider)
    ask_ranges(written([9 * MIB] * 10, id="e0"), decider=decider)
    after = ask_count(planned(900 * MIB, source="orders"), decider)
    other = ask_count(planned(900 * MIB, source="parts"), decider)
    assert before.partitions == other.partitions == 32
    assert after.record.numbers["bytes"] == 90 * MIB
    assert after.partitions == 16


def test_exchanges_without_a_source_teach_each_other_nothing() -> None:
    decider = BatchDecider()
    ask_count(planned(900 * MIB), decider)
    ask_ranges(written([9 * MIB] * 10, id="e0"), decider=decider)
    assert ask_count(planned(900 * MIB), decider).record.numbers["bytes"] == 900 * MIB


def test_a_correction_is_the_median_of_the_last_five() -> None:
    corrections = Corrections()
    for measured in (1000, 1000, 1000, 10, 20, 30, 40, 1000):
        corrections.learn("orders", 100, measured)
    assert corrections.factor("orders") == 0.3


@pytest.mark.parametrize(("expected", "measured", "factor"), [(0, 5, 1), (-1, 5, 1), (1, 10**9, 64)])
def test_what_says_nothing_teaches_nothing(expected: int, measured: int, factor: float) -> None:
    corrections = Corrections()
    corrections.learn("orders", expected, measured)
    assert corrections.factor("orders") == factor


def test_what_is_remembered_is_bounded() -> None:
    decider = BatchDecider()
    for number in range(1000):
        decider.corrections.learn(f"s{number}", 100, 50)
    assert decider.corrections.factor("s0") == 1
    assert decider.corrections.factor("s999") == 0.5


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
