"""Tests of the sizes of a batch stage's tasks, derived from questions and answers."""

from __future__ import annotations

from typing import Any

import pytest

from spark_elastic.runtime.decided_stages import (
    HISTOGRAM_BUCKETS,
    STAGES_KEPT,
    DecidedStages,
    Exchange,
    Sizes,
)


def exchange(*sizes: int) -> dict[str, Any]:
    return {"id": "e", "bytes": list(sizes)}


def sizes(exchanges: list[dict[str, Any]], specs: list[dict[str, Any]] | None) -> Sizes | None:
    question = {"type": "Ranges", "group": "g", "slots": 2, "exchanges": exchanges}
    stages = DecidedStages()
    stages.add({"question": question, "answer": {"specs": specs}})
    return stages.newest_first()[0].sizes


def spec(start: int, end: int) -> dict[str, Any]:
    return {"start": start, "end": end}


def test_a_task_reads_its_range_of_all_exchanges() -> None:
    found = sizes([exchange(10, 20, 30), exchange(1, 2, 3)], [spec(0, 2), spec(2, 3)])
    assert found is not None
    assert (found.of_tasks, found.count, found.total) == (True, 2, 66)
    assert (found.smallest, found.median, found.largest) == (33, 33, 33)
    assert found.buckets == (0,) * (HISTOGRAM_BUCKETS - 1) + (2,)


def test_buckets_are_equal_steps_up_to_the_largest() -> None:
    found = sizes([exchange(0, 11, 12, 119)], [spec(n, n + 1) for n in range(4)])
    assert found is not None
    assert found.buckets == (1, 2, *(0,) * (HISTOGRAM_BUCKETS - 3), 1)


def test_without_ranges_of_ours_the_partitions_are_counted() -> None:
    found = sizes([exchange(10, 20), exchange(1, 1)], None)
    assert found is not None
    assert (found.of_tasks, found.count, found.total) == (False, 2, 32)


def test_a_group_without_exchanges_has_no_sizes() -> None:
    assert sizes([], None) is None


def test_before_a_shuffle_is_written_there_are_no_tasks_to_measure() -> None:
    stages = DecidedStages()
    planned = {"id": "e", "bytes": 100}
    question = {"type": "InitialCount", "group": "g", "slots": 2, "planned": 200, "exchanges": [planned]}
    stages.add({"question": question, "answer": {"partitions": 4}})
    assert stages.newest_first()[0].sizes is None


def stage(group: str, *bytes: int) -> dict[str, Any]:
    question = {"type": "InitialCount", "group": group, "slots": 2, "planned": 200}
    exchanges = [{"id": f"{group}-{size}", "bytes": size} for size in bytes]
    return {"question": {**question, "exchanges": exchanges}, "answer": {"partitions": 4}}


def test_the_exchanges_of_a_group_keep_their_bytes() -> None:
    stages = DecidedStages()
    stages.add(stage("7:a", 100, -1))
    written = {"type": "Ranges", "group": "7:b", "slots": 2, "exchanges": [exchange(10, 20)]}
    stages.add({"question": written, "answer": {"specs": None}})
    stages.add({"question": {"type": "SplitOffsets", "scan": "8:t", "late": False}, "answer": {"tasks": 2}})
    expected = [
        [],
        [Exchange(id="e", bytes=30)],
        [Exchange(id="7:a-100", bytes=100), Exchange(id="7:a--1", bytes=None)],
    ]
    assert [list(found.exchanges) for found in stages.newest_first()] == expected
    # Also once the journal has them, and the lists are gone.
    assert len(list(stages.take_unwritten())) == 3
    assert [list(found.exchanges) for found in stages.newest_first()] == expected


def test_decisions_are_grouped_by_execution() -> None:
    stages = DecidedStages()
    for group in ("7:a", "8:a", "7:b", ":a", ":b", "no colon"):
        stages.add(stage(group))
    found = [[(one.execution, one.number) for one in group] for group in stages.by_execution()]
    assert found == [[(None, 6)], [(None, 5)], [(None, 4)], [("7", 3), ("7", 1)], [("8", 2)]]


def test_what_a_streaming_query_runs_has_its_id() -> None:
    stages = DecidedStages()
    for group in ("7:a@b", "8@q1:a", "9@q2:a", "8@q1:b"):
        stages.add(stage(group))
    found = [[(one.execution, one.query) for one in group] for group in stages.by_execution()]
    assert found == [[("8", "q1")] * 2, [("9", "q2")], [("7", None)]]


@pytest.mark.parametrize(("often", "seldom"), [("8@q1:a", "7:a"), ("7:a", "8@q1:a")])
def test_the_oldest_are_forgotten_but_not_for_those_of_another_kind(often: str, seldom: str) -> None:
    stages = DecidedStages()
    stages.add(stage(seldom))
    for _ in range(STAGES_KEPT + 5):
        stages.add(stage(often))
    numbers = [decided.number for decided in stages.newest_first()]
    assert numbers == [*range(STAGES_KEPT + 6, 6, -1), 1]
