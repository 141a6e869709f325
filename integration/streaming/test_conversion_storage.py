"""Tests of conversions on a disk that is full, and on storage that fails or is away in the middle.

The query goes on without a conversion, or says why not. As soon as the storage works, it starts with the
plugin, and plain Spark goes on or says why not.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from integration.streaming.conversions import FORMAT, KINDS, ORIGINAL, WORK, Steps
from integration.streaming.crashes import Case
from integration.streaming.driver import Driver
from integration.streaming.files import Inbox
from integration.streaming.test_conversion import AT_START
from integration.streaming.test_storage_away import STORAGE, Storage
from integration.streaming.test_storage_away import jvm as jvm
from integration.streaming.test_storage_away import storage as storage
from integration.streaming.totals import Totals
from integration.streaming.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

KB = 1 << 10
FIVE = {"spark.sql.shuffle.partitions": "5"}


class Place(Totals):
    """Totals with a checkpoint under a name that is no path of this machine's."""

    def __init__(self, inbox: Inbox, checkpoint: Path, name: str = "") -> None:
        super().__init__(inbox, checkpoint)
        self.name = name or str(checkpoint)

    def begin(self, spark: SparkSession) -> StreamingQuery:
        return self.start(spark, self.keep, self.name)

    def prepare(self, jvm: Driver, begun: bool) -> None:
        """Make a checkpoint with plain Spark, and more input; a micro-batch of that may have begun."""
        with jvm.session({**FIVE, **STORAGE}) as spark:
            self.inbox.put()
            query = self.begin(spark)
            query.processAllAvailable()
            query.stop()
            self.inbox.put()
            if begun:
                self.fail(spark)

    def fail(self, spark: SparkSession) -> None:
        def refuse(*_: object) -> None:
            raise ValueError("the sink is full")

        query = self.start(spark, refuse, self.name)
        eventually(lambda: not query.isActive, "its sink has failed")

    def copy(self, to: Path) -> Place:
        return Place(self.inbox, Path(shutil.copytree(self.checkpoint, to / "checkpoint")))

    def is_converted(self) -> bool:
        log = self.checkpoint / "offsets"
        newest = max((path for path in log.iterdir() if path.name.isdigit()), key=lambda path: int(path.name))
        return "RocksDBStateStoreProvider" in newest.read_text()

    def check(self, jvm: Driver, conf: dict[str, str]) -> str:
        """Run with these settings, and check the totals; return what a query says that does not run."""
        with jvm.session({**conf, **STORAGE}) as spark:
            query = self.begin(spark)
            try:
                query.processAllAvailable()
            except Exception as error:  # whatever it says is what the user is told
                return str(error)
            finally:
                query.stop()
        assert self.now == self.inbox.totals()
        return ""


# ---- A disk that fills


