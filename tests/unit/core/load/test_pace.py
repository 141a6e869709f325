"""Tests of the facts that are kept of the last micro-batches."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from spark_elastic.core.events import QueryProgress, SourceRead
from spark_elastic.core.load.pace import BATCHES_KEPT, Pace

FIRST = QueryProgress(
    id="s1",
    at=2_000,
    query="q",
    run="r1",
    batch=0,
    started=1_000,
    duration_ms=400,
    input_rows=100,
    partitions=2,
)


def paced(*batches: dict[str, Any]) -> Pace:
    pace = Pace()
    for change in batches:
        pace = pace.after(evolve(FIRST, **change), slots=4)
    return pace


def test_nobody_knows_for_how_long_the_rows_of_the_first_batch_have_come() -> None:
    first = paced({}).latest
    assert first is not None
    assert (first.gap_ms, first.busy, first.input_rows_per_second) == (None, None, None)
    assert (first.duration_ms, first.partitions, first.slots) == (400, 2, 4)


@pytest.mark.parametrize(
    ("sources", "tasks", "whole"),
    [
        ((), None, False),
        ((SourceRead(rows=4, tasks=3), SourceRead(rows=4, tasks=7)), 10, False),
        # A source that has read nothing may leave out its number of tasks.
        ((SourceRead(rows=4, tasks=3, whole=True), SourceRead(rows=0)), 3, True),
        ((SourceRead(rows=4, tasks=3, whole=True), SourceRead(rows=4)), None, False),
        ((SourceRead(rows=0, tasks=0, whole=True),), 0, False),
    ],
)
def test_the_tasks_of_all_sources_are_added_up(
    sources: tuple[SourceRead, ...], tasks: int | None, whole: bool
) -> None:
    latest = paced({"sources": sources}).latest
    assert latest is not None
    assert (latest.source_tasks, latest.whole) == (tasks, whole)


def test_rates_go_by_the_time_between_the_beginnings() -> None:
    second = paced({}, {"started": 1_800, "input_rows": 160}).latest
    assert second is not None
    assert (second.gap_ms, second.busy, second.input_rows_per_second) == (800, 0.5, 200.0)


def test_folded_batches_count_with_their_rows_and_their_time() -> None:
    latest = paced({}, {"started": 2_600, "input_rows": 320, "merged": 1}).latest
    assert latest is not None
    assert (latest.gap_ms, latest.batches, latest.busy, latest.input_rows_per_second) == (
        1_600,
        2,
        0.5,
        200.0,
    )


def test_another_run_begins_anew() -> None:
    pace = paced({}, {"run": "r2", "started": 9_000})
    assert len(pace.batches) == 1
    assert pace.latest is not None
    assert pace.latest.gap_ms is None


def test_a_clock_that_was_set_back_tells_no_rate() -> None:
    latest = paced({}, {"started": 900}).latest
    assert latest is not None
    assert latest.gap_ms is None


def test_few_batches_are_kept() -> None:
    pace = paced(*({"started": 1_000 * number} for number in range(1, 20)))
    assert len(pace.batches) == BATCHES_KEPT


def test_an_idle_query_forgets_what_was_measured_and_not_when() -> None:
    resting = paced({}).resting("r1")
    assert (resting.idle, resting.batches) == (True, ())
    again = resting.after(evolve(FIRST, started=61_000), slots=4)
    assert not again.idle
    assert again.latest is not None
    assert again.latest.gap_ms == 60_000
