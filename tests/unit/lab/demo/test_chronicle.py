"""Tests of the chronicle that the demonstration keeps of a journal."""

from __future__ import annotations

from spark_elastic.runtime.entries import ActionsEntry, EventEntry
from spark_elastic_lab.demo.chronicle import Chronicle
from tests.unit.lab.demo.facts import (
    added,
    decommissioning,
    progress,
    removed,
    report,
    snapshot,
    submitted,
    terminated,
)


def chronicle_of(*entries: EventEntry | ActionsEntry) -> Chronicle:
    chronicle = Chronicle()
    for entry in entries:
        chronicle.read(entry)
    return chronicle


def test_slots_follow_the_executors() -> None:
    chronicle = Chronicle()
    for event in (
        snapshot(),
        added("0", 1),
        added("1", 2),
        added("2", 3),
        decommissioning("0", 4),
        removed("1", 5),
    ):
        chronicle.follow(event)
    assert chronicle.slots.total == 1
    assert [(change.kind, change.executor) for change in chronicle.changes] == [
        ("added", "0"),
        ("added", "1"),
        ("added", "2"),
        ("decommissioning", "0"),
        ("removed", "1"),
    ]


REASONS = ("rescale_pays", "rescaled", "rescaled_prepared", "rescaled_unheard", "rescale_failed")


def test_batches_and_rescales_are_counted() -> None:
    chronicle = Chronicle()
    chronicle.follow(submitted("totals", stateful=True))
    chronicle.follow(progress("totals", 0, 100, 2))
    for number, reason in enumerate(REASONS):
        chronicle.order(report("totals", "…", number, reason))
    chronicle.order(report("another", "…", 9, "rescaled"))
    chronicle.follow(progress("totals", 1, 900, 3))
    query = chronicle.queries["totals"]
    assert query.rescales == 3
    assert query.in_force_since(3, after=0) == 900
    assert query.in_force_since(2, after=101) is None


def test_a_second_snapshot_goes_on_from_the_first() -> None:
    chronicle = chronicle_of(
        EventEntry(event=snapshot()),
        EventEntry(event=submitted("q")),
        EventEntry(event=progress("q", 0, 50, 1)),
    )
    chronicle.follow(snapshot(at=100))
    assert len(chronicle.queries["q"].batches) == 1


def test_orders_that_report_and_the_error_of_an_end_are_kept() -> None:
    chronicle = chronicle_of(
        EventEntry(event=submitted("lines")),
        ActionsEntry(actions=(report("lines", "Starts with 1 partition."),)),
        EventEntry(event=terminated("lines", 3000, "disk full")),
    )
    assert chronicle.decided == 1
    assert chronicle.queries["lines"].error == "disk full"