class Disk:
    """A small file system of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._filler = folder / "filler"

    def fill(self, left: int) -> None:
        """Leave this many bytes free."""
        self.free()
        stat = os.statvfs(self.folder)
        self._filler.write_bytes(bytes(max(stat.f_bavail * stat.f_frsize - left, 0)))

    def free(self) -> None:
        self._filler.unlink(missing_ok=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("needs the right to mount")
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(place)], check=True)
    try:
        yield Disk(place)
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.mark.parametrize(
    ("begun", "left"),
    [
        (begun, left) if (begun, left) == (False, 32) else pytest.param(begun, left, marks=pytest.mark.slow)
        for begun in (False, True)
        for left in (0, 16, 32, 48, 64, 80, 96)
    ],
)
def test_a_disk_that_fills(
    jvm: Driver, inbox: Inbox, disk: Disk, tmp_path: Path, begun: bool, left: int
) -> None:
    place = Place(inbox, disk.folder / "checkpoint")
    place.prepare(jvm, begun)
    disk.fill(left * KB)
    since = len(jvm.said())
    with jvm.session({**AT_START}) as spark:
        query = place.begin(spark)

        def is_decided() -> bool:
            return not query.isActive or place.now == inbox.totals() or "retrying its checkpoint" in said()

        def said() -> str:
            return "\n".join(jvm.said()[since:])

        eventually(is_decided, "it has run, has ended, or waits for the disk")
        query.stop()
        error = query.exception()
    if place.now != inbox.totals():
        assert "No space left on device" in (str(error) if error else said())
    (tmp_path / "elsewhere").mkdir()
    plain = place.copy(tmp_path / "elsewhere")
    disk.free()
    inbox.put()
    assert plain.check(jvm, {FORMAT: "2"} if plain.is_converted() else {}) == ""
    assert place.check(jvm, AT_START) == ""
    assert place.is_converted()
    assert not (place.checkpoint / WORK).exists()


# ---- Storage that fails or is away


def kind_of(begun: bool) -> str:
    return "replace" if begun else "append"


@pytest.mark.slow
@pytest.mark.parametrize("begun", [False, True], ids=["append", "replace"])
@pytest.mark.parametrize(
    "folder",
    [
        WORK,
        f"{WORK}/offsets",
        f"{WORK}/state",
        f"{WORK}/state/0/1",
        f"{WORK}/commits",
        ORIGINAL,
        f"{ORIGINAL}/commits",
    ],
)
def test_storage_that_fails_once(
    jvm: Driver, storage: Storage, inbox: Inbox, begun: bool, folder: str
) -> None:
    place = Place(inbox, storage.folder("checkpoint"), storage.place("checkpoint"))
    place.prepare(jvm, begun)
    storage.fail_once(folder)
    assert place.check(jvm, AT_START) == ""
    assert storage.has_failed()
    inbox.put()
    assert place.check(jvm, AT_START) == ""
    assert place.is_converted()
    assert not (place.checkpoint / WORK).exists()


@contextmanager
def away_from(storage: Storage, steps: Steps, step: str) -> Iterator[None]:
    """Take the storage away as soon as a conversion has done a step; it stays so for the block."""
    with storage.slow(150, "rename"):
        eventually(lambda: steps.done(step), step, every_s=0.0005)
        with storage.away():
            yield


AWAY = [(name, step) for name in ("append", "replace") for step in KINDS[name].steps]


@pytest.mark.parametrize(
    ("name", "step"),
    [
        pytest.param(*case, marks=[] if case == ("append", "first_moved") else pytest.mark.slow)
        for case in AWAY
    ],
)
def test_storage_that_is_away_in_the_middle(
    jvm: Driver, storage: Storage, inbox: Inbox, tmp_path: Path, name: str, step: str
) -> None:
    place = Place(inbox, storage.folder("checkpoint"), storage.place("checkpoint"))
    place.prepare(jvm, KINDS[name].begun)
    steps = Steps(Case(storage.folder("")), KINDS[name])
    since = len(jvm.said())
    with jvm.session({**AT_START, **STORAGE}) as spark:
        query = place.begin(spark)
        with away_from(storage, steps, step):
            eventually(
                lambda: not query.isActive or "retrying its checkpoint" in "\n".join(jvm.said()[since:]),
                "it waits for the storage, or has ended",
            )
            (tmp_path / "then").mkdir()
            stopped = place.copy(tmp_path / "then")
            reached = steps.last() or step
        if query.isActive:
            query.processAllAvailable()
            assert place.now == inbox.totals()
        else:
            assert "the storage is away" in str(query.exception())
        query.stop()
    # As if the driver had been stopped before the storage came back.
    (tmp_path / "plain").mkdir()
    plain = stopped.copy(tmp_path / "plain")
    conf, said = KINDS[name].plain(reached)
    error = plain.check(jvm, conf)
    assert f"[{said}" in error if said else error == ""
    for one in (place, stopped):
        assert one.check(jvm, AT_START) == ""
        assert not (one.checkpoint / WORK).exists()
