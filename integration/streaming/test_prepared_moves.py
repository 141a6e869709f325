"""Tests of moves that are prepared while micro-batches run: what follows a copy, and what ends it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from integration.streaming.files import Inbox
from integration.streaming.prepared import PREFIX, Orders, copies
from integration.streaming.waiting import eventually
from integration.streaming.world import (
    Totals,
    World,
    partitions_after_batch,
    state_partitions,
    stream,
    totals,
)

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

# A copy of the tests' state takes seconds at this rate (bytes per second).
SLOW = 15_000


class Moves:
    """A query with a state of seven keys in two partitions, and orders about it.

    `rows` and `out` are another query with its folder for output.
    """

    def __init__(
        self, world: World, inbox: Inbox, checkpoint: Path, rows: DataFrame | None = None, out: str = ""
    ) -> None:
        self.policy = world.policy
        self.inbox = inbox
        self.checkpoint = checkpoint
        self.sink = Totals()
        if rows is None:
            writer = totals(world.spark, inbox).writeStream.outputMode("update").foreachBatch(self.sink)
        else:
            writer = rows.writeStream.format("json").option("path", out)
        self.query: StreamingQuery = writer.option("checkpointLocation", str(checkpoint)).start()
        self._orders = Orders(world.policy, self.query.id)
        inbox.put(2)
        self.query.processAllAvailable()

    def order_preparation(self, partitions: int, rate: int = 0) -> Callable[[], dict[str, Any] | None]:
        """Order to prepare a move; the result returns its outcome, None as long as there is none."""
        self._orders.begin(partitions, rate)
        return lambda: self.policy.outcome("PrepareMove", self.query.id)

    def prepare(self, partitions: int) -> None:
        self._orders.prepare(partitions)

    def rescale(self, partitions: int) -> dict[str, Any]:
        """Move the state and return the outcome."""
        outcome = self._orders.move(partitions)
        assert outcome["type"] == "ActionDone", outcome
        return outcome

    def batches(self, number: int) -> None:
        for _ in range(number):
            self.inbox.put()
            self.query.processAllAvailable()

    def files(self) -> set[str]:
        """Return the files of the checkpoint's state and of copies."""
        folders = (
            Path(folder).relative_to(self.checkpoint) / name
            for folder, _, names in os.walk(self.checkpoint)
            for name in names
        )
        return {str(f) for f in folders if f.parts[0] == "state" or f.parts[0].startswith(PREFIX)}

    def copies(self) -> set[str]:
        """Return the hidden folders that the checkpoint has."""
        return {path.name for path in copies(self.checkpoint)}

    def check(self, partitions: int) -> None:
        """Check the query's output after another micro-batch, and that only its checkpoint is left."""
        assert partitions_after_batch(self.query, self.inbox) == partitions
        assert self.sink.now == self.inbox.totals()
        eventually(lambda: not self.copies(), "no copy is left")


@pytest.fixture
def moves(world: World, inbox: Inbox, tmp_path: Path) -> Moves:
    return Moves(world, inbox, tmp_path / "checkpoint")


def changelogs(moves: Moves, partition: int) -> list[str]:
    """Return version and number of each changelog of a copy in a new partition, in order."""
    names = (Path(name) for name in moves.files() if name.startswith(f"state/0/{partition}/"))
    stems = [name.stem for name in names if name.suffix == ".changelog" and name.stem.count("-") == 5]
    found = [(int(stem.split("_")[0]), stem.rsplit("-", 1)[1]) for stem in stems]
    return [f"{version}-{number}" for version, number in sorted(found)]


def test_batches_during_the_copy_share_a_changelog_and_each_later_one_has_its_own(moves: Moves) -> None:
    outcome = moves.order_preparation(4, rate=SLOW)
    moves.batches(3)
    assert outcome() is None
    eventually(outcome, "it is prepared")
    moves.batches(2)
    assert moves.rescale(4)["prepared"]
    # The copy is of batch 1, and version b + 2 stands for batch b.
    found = changelogs(moves, 3)
    assert found[-1] == f"8-{len(found)}"
    assert found == [f"{8 - len(found) + number}-{number}" for number in range(1, len(found) + 1)]
    assert 2 <= len(found) < 5
    moves.check(4)
    moves.query.stop()


def test_a_copy_that_no_batch_has_followed_needs_no_changelog(moves: Moves) -> None:
    moves.prepare(3)
    assert moves.rescale(3)["prepared"]
    assert changelogs(moves, 2) == []
    moves.check(3)
    moves.query.stop()


