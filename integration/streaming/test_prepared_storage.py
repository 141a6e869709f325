"""Tests of a prepared move on a disk that is full, and on storage that fails once or stays away.

The query goes on. Its move is prepared again, or made in a pause; with the next start nothing is left of a
copy.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.streaming.driver import Driver
from integration.streaming.files import Inbox
from integration.streaming.prepared import PREFIX, Copied, copies
from integration.streaming.test_conversion_storage import KB, Disk
from integration.streaming.test_conversion_storage import disk as disk
from integration.streaming.test_prepared_hazards import Place, placed
from integration.streaming.test_prepared_hazards import place as place
from integration.streaming.test_storage_away import Storage
from integration.streaming.test_storage_away import jvm as jvm
from integration.streaming.test_storage_away import storage as storage
from integration.streaming.waiting import eventually
from integration.streaming.world import state_partitions

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

# Parts of names of files that only the copy reads or writes while the query waits for input.
OF_COPY = (PREFIX, "state/0/_metadata", "/placed", "state/0/4", "/SSTs/", "_metadata/schema")
OF_SWITCH = ("/placed", "/used", "/offsets/.", "/commits/.")
QUICK = ("/commits/.",)
AWAY = "the storage is away"


def each(parts: tuple[str, ...]) -> pytest.MarkDecorator:
    marks = {part: () if part in QUICK else (pytest.mark.slow,) for part in parts}
    return pytest.mark.parametrize("part", [pytest.param(part, marks=marks[part]) for part in parts])


def said(place: Place, why: str) -> bool:
    """Return whether the driver's log has a reason. The outcome of what fails in tasks has Spark's words."""
    return any(why in line for line in place.world.driver.said())


def traces(place: Place) -> list[Copied]:
    return [Copied.of(folder) for folder in copies(place.checkpoint)]


def check_next_start(place: Place, copied: list[Copied]) -> None:
    """Check that the next start leaves nothing, and that its state can be moved."""
    place.query.stop()
    place.again()
    place.check()
    place.check_clean(copied)
    place.check_moves(7)


# ---- Failing once


@each(OF_COPY)
def test_storage_fails_once_while_a_move_is_prepared(place: Place, storage: Storage, part: str) -> None:
    storage.fail_next(part)
    place.orders.begin(5)
    outcome = place.orders.outcome()
    assert storage.has_failed()
    assert outcome["type"] == "ActionDone" or said(place, AWAY)
    place.check()
    if outcome["type"] == "ActionFailed":
        place.check_clean([])
    place.check_moves(5)
    check_next_start(place, [])


@pytest.mark.slow
def test_storage_fails_once_while_changes_are_followed(place: Place, storage: Storage) -> None:
    place.orders.prepare(5)
    copied = traces(place)
    storage.fail_next(f"_{copied[0].token}-")
    place.feed(3)
    eventually(storage.has_failed, "it has failed")
    outcome = place.orders.move(5)
    assert outcome["type"] == "ActionDone"
    assert not outcome["prepared"]
    place.check()
    place.check_clean(copied)
    check_next_start(place, copied)


@each(OF_SWITCH)
def test_storage_fails_once_in_the_switch(place: Place, storage: Storage, part: str) -> None:
    place.orders.prepare(5)
    copied = traces(place)
    storage.fail_next(part)
    outcome = place.orders.move(5)
    assert storage.has_failed()
    place.check()
    if outcome["type"] == "ActionDone":
        assert not outcome["prepared"]
        assert state_partitions(place.query) == 5
    else:
        assert AWAY in outcome["error"]
        assert state_partitions(place.query) == 2
    place.check_clean(copied)
    check_next_start(place, copied)


@pytest.mark.slow
def test_what_is_left_of_a_copy_in_use_cannot_be_deleted(place: Place, storage: Storage) -> None:
    place.orders.prepare(5)
    place.feed(2)
    with storage.failing("delete"):
        assert place.orders.move(5)["prepared"]
        eventually(
            lambda: any("the next start removes a copy" in line for line in place.world.driver.said()),
            "it could not be deleted",
        )
    place.check()
    place.query.stop()
    place.again()
    place.check()
    assert copies(place.checkpoint) == []
    place.check_moves(3)


# ---- Staying away


@pytest.mark.slow
@each(OF_COPY)
def test_storage_stays_away_while_a_move_is_prepared(place: Place, storage: Storage, part: str) -> None:
    with storage.without(part):
        place.orders.begin(5)
        assert place.orders.outcome()["type"] == "ActionFailed"
        assert said(place, AWAY)
        if part in (PREFIX, "/placed", "state/0/4"):  # micro-batches do not need it
            place.check()
    copied = traces(place)
    place.check()
    check_next_start(place, copied)


@pytest.mark.slow
@each(OF_SWITCH)
def test_storage_stays_away_in_the_switch(place: Place, storage: Storage, part: str) -> None:
    place.orders.prepare(5)
    copied = traces(place)
    since = len(place.world.driver.said())
    with storage.without(part):
        place.orders.order_move(5)
        eventually(storage.has_failed, "it has failed")
        if part in ("/offsets/.", "/commits/."):

            def retries() -> bool:
                return any("retrying its checkpoint" in line for line in place.world.driver.said()[since:])

            def has_outcome() -> bool:
                return place.world.policy.outcome("Rescale", place.query.id) is not None

            eventually(lambda: retries() or has_outcome(), "it waits for the storage, or has given up")
        else:
            place.orders.outcome("Rescale")
            place.check()
    place.orders.outcome("Rescale")
    place.check()
    check_next_start(place, copied)


# ---- A disk that fills


@pytest.fixture
def on_disk(jvm: Driver, disk: Disk, inbox: Inbox, tmp_path: Path) -> Iterator[Place]:
    jvm.jvm.java.lang.System.setProperty("away", str(disk.folder / "away"))
    with placed(jvm, Storage(disk.folder), inbox, tmp_path, {}) as found:
        yield found


@pytest.mark.slow
@pytest.mark.parametrize("left", range(0, 161, 16))
def test_a_disk_that_fills_while_a_move_is_prepared(on_disk: Place, disk: Disk, left: int) -> None:
    disk.fill(left * KB)
    on_disk.orders.begin(5)
    outcome = on_disk.orders.outcome()
    copied = traces(on_disk)
    disk.free()
    assert outcome["type"] == "ActionDone" or said(on_disk, "No space left on device")
    on_disk.check()
    if outcome["type"] == "ActionDone":
        copied = []  # the next move uses it
    else:
        on_disk.check_clean(copied)
    on_disk.check_moves(5)
    check_next_start(on_disk, copied)


@pytest.mark.slow
@pytest.mark.parametrize("left", range(0, 33, 4))
def test_a_disk_that_is_full_in_the_switch(on_disk: Place, disk: Disk, left: int) -> None:
    on_disk.orders.prepare(5)
    copied = traces(on_disk)
    since = len(on_disk.world.driver.said())
    disk.fill(left * KB)
    on_disk.orders.order_move(5)

    def is_decided() -> bool:
        said = on_disk.world.driver.said()[since:]
        outcome = on_disk.world.policy.outcome("Rescale", on_disk.query.id)
        return outcome is not None or any("retrying its checkpoint" in line for line in said)

    eventually(is_decided, "it is done, has been given up, or waits for the disk")
    disk.free()
    outcome = on_disk.orders.outcome("Rescale")
    on_disk.check()
    if outcome["type"] == "ActionDone":
        assert state_partitions(on_disk.query) == 5
    else:
        check_next_start(on_disk, copied)
