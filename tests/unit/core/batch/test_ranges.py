"""What the tasks of a group read, after it was written."""

from __future__ import annotations

import pytest

from spark_elastic.core.batch.questions import MapRange, RangesAnswer, Spec
from spark_elastic.core.batch.settings import BatchSettings
from tests.unit.core.batch.builder import MIB, ask_ranges, read_by, spans, specs_of, written

SMALL = BatchSettings(avg_data_volume_per_task=100, skew_threshold=100)
"""Numbers that fit into a line: 100 bytes per task, and above 100 a partition may be skewed."""


def test_a_wave_is_filled_where_that_costs_nothing() -> None:
    answer = ask_ranges(written([8 * MIB] * 64))
    assert spans(answer) == [(start, start + 8) for start in range(0, 64, 8)]
    assert ask_ranges(written([MIB] * 504), slots=3).record.after == 9
    assert answer.record.message == (
        "Reads 64 partitions in 8 tasks on 8 slots: 512 MiB, at most 64 MiB per task; the largest has "
        "64 MiB, 1.0 times the mean."
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
    # On four slots, four tasks would read three, three, three and one.
    answer = ask_ranges(written([20 * MIB] * 10), slots=4)
    assert (answer.record.after, answer.record.numbers["ratio"]) == (10, 1.0)
    # Of small partitions, the starts of so many tasks would take longer than they save.
    answer = ask_ranges(written([2 * MIB] * 10), slots=4)
    assert (answer.record.after, answer.record.numbers["ratio"]) == (4, 1.2)


@pytest.mark.parametrize(("count", "tasks"), [(4, 4), (7, 7), (20, 10)])
def test_nothing_to_read_is_read_by_as_few_as_are_allowed(count: int, tasks: int) -> None:
    assert spans(ask_ranges(written([0] * 10))) == [(0, 10)]
    answer = ask_ranges(written([0] * 10), lower=count)
    assert len(specs_of(answer)) == tasks


def test_the_upper_bound_holds_and_is_told() -> None:
    answer = ask_ranges(written([80] * 8), settings=SMALL, upper=4)
    assert spans(answer) == [(0, 2), (2, 4), (4, 6), (6, 8)]
    assert answer.record.reason == "ranges_bounded"


def test_the_lower_bound_holds() -> None:
    assert len(spans(ask_ranges(written([8] * 12), settings=SMALL, slots=1, lower=4))) == 4


def test_empty_tasks_are_started_only_where_the_lower_bound_asks_for_them() -> None:
    assert spans(ask_ranges(written([50, 0, 0, 50]), settings=SMALL, lower=2)) == [(0, 3), (3, 4)]
    assert spans(ask_ranges(written([50, 0, 0, 50]), settings=SMALL, lower=3)) == [(0, 1), (1, 3), (3, 4)]


def test_where_no_limit_gives_an_allowed_number_the_decided_one_is_taken() -> None:
    # Six equal partitions cannot be packed into exactly four ranges.
    answer = ask_ranges(written([10] * 6), settings=SMALL, slots=1, lower=4, upper=5)
    flink = BatchSettings(preset="flink", avg_data_volume_per_task=100)
    assert spans(answer) == [(0, 1), (1, 3), (3, 4), (4, 6)]
    assert len(spans(ask_ranges(written([10] * 6), settings=flink, lower=4, upper=5))) == 5


def test_a_broadcast_has_no_part_in_it() -> None:
    broadcast = written([500], broadcast=True, id="b")
    exchange = written([60, 30, 40, 50])
    assert spans(ask_ranges(exchange, broadcast, settings=SMALL)) == spans(
        ask_ranges(exchange, settings=SMALL)
    )
    assert ask_ranges(broadcast).record.reason == "ranges_nothing"


def test_in_the_preset_flink_a_broadcast_takes_its_share() -> None:
    flink = BatchSettings(preset="flink", avg_data_volume_per_task=100)
    exchange = written([20] * 10)
    assert len(spans(ask_ranges(exchange, settings=flink))) == 2
    assert len(spans(ask_ranges(exchange, written([200], broadcast=True), settings=flink))) == 5


def test_what_cannot_be_joined_is_read_as_it_was_written() -> None:
    answer = ask_ranges(written([80] * 4), settings=SMALL)
    assert spans(answer) == [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert (answer.record.reason, answer.record.after) == ("ranges_as_written", 4)


def test_skew_is_told_even_if_nothing_is_changed() -> None:
    answer = ask_ranges(written([80, 80, 900, 80]), settings=SMALL)
    assert spans(answer) == [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert (answer.record.reason, answer.record.after) == ("ranges_skewed", 4)


@pytest.mark.parametrize(
    ("exchanges", "reason"),
    [
        ([], "ranges_nothing"),
        ([written([])], "ranges_nothing"),
        ([written([7])], "ranges_single"),
        ([written([7, -1, 3])], "ranges_unknown"),
        ([written([7, 8]), written([7, 8, 9])], "ranges_counts_differ"),
        ([written([7, 8]), written([7, 8], explicit=True)], "ranges_explicit"),
    ],
)
def test_what_is_left_to_spark_has_a_reason(exchanges: list[object], reason: str) -> None:
    answer = ask_ranges(*exchanges)  # type: ignore[arg-type]
    assert (answer.specs, answer.record.reason, answer.record.kind) == (None, reason, "nothing_to_do")


@pytest.mark.parametrize(
    ("left", "message"), [("skew", "splits the skewed ones"), ("local", "where the map")]
)
def test_what_spark_has_done_itself_stays(left: str, message: str) -> None:
    answer = ask_ranges(written([MIB] * 4), left=left)
    assert (answer.specs, answer.record.reason) == (None, f"ranges_left_{left}")
    assert message in answer.record.message
    assert "4 MiB" in answer.record.message


@pytest.mark.parametrize("settings", [BatchSettings(enabled=False), BatchSettings(ranges_enabled=False)])
def test_switched_off_it_says_so(settings: BatchSettings) -> None:
    assert ask_ranges(written([1, 2]), settings=settings).record.reason == "ranges_off"


LEFT = written([10, 20, 10, 10, 10], large={1: [60, 60, 60, 60]}, side="left", id="l")
RIGHT = written([10, 10, 10, 10, 10], side="right", id="r")


def ask_join(*exchanges: object, **facts: object) -> RangesAnswer:
    given = exchanges or (LEFT, RIGHT)
    return ask_ranges(*given, **{"settings": SMALL, "slots": 4, "join": "inner", **facts})  # type: ignore[arg-type]


def test_a_skewed_partition_is_split_between_its_map_tasks() -> None:
    answer = ask_join()
    assert answer.specs == (
        Spec(start=0, end=1),
        *(Spec(start=1, end=2, maps=(MapRange(exchange=0, start=n, end=n + 1),)) for n in range(4)),
        Spec(start=2, end=5),
    )
    assert answer.record.reason == "ranges_split"


def test_if_both_sides_are_skewed_each_piece_meets_each() -> None:
    right = written([10, 20, 10, 10, 10], large={1: [90, 90]}, side="right", id="r")
    answer = ask_join(LEFT, right)
    met = [tuple((part.start, part.end) for part in spec.maps) for spec in specs_of(answer) if spec.maps]
    assert met == [((n, n + 1), (m, m + 1)) for n in range(4) for m in range(2)]


def test_pieces_that_are_joined_are_still_a_block() -> None:
    right = written([10, 20, 10, 10, 10], large={1: [90, 90]}, side="right", id="r")
    answer = ask_join(LEFT, right, upper=8)
    met = [tuple((part.start, part.end) for part in spec.maps) for spec in specs_of(answer) if spec.maps]
    # All of the right side is not named: each of the left side's pieces meets it in one task.
    assert met == [((n, n + 1),) for n in range(4)]


@pytest.mark.parametrize(
    ("join", "left", "right"),
    [
        ("inner", True, True),
        ("cross", True, True),
        ("left_outer", True, False),
        ("left_semi", True, False),
        ("left_anti", True, False),
        ("right_outer", False, True),
        ("full_outer", False, False),
        ("other", False, False),
    ],
)
def test_a_side_is_split_where_the_other_may_be_read_twice(join: str, left: bool, right: bool) -> None:
    mirrored = (written([10] * 5, side="left", id="l"), written([10] * 5, large={1: [60] * 4}, side="right"))
    assert (ask_join(join=join).record.reason == "ranges_split") == left
    assert (ask_join(*mirrored, join=join).record.reason == "ranges_split") == right


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"keyed": True}, "what follows relies on their keys being together"),
        ({"join": "full_outer"}, "this type of join needs each whole on both sides"),
        ({"upper": 3}, "their map tasks or the bounds do not allow it"),
    ],
)
def test_skew_that_stays_is_told_with_its_reason(facts: dict[str, object], why: str) -> None:
    answer = ask_join(**facts)
    assert answer.record.reason == "ranges_skewed"
    assert why in answer.record.message
    assert all(not spec.maps for spec in specs_of(answer))