def test_changes_beside_a_long_copy_are_in_its_snapshot(world: World, tmp_path: Path) -> None:
    inbox = Inbox(tmp_path / "in")
    # Texts of 1 KB that compress little. Each batch ends the window of the one before: rows are deleted.
    text = F.concat(*(F.sha2(F.concat_ws("-", "value", F.lit(number)), 512) for number in range(8)))
    timed = stream(world.spark, inbox).select(
        (F.col("value") / 1000).cast("timestamp").alias("at"), "value", text.alias("text")
    )
    windows = timed.withWatermark("at", "1 second").groupBy(F.window("at", "2 seconds"), "value")
    values: list[int] = []
    query = (
        windows.agg(F.max("text"))
        .writeStream.outputMode("update")
        .foreachBatch(lambda batch, _: values.extend(row.value for row in batch.collect()))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    orders = Orders(world.policy, query.id)

    def batches(number: int) -> int:
        """Run micro-batches, and return the rows of the state after them."""
        for _ in range(number):
            inbox.put(rows=2_000)
            query.processAllAvailable()
        assert query.lastProgress is not None
        return int(query.lastProgress["stateOperators"][0]["numRowsTotal"])

    rows = batches(2)
    orders.begin(3, rate=150_000)
    eventually(lambda: copies(tmp_path / "checkpoint"), "it copies")
    batches(8)
    assert orders.outcome()["type"] == "ActionDone"
    assert any("is one of batch" in line for line in world.driver.said())
    batches(1)
    assert orders.move(3)["prepared"]
    assert batches(2) == rows
    assert state_partitions(query) == 3
    query.stop()
    assert sorted(values) == inbox.values()


def test_an_idle_query_is_moved(moves: Moves) -> None:
    for partitions in (1, 5, 4):
        moves.prepare(partitions)
        assert moves.rescale(partitions)["prepared"]
        moves.check(partitions)
    moves.query.stop()


def test_a_preparation_for_the_present_count_ends_one_that_runs(moves: Moves) -> None:
    outcome = moves.order_preparation(3, rate=SLOW)
    first = moves.policy.seen("PrepareMove", moves.query.id)[0]["id"]
    eventually(moves.copies, "it copies")
    moves.prepare(2)
    failed = [event for event in moves.policy.all("ActionFailed") if event["action"] == first]
    assert [event["error"] for event in failed] == ["another one was ordered after it"]
    assert outcome() is not None
    moves.check(2)
    assert not moves.rescale(3)["prepared"]
    moves.check(3)
    moves.query.stop()


def test_what_was_prepared_is_deleted_if_another_count_follows(moves: Moves) -> None:
    before = moves.files()
    moves.prepare(3)
    placed = moves.files() - before
    assert any(name.startswith("state/0/2/") for name in placed)
    moves.prepare(5)
    eventually(lambda: not placed & moves.files(), "the first copy is gone")
    assert moves.rescale(5)["prepared"]
    moves.check(5)
    moves.query.stop()


def test_a_preparation_that_is_ordered_again_goes_on(moves: Moves) -> None:
    moves.order_preparation(3, rate=SLOW)
    folder = eventually(moves.copies, "it copies")
    moves.prepare(3)
    assert moves.copies() == folder
    moves.prepare(3)
    moves.batches(1)
    assert moves.rescale(3)["prepared"]
    moves.check(3)
    moves.query.stop()


def test_a_move_to_another_count_than_the_prepared_one_is_made_in_a_pause(moves: Moves) -> None:
    moves.prepare(3)
    placed = {name for name in moves.files() if name.startswith("state/0/2/")}
    assert not moves.rescale(4)["prepared"]
    moves.check(4)
    assert placed
    eventually(lambda: not placed & moves.files(), "what was prepared is gone")
    moves.query.stop()


def test_a_query_that_stops_while_its_state_is_copied_leaves_no_copy(
    world: World, inbox: Inbox, tmp_path: Path
) -> None:
    moves = Moves(world, inbox, tmp_path / "checkpoint")
    before = moves.files()
    moves.order_preparation(3, rate=SLOW)
    eventually(moves.copies, "it copies")
    moves.query.stop()
    eventually(lambda: moves.files() == before, "nothing is left")
    again = Moves(world, inbox, tmp_path / "checkpoint")
    again.sink.now = {**moves.sink.now, **again.sink.now}
    again.prepare(3)
    assert again.rescale(3)["prepared"]
    again.check(3)
    again.query.stop()


@pytest.mark.parametrize("name", ["a space", "%20", "a#b"])
def test_the_checkpoint_may_have_any_name(world: World, inbox: Inbox, tmp_path: Path, name: str) -> None:
    moves = Moves(world, inbox, tmp_path / name)
    moves.prepare(3)
    moves.batches(1)
    assert moves.rescale(3)["prepared"]
    moves.check(3)
    moves.query.stop()


def test_a_file_sink_misses_no_batch(world: World, inbox: Inbox, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    moves = Moves(
        world, inbox, tmp_path / "checkpoint", stream(world.spark, inbox).dropDuplicates(["value"]), out
    )
    # Spark compacts the log of a file sink with every tenth batch, and fails if one is missing.
    for number in range(6):
        moves.prepare(3 - number % 2)
        moves.batches(1)
        assert moves.rescale(3 - number % 2)["prepared"]
        moves.batches(1)
    moves.query.stop()
    written = world.spark.read.json(out)
    assert sorted(row.value for row in written.collect()) == inbox.values()
