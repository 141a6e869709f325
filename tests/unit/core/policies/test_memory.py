"""Tests that the memory of a query is bounded, in order, and consistent."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from spark_elastic.core import events as ev
from spark_elastic.core.load.pace import Batch
from spark_elastic.core.policies.memory import QueryMemory


def told(memory: QueryMemory, number: int, *, run: str = "r1", slots: int = 4, **fields: Any) -> None:
    usual: dict[str, Any] = {"duration_ms": 400, "input_rows": 1_000, "partitions": slots, **fields}
    progress = ev.QueryProgress(
        id=f"s{number}", at=number * 1_000 + 400, query="q", run=run, batch=number, started=number * 1_000,
        **usual,
    )  # fmt: skip
    batch = Batch(
        duration_ms=usual["duration_ms"], gap_ms=1_000, input_rows=usual["input_rows"], partitions=slots,
        slots=slots,
    )  # fmt: skip
    memory.batch(progress, batch, progress.at)


def test_a_batch_says_what_its_progress_said() -> None:
    memory = QueryMemory()
    told(memory, 1, records_behind=17)
    (sample,) = memory.samples
    assert (sample.behind, sample.started, sample.at) == (17, 1_000, 1_400)


def test_the_batch_of_a_change_and_the_first_after_it_belong_to_no_number_of_slots() -> None:
    memory = QueryMemory()
    memory.runs_with(0, 4, 4)
    told(memory, 1)
    memory.runs_with(1_500, 4, 4)
    told(memory, 2)
    memory.runs_with(2_500, 6, 6)
    for number in (3, 4, 5):
        told(memory, number, slots=6)
    assert [sample.steady for sample in memory.samples] == [True, True, False, False, True]
    assert [one.slots for one in memory.applied] == [4, 6]


def test_what_a_batch_takes_is_known_in_the_next_run_and_what_comes_in_is_not() -> None:
    memory = QueryMemory()
    for number in range(5):
        told(memory, number)
    told(memory, 6, run="r2")
    assert [sample.started for sample in memory.samples] == [6_000]
    assert len(memory.earlier) == 4


def test_a_few_batches_of_each_size_and_number_of_slots_are_kept() -> None:
    memory = QueryMemory()
    for number in range(60):
        told(memory, number, slots=2, input_rows=100)
    for number in range(60, 120):
        told(memory, number, slots=8, input_rows=10_000)
    assert len([sample for sample in memory.earlier if sample.slots == 2]) == 4
    memory.validate()


def test_what_was_measured_an_hour_ago_is_forgotten() -> None:
    memory = QueryMemory()
    for number in (*range(25), *range(4_000, 4_025)):
        told(memory, number)
    assert all(sample.started >= 4_000_000 for sample in memory.earlier)


def test_a_pause_is_counted_once() -> None:
    memory = QueryMemory()
    for ended, took in ((100, 7), (100, 7), (200, 9)):
        memory.paused_for(ended, took)
    assert memory.pauses_ms == (7, 9)


@given(
    st.lists(
        st.tuples(st.integers(1, 9), st.integers(0, 100_000), st.booleans(), st.sampled_from(["r1", "r2"])),
        max_size=200,
    )
)
def test_whatever_happens_it_stays_bounded(life: list[tuple[int, int, bool, str]]) -> None:
    memory = QueryMemory()
    for number, (slots, rows, changes, run) in enumerate(life):
        if changes:
            memory.runs_with(number * 1_000, slots, slots)
        told(memory, number, run=run, slots=slots, input_rows=rows)
        memory.wants(number * 1_000, slots, 60_000)
        memory.validate()