@pytest.mark.parametrize(
    "exchanges",
    [
        (written(LEFT.bytes, side="left"), RIGHT),
        (written([10] * 5, large={1: [60, -1, 250]}, side="left"), RIGHT),
        (written([10] * 5, large={1: [240]}, side="left"), RIGHT),
        (written([10] * 5, large={1: [60] * 4}), RIGHT),
        (written([10] * 5, large={1: [60] * 4}, side="left"), written([10] * 5, side="left")),
        (LEFT, RIGHT, written([10] * 5, id="third")),
    ],
    ids=["no map sizes", "a map output lost", "one map task", "no side", "one side twice", "three"],
)
def test_what_cannot_be_split_is_not(exchanges: tuple[object, ...]) -> None:
    assert all(not spec.maps for spec in specs_of(ask_join(*exchanges)))


def test_splitting_can_be_switched_off() -> None:
    settings = BatchSettings(avg_data_volume_per_task=100, skew_threshold=100, skew_enabled=False)
    answer = ask_join(settings=settings)
    assert "that is switched off" in answer.record.message


def test_pieces_are_joined_again_where_the_upper_bound_asks_for_it() -> None:
    answer = ask_join(upper=4)
    pieces = [spec for spec in specs_of(answer) if spec.maps]
    assert len(specs_of(answer)) <= 4
    assert [(part.start, part.end) for spec in pieces for part in spec.maps] == [(0, 2), (2, 4)]


def test_the_record_has_the_numbers_that_were_compared() -> None:
    numbers = ask_join().record.numbers
    read = [read_by(spec, (LEFT, RIGHT)) for spec in specs_of(ask_join())]
    assert numbers["bytes"] == sum(LEFT.bytes) + sum(RIGHT.bytes)
    assert numbers["read_bytes"] == sum(read)
    assert numbers["largest"] == max(read)
    assert (numbers["split"], numbers["skewed"], numbers["slots"], numbers["volume"]) == (1, 1, 4, 100)
