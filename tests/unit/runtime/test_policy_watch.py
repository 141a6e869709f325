"""Tests of the watch over the policy file: changes are reported once, the last valid file stays in force."""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

import pytest
from attrs import define, field
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_elastic import wire
from spark_elastic.core.bounds.declared import WantedBounds
from spark_elastic.core.events import Event, PolicyFileChanged, PolicyFileRefused
from spark_elastic.policy_file import MAX_SIZE, load_policy
from spark_elastic.runtime.policy_watch import LOOK_EVERY_MS, PolicyWatch

START = 1_700_000_000_000
NARROW = "version: 1\ndefaults: {upperBound: 2}\n"
WIDE = "version: 1\ndefaults: {upperBound: 8}\nqueries: {counts: {lowerBound: 2}}\n"
BAD = "version: 1\ndefaults: {upperBound: x}\n"
WORSE = "version: 2\n"


@define
class Desk:
    """A file, a watch over it, and a clock that advances one second with each look."""

    path: Path
    now: int = START
    watch: PolicyWatch = field(init=False)

    def __attrs_post_init__(self) -> None:
        ids = count(1)
        self.watch = PolicyWatch(self.path, lambda: f"r{next(ids)}")

    def write(self, text: str | None) -> None:
        """Replace the file by this text; None removes it."""
        if text is None:
            self.path.unlink(missing_ok=True)
            return
        new = self.path.with_suffix(".new")
        new.write_text(text)
        new.replace(self.path)

    def look(self) -> PolicyFileChanged | PolicyFileRefused | None:
        self.now += LOOK_EVERY_MS
        return self.watch.poll(self.now)

    def after(self, text: str | None) -> PolicyFileChanged | PolicyFileRefused | None:
        self.write(text)
        return self.look()


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "policy.yaml")


def refused(event: Event | None) -> str:
    assert isinstance(event, PolicyFileRefused)
    (error,) = event.errors
    return error


def test_the_file_is_read_at_the_start_and_when_it_changes(desk: Desk) -> None:
    assert desk.after(NARROW) == PolicyFileChanged(
        id="r1", at=START + 1_000, path=str(desk.path), defaults=WantedBounds(upper=2)
    )
    assert desk.look() is None
    assert desk.after(WIDE) == PolicyFileChanged(
        id="r2",
        at=START + 3_000,
        path=str(desk.path),
        defaults=WantedBounds(upper=8),
        bounds={"counts": {"shuffle": WantedBounds(lower=2, upper=8)}},
    )


def test_a_look_is_taken_at_most_once_a_second(desk: Desk) -> None:
    desk.write(NARROW)
    assert desk.watch.poll(START) is not None
    desk.write(WIDE)
    assert desk.watch.poll(START + 999) is None
    assert desk.watch.poll(START + 1_000) is not None


def test_a_clock_that_was_set_back_does_not_end_the_watch(desk: Desk) -> None:
    desk.write(NARROW)
    desk.watch.poll(START)
    desk.write(WIDE)
    assert desk.watch.poll(START - 3_600_000) is not None


def test_a_change_that_says_the_same_is_none(desk: Desk) -> None:
    desk.after(NARROW)
    assert desk.after(NARROW) is None
    assert desk.after("# what for\n" + NARROW) is None


@pytest.mark.parametrize("change", ["time", "size", "file"])
def test_a_change_shows_in_time_size_or_file(desk: Desk, change: str) -> None:
    desk.after(NARROW)
    was = desk.path.stat()
    text = NARROW.replace("2", "3") + ("#" if change == "size" else "")
    if change == "file":
        desk.write(text)
    else:
        desk.path.write_text(text)
    os.utime(desk.path, ns=(0, was.st_mtime_ns + (change == "time")))
    assert isinstance(desk.look(), PolicyFileChanged)


