"""The history: newest first, bounded, one record at a time."""

from __future__ import annotations

import pytest

from spark_elastic.core.rescale.history import Cause, History, Stay, TerminatedReason


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


def test_the_last_new_executor_that_begins_puts_a_rescale_in_force() -> None:
    history = History(limit=2)
    history.open("new_resources", state="Executing", at=10)
    history.used(20, None)
    history.close("succeeded", at=30)
    history.used(50, 9)
    history.used(40, 12)
    (record,) = history.records
    assert (record.in_force, record.warm_up_ms) == (50, 12)


@pytest.mark.parametrize("reason", ["exception_occurred", "no_resources_or_parallelisms_change"])
def test_an_executor_counts_for_no_rescale_that_came_to_nothing(reason: TerminatedReason) -> None:
    history = History(limit=2)
    history.used(5, 1)
    history.open("new_resources", state="Executing", at=10)
    history.close(reason, at=20)
    history.used(30, 1)
    assert history.records[0].in_force is None


def test_an_executor_counts_neither_for_the_first_start_nor_for_what_began_later() -> None:
    history = History(limit=2)
    history.open("initial_schedule", state="CreatingExecutionGraph", at=10)
    history.used(20, 1)
    history.close("succeeded", at=30)
    history.open("new_resources", state="Executing", at=40)
    history.used(35, 1)
    assert [record.in_force for record in history.records] == [None, None]
