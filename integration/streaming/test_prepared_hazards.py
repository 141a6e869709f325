"""Tests of a move that is prepared while its query fails, stops, starts again, or goes on for long."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql.streaming.query import StreamingQuery

from integration.streaming.driver import PLUGIN, Driver
from integration.streaming.files import Inbox
from integration.streaming.prepared import Copied, Orders, copies, is_clean, known
from integration.streaming.stand_ins import ScriptedPolicy
from integration.streaming.test_failures import Flaky, start
from integration.streaming.test_storage_away import STORAGE, Storage
from integration.streaming.test_storage_away import jvm as jvm
from integration.streaming.test_storage_away import storage as storage
from integration.streaming.waiting import eventually
from integration.streaming.world import World, state_partitions

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

OFTEN = {
    "spark.sql.streaming.stateStore.maintenanceInterval": "50ms",
    "spark.sql.streaming.stateStore.minDeltasForSnapshot": "1",
}
PHASES = ("copying", "placed", "prepared")


class Place:
    """A query over an inbox whose checkpoint is on a storage that can be slow or away."""

    def __init__(self, world: World, storage: Storage, inbox: Inbox) -> None:
        self.world = world
        self.inbox = inbox
        self.sink = Flaky(failures=0)
        self.checkpoint = storage.folder("checkpoint")
        self._name = storage.place("checkpoint")
        self.query = self._start()
        self.feed(2)
        self.orders = Orders(world.policy, self.query.id)

    def _start(self) -> StreamingQuery:
        return start(self.world.spark, self.inbox, self.sink, checkpointLocation=self._name)

    def again(self) -> None:
        """Start the query from its checkpoint."""
        self.query = self._start()
        self.orders = Orders(self.world.policy, self.query.id)

    def feed(self, batches: int = 1) -> None:
        for _ in range(batches):
            self.inbox.put()
            self.query.processAllAvailable()

    def check(self) -> None:
        """Check that it goes on, and that nothing has been lost or doubled."""
        self.feed(2)
        assert self.sink.result() == self.inbox.totals()
        assert self.query.isActive

    def check_moves(self, partitions: int) -> None:
        """Check that it can be moved, and that nothing of that move but its state is left then."""
        self.orders.prepare(partitions)
        self.feed(2)
        assert self.orders.move(partitions)["prepared"]
        self.check()
        assert state_partitions(self.query) == partitions
        eventually(lambda: not copies(self.checkpoint), "no copy")

    def known(self, phase: str) -> list[Copied]:
        """Return what the copies have that are there, once there is one in a phase."""
        if phase == "prepared":
            assert self.orders.outcome()["type"] == "ActionDone"
        return known(self.checkpoint, lambda copy: phase == "copying" or bool(copy.present(self.checkpoint)))

    def check_clean(self, copied: list[Copied]) -> None:
        eventually(lambda: is_clean(self.checkpoint, copied), "nothing is left")


@contextmanager
def placed(
    jvm: Driver, storage: Storage, inbox: Inbox, folder: Path, conf: Mapping[str, str], restarts: bool = False
) -> Iterator[Place]:
    """Start a query with two partitions in a context of its own."""
    policy = ScriptedPolicy(folder / "policy")
    policy.order(restarts=restarts)
    with jvm.session({**PLUGIN, **STORAGE, "spark.elastic.python": policy.python, **conf}) as spark:
        place = Place(World(jvm, spark, policy), storage, inbox)
        yield place
        place.query.stop()


@pytest.fixture
def place(jvm: Driver, storage: Storage, inbox: Inbox, tmp_path: Path) -> Iterator[Place]:
    with placed(jvm, storage, inbox, tmp_path, {}) as found:
        yield found


def snapshots(checkpoint: Path, partition: int) -> list[int]:
    """Return the versions of a partition that have a snapshot."""
    names = [path.name for path in (checkpoint / "state" / "0" / str(partition)).glob("*.zip")]
    return sorted(int(re.split("[_.]", name)[0]) for name in names)


@pytest.mark.parametrize("retained", [pytest.param(6, marks=pytest.mark.slow), 12])
def test_a_prepared_move_is_given_up_before_spark_deletes_its_snapshot(
    jvm: Driver, storage: Storage, inbox: Inbox, tmp_path: Path, retained: int
) -> None:
    """Spark takes the snapshot of a prepared move for one of its own, which it deletes when it is old."""
    conf = {**OFTEN, "spark.sql.streaming.minBatchesToRetain": str(retained)}
    with placed(jvm, storage, inbox, tmp_path, conf) as place:
        place.orders.prepare(3)
        copied = place.known("prepared")
        oldest = max(snapshots(place.checkpoint, 0))

        def is_deleted() -> bool:
            place.feed()
            return all(version > oldest for version in snapshots(place.checkpoint, 0))

        eventually(is_deleted, "Spark has deleted what was there")
        outcome = place.orders.move(3)
        assert outcome["type"] == "ActionDone"
        assert not outcome["prepared"]
        place.check()
        place.query.stop()
        place.again()
        place.check()
        place.check_clean(copied)


def test_a_copy_may_take_longer_than_spark_keeps_the_changes(
    jvm: Driver, storage: Storage, inbox: Inbox, tmp_path: Path
) -> None:
    conf = {**OFTEN, "spark.sql.streaming.minBatchesToRetain": "6"}
    with placed(jvm, storage, inbox, tmp_path, conf) as place:
        first = set((place.checkpoint / "state/0/0").glob("*.changelog"))
        place.orders.begin(3, rate=800)
        while any(path.exists() for path in first):
            place.feed()
        assert place.world.policy.outcome("PrepareMove", place.query.id) is None
        assert place.orders.outcome()["type"] == "ActionDone"
        assert place.orders.move(3)["prepared"]
        place.check()


@pytest.mark.slow
@pytest.mark.parametrize("phase", PHASES)
def test_a_micro_batch_that_fails(
    jvm: Driver, storage: Storage, inbox: Inbox, tmp_path: Path, phase: str
) -> None:
    with placed(jvm, storage, inbox, tmp_path, {}, restarts=True) as place:
        with storage.slow(200, "rename"):
            place.orders.begin(3)
            copied = place.known(phase)
            place.sink.left = 1
            place.feed()
        assert place.sink.failed == 1
        place.check_clean(copied)
        assert place.orders.outcome().get("error") in (None, "a micro-batch has failed")
        place.check()
        place.check_moves(3)


@pytest.mark.slow
@pytest.mark.parametrize("phase", PHASES)
def test_a_query_that_is_stopped(place: Place, storage: Storage, phase: str) -> None:
    with storage.slow(200, "rename"):
        place.orders.begin(3)
        copied = place.known(phase)
        place.query.stop()
    place.check_clean(copied)
    place.again()
    place.check()


@pytest.mark.parametrize(
    "phase", [pytest.param(phase, marks=() if phase == "copying" else pytest.mark.slow) for phase in PHASES]
)
def test_a_query_that_is_stopped_and_started_again_at_once(
    place: Place, storage: Storage, phase: str
) -> None:
    with storage.slow(200, "rename"):
        place.orders.begin(3)
        copied = place.known(phase)
        place.query.stop()
        place.again()
        place.feed()
    place.check()
    place.check_clean(copied)
    place.check_moves(3)


@pytest.mark.slow
@pytest.mark.parametrize("phase", PHASES)
def test_another_count_is_prepared_instead(place: Place, storage: Storage, phase: str) -> None:
    with storage.slow(200, "rename"):
        place.orders.begin(5)
        copied = place.known(phase)
        place.check_moves(3)
    place.check_clean(copied)


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["copying", "placed"])
@pytest.mark.parametrize("count", [3, 5])
def test_a_move_in_a_pause_overtakes_the_prepared_one(
    place: Place, storage: Storage, phase: str, count: int
) -> None:
    """Both write into the same folders, and one of them deletes what it has written."""
    with storage.slow(200, "rename"):
        place.orders.begin(5)
        copied = place.known(phase)
        outcome = place.orders.move(count)
    assert outcome["type"] == "ActionDone"
    assert not outcome["prepared"]
    place.check()
    assert state_partitions(place.query) == count
    place.check_clean(copied)
