"""Tests of the history: newest first, bounded, one record at a time."""

from __future__ import annotations

import pytest

from spark_elastic.core.events import NewExecutor
from spark_elastic.core.rescale.history import Cause, History, Stay


def test_causes_that_come_up_meanwhile_join_the_open_record() -> None:
    history = History(limit=3)
    history.open("new_resources", state="Executing", at=10, slots=2, partitions=2)
    history.open("load_changed", state="Executing", at=20, slots=4, partitions=2)
    (record,) = history.records
    assert (record.cause, record.started, record.status) == ("new_resources", 10, "in_progress")


@pytest.mark.parametrize("cause", ["lost_resources", "recoverable_failover"])
def test_a_loss_or_a_failure_becomes_the_cause_of_the_open_record(cause: Cause) -> None:
    history = History(limit=3)
    history.open("new_resources", state="Executing", at=10, slots=2, partitions=2)
    history.entered("Restarting", 15)
    history.open(cause, state="Restarting", at=20, slots=4, partitions=2)
    (record,) = history.records
    assert (record.cause, record.started) == (cause, 10)
    assert record.stays == (Stay(state="Restarting", entered=20),)


def test_a_closed_record_keeps_its_first_reason() -> None:
    history = History(limit=3)
    history.open("new_resources", state="Executing", at=10)
    history.close("exception_occurred", at=20)
    history.close("succeeded", at=30)
    (record,) = history.records
    assert (record.reason, record.status, record.ended) == ("exception_occurred", "failed", 20)


def test_the_oldest_is_forgotten_and_numbers_go_on() -> None:
    history = History(limit=2)
    for at in range(5):
        history.open("new_resources", state="Executing", at=at)
        history.close("no_resources_or_parallelisms_change", at=at)
    assert [record.number for record in history.records] == [5, 4]
    history.validate()


def test_the_stays_tell_where_the_time_went() -> None:
    history = History(limit=2)
    history.entered("Executing", 5)
    history.open("new_resources", state="Executing", at=10)
    history.entered("Restarting", 30)
    history.close("succeeded", at=70)
    stays = history.records[0].stays
    assert [(stay.state, stay.entered, stay.left) for stay in stays] == [
        ("Executing", 10, 30),
        ("Restarting", 30, 70),
    ]


def new(joined: int, launched: int, warm_up_ms: int | None = None) -> NewExecutor:
    return NewExecutor(executor="1", joined=joined, launched=launched, warm_up_ms=warm_up_ms)


def test_new_executors_count_for_the_rescale_during_which_they_have_joined() -> None:
    history = History(limit=4)
    for started, ended in ((10, 20), (30, 40)):
        history.open("new_resources", state="Executing", at=started)
        history.close("succeeded", at=ended)
    history.open("update_requirement", state="Executing", at=50)
    history.used([new(30, 80, 9), new(40, 70, 12), new(10, 60), new(55, 90)])
    found = [(record.started, record.executors_used, record.warm_up_ms) for record in history.records]
    assert found == [(50, 90, None), (30, 80, 12), (10, 60, None)]


def test_executors_that_joined_at_another_time_or_for_the_first_start_count_for_none() -> None:
    history = History(limit=4)
    history.open("initial_schedule", state="CreatingExecutionGraph", at=10)
    history.close("succeeded", at=20)
    history.open("new_resources", state="Executing", at=30)
    history.close("succeeded", at=40)
    history.used([new(5, 50), new(15, 50), new(25, 50), new(45, 50)])
    assert [record.executors_used for record in history.records] == [None, None]


def moved(history: History, at: int) -> None:
    """Open a record whose rescale moves the state, and close it."""
    history.open("new_resources", state="Executing", at=at)
    history.moved()
    history.close("succeeded", at=at + 5)


def test_the_first_micro_batch_after_a_move_belongs_to_its_record() -> None:
    history = History(limit=4)
    moved(history, 10)
    # Another change may come before that micro-batch is committed.
    history.open("load_changed", state="Executing", at=20)
    history.ran_first(420)
    history.ran_first(240)
    assert [record.first_batch_ms for record in history.records] == [None, 420]


def test_it_may_be_committed_before_the_outcome_is_heard_of() -> None:
    history = History(limit=4)
    history.open("new_resources", state="Executing", at=10)
    history.moved()
    history.ran_first(420)
    history.switched(30, 4_000)
    history.close("succeeded", at=40)
    (record,) = history.records
    assert (record.first_batch_ms, record.prepared_ms, record.ran_until) == (420, 4_000, 30)


def test_a_micro_batch_after_a_forgotten_record_or_without_any_counts_for_none() -> None:
    history = History(limit=1)
    history.moved()
    history.ran_first(420)
    moved(history, 10)
    history.open("load_changed", state="Executing", at=20)
    history.ran_first(240)
    assert [record.first_batch_ms for record in history.records] == [None]
