from __future__ import annotations

from spark_elastic.core.actions import StopQuery
from spark_elastic.demo.board import Board
from spark_elastic.demo.narrate import Narrator
from spark_elastic.runtime.entries import ActionsEntry, EventEntry
from tests.unit.demo.facts import (
    added,
    decommissioning,
    progress,
    removed,
    report,
    snapshot,
    stopped,
    submitted,
    terminated,
)


def board_of(*entries: EventEntry | ActionsEntry) -> Board:
    board = Board()
    for entry in entries:
        board.read(entry)
    return board


def test_slots_follow_the_executors() -> None:
    board = Board()
    for event in (
        snapshot(),
        added("0", 1),
        added("1", 2),
        added("2", 3),
        decommissioning("0", 4),
        removed("1", 5),
    ):
        board.follow(event)
    assert board.slots.total == 1
    assert [(change.kind, change.executor) for change in board.changes] == [
        ("added", "0"),
        ("added", "1"),
        ("added", "2"),
        ("decommissioning", "0"),
        ("removed", "1"),
    ]


def test_a_restart_is_seen_from_order_to_first_batch() -> None:
    board = Board()
    board.follow(submitted("totals", stateful=True))
    board.follow(progress("totals", 0, 100, 2))
    board.order(StopQuery(id="a1", cause="s1", query="totals"))
    query = board.queries["totals"]
    assert query.state == "stopping"
    board.follow(stopped("totals", 500))
    assert (query.state, query.restarts) == ("restarting", 1)
    board.follow(progress("totals", 1, 900, 3))
    assert (query.state, query.partitions) == ("running", 3)
    assert query.in_force_since(3, after=0) == 900
    assert query.in_force_since(2, after=101) is None


def test_a_second_snapshot_goes_on_from_the_first() -> None:
    board = board_of(
        EventEntry(event=snapshot()),
        EventEntry(event=submitted("q")),
        EventEntry(event=progress("q", 0, 50, 1)),
    )
    board.follow(snapshot(at=100))
    assert len(board.queries["q"].batches) == 1


def test_each_change_is_told_once() -> None:
    board = board_of(
        EventEntry(event=added("0", 1)),
        EventEntry(event=submitted("lines")),
        ActionsEntry(actions=(report("lines", "Starts with 1 partition."),)),
        EventEntry(event=progress("lines", 0, 100, 1)),
        EventEntry(event=progress("lines", 1, 1100, 1)),
    )
    narrator = Narrator()
    assert narrator.lines(board) == [
        "executor 0 registered; slots: 1",
        "lines: Starts with 1 partition. [in_place]",
        "lines: runs with 1 partition",
    ]
    assert narrator.lines(board) == []
    board.follow(progress("lines", 2, 2100, 2))
    board.follow(terminated("lines", 3000, "disk full"))
    assert narrator.lines(board) == ["lines: runs with 2 partitions", "lines: failed: disk full"]
    assert narrator.lines(board) == []