def test_a_file_that_looks_the_same_is_not_read(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.after(NARROW)
    monkeypatch.setattr(Path, "open", lambda *_: pytest.fail("read again"))
    assert desk.look() is None


def test_a_refusal_is_said_once_and_what_was_right_stays(desk: Desk) -> None:
    desk.after(NARROW)
    assert "defaults.upperBound is 'x'" in refused(desk.after(BAD))
    assert desk.after(BAD) is None
    assert "version is '2'" in refused(desk.after(WORSE))
    assert desk.watch.policy == load_policy(NARROW)
    # The file is valid again, which is reported although its content is not new.
    assert isinstance(desk.after(NARROW), PolicyFileChanged)
    assert isinstance(desk.after(BAD), PolicyFileRefused)


def test_a_file_that_was_never_there_is_refused_until_it_comes(desk: Desk) -> None:
    assert refused(desk.look()) == (
        f"{desk.path} is not there: create it, or remove spark.elastic.policyFile"
    )
    assert desk.look() is None
    assert isinstance(desk.after(NARROW), PolicyFileChanged)


def test_a_file_that_is_taken_away_stays_in_force(desk: Desk) -> None:
    desk.after(NARROW)
    assert refused(desk.after(None)) == (
        f"{desk.path} is gone, what it said last stays in force: put it back to change that"
    )
    assert desk.look() is None
    assert desk.watch.policy == load_policy(NARROW)
    assert isinstance(desk.after(NARROW), PolicyFileChanged)


def test_what_is_no_file_is_refused(desk: Desk) -> None:
    desk.path.mkdir()
    assert "is no file: name a file in spark.elastic.policyFile" in refused(desk.look())
    desk.path.rmdir()
    # Opening a pipe would block forever.
    os.mkfifo(desk.path)
    assert desk.look() is None
    desk.path.unlink()
    inside = Desk(desk.path / "policy.yaml")
    desk.path.write_text("a file where a folder should be")
    assert "is not there" in refused(inside.look())


def test_a_file_that_may_not_be_read_is_refused(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.write(NARROW)

    def forbidden(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", forbidden)
        assert refused(desk.look()).endswith(
            "cannot be read: Permission denied: let the driver's user read it"
        )
        assert desk.look() is None
    assert isinstance(desk.look(), PolicyFileChanged)


def test_only_as_much_is_read_as_is_allowed(desk: Desk) -> None:
    assert "is too long" in refused(desk.after("#" * (2 * MAX_SIZE)))


class Busy(type(Path())):  # type: ignore[misc]  # the class of paths of this system
    """A file that is written to whenever it is opened, as long as there are `edits`."""

    edits: list[str]

    def open(self, *args: Any, **kwargs: Any) -> IO[Any]:
        file: IO[Any] = super().open(*args, **kwargs)
        if self.edits:
            edit = self.edits.pop(0)
            new = Path(str(self) + ".new")
            new.write_text(edit)
            new.replace(Path(str(self)))
        return file


def test_a_file_that_changes_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    path = Busy(tmp_path / "policy.yaml")
    Path(path).write_text(BAD)
    path.edits = [WORSE, WIDE]
    desk = Desk(path)
    event = desk.look()
    assert isinstance(event, PolicyFileChanged)
    assert event.defaults == WantedBounds(upper=8)


def test_a_file_that_does_not_come_to_rest_is_left_for_the_next_look(tmp_path: Path) -> None:
    path = Busy(tmp_path / "policy.yaml")
    Path(path).write_text(BAD)
    path.edits = [WORSE, BAD, WORSE, NARROW]
    desk = Desk(path)
    assert desk.look() is None
    assert isinstance(desk.look(), PolicyFileChanged)


@settings(max_examples=30)
@given(contents=st.lists(st.sampled_from([NARROW, WIDE, BAD, WORSE, None]), max_size=8))
def test_what_is_said_last_is_what_is_there(contents: list[str | None]) -> None:
    with TemporaryDirectory() as folder:
        desk = Desk(Path(folder) / "policy.yaml")
        good: str | None = None
        before: str | None = ""
        for content in contents:
            event = desk.after(content)
            if content in (NARROW, WIDE):
                good = content
            assert isinstance(event, PolicyFileChanged) == (content == good is not None and content != before)
            assert desk.watch.policy == (None if good is None else load_policy(good))
            assert (event is None) == (content == before)
            before = content


@pytest.mark.parametrize("text", [WIDE, BAD])
def test_what_is_said_can_be_journaled(desk: Desk, text: str) -> None:
    event = desk.after(text)
    assert event is not None
    assert wire.decode_event(wire.encode_event(event)) == event
