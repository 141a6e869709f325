"""Tests of the journal: written, bounded, cut off, read, followed, replayed."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path

import pytest

from spark_elastic.core.actions import Rescale
from spark_elastic.core.events import CancelRequested, Event, TimerFired
from spark_elastic.runtime.entries import (
    ActionsEntry,
    Entry,
    EventEntry,
    Header,
    StateEntry,
    Unreadable,
    read_journal,
)
from spark_elastic.runtime.journal import Journal, open_journal
from spark_elastic.runtime.loop import Loop
from spark_elastic.runtime.replay import replay
from spark_elastic.settings import Settings
from spark_elastic.wire import encode_event
from tests.unit.runtime.memory_gateway import MemoryGateway, SteppedClock
from tests.unit.runtime.support import START, CountingPolicy, added, snapshot


def record(folder: Path, *events: Event, extra: dict[str, str] | None = None) -> Path:
    """Run a loop over `events` with its journal in `folder`, and return the journal."""
    conf = {"spark.elastic.journal.dir": str(folder), **(extra or {})}
    clock = SteppedClock(START)
    gateway = MemoryGateway(clock, end=max(event.at for event in events) + 5_000)
    gateway.offer(snapshot(conf), *events)
    Loop(gateway, clock, CountingPolicy, open_journal).run()
    return folder / "spark-elastic-app-1.jsonl"


def entries(path: Path) -> list[Entry]:
    return [entry for _, entry in read_journal(path)]


def crowd(count: int) -> list[Event]:
    return [added(number, START + 10 * number) for number in range(1, count + 1)]


def test_a_journal_begins_with_its_header_and_holds_each_event_with_its_actions(tmp_path: Path) -> None:
    path = record(tmp_path / "new" / "folder", added(1, START + 100))
    header, first, configure, arrival, timer, fired, change = entries(path)
    assert isinstance(header, Header)
    assert (header.application, header.part) == ("app-1", 0)
    assert header.settings["spark.elastic.schedulerMode"] == "reactive"
    assert isinstance(first, EventEntry)
    assert isinstance(arrival, EventEntry)
    assert isinstance(fired, EventEntry)
    assert all(isinstance(entry, ActionsEntry) for entry in (configure, timer, change))


def test_a_replay_decides_the_same(tmp_path: Path) -> None:
    path = record(tmp_path, *crowd(20))
    result = replay(read_journal(path), CountingPolicy)
    assert result.difference is None
    assert (result.runs, result.events, result.actions, result.left_out) == (1, 22, 22, 0)


def test_a_replay_names_the_first_difference(tmp_path: Path) -> None:
    path = record(tmp_path, *crowd(3))
    path.write_text(path.read_text().replace('"partitions":3', '"partitions":4'))
    difference = replay(read_journal(path), CountingPolicy).difference
    assert difference is not None
    assert difference.place.endswith(":10")
    assert isinstance(difference.event, TimerFired)
    assert difference.event.id == "r1"
    assert difference.recorded == Rescale(id="a5", cause="r1", query="q", run="r", partitions=4)
    assert difference.replayed == Rescale(id="a5", cause="r1", query="q", run="r", partitions=3)


def test_a_replay_notices_missing_and_additional_actions(tmp_path: Path) -> None:
    path = record(tmp_path, *crowd(3))
    lines = path.read_text().splitlines(keepends=True)
    without = tmp_path / "without.jsonl"
    without.write_text("".join(lines[:4] + lines[5:]))
    missing = replay(read_journal(without), CountingPolicy).difference
    assert missing is not None
    assert missing.recorded is None
    assert missing.replayed is not None
    twice = tmp_path / "twice.jsonl"
    actions = json.loads(lines[4])["actions"]
    twice.write_text("".join([*lines[:4], json.dumps({"actions": actions * 2}) + "\n", *lines[5:]]))
    more = replay(read_journal(twice), CountingPolicy).difference
    assert more is not None
    assert more.recorded is not None
    assert more.replayed is None


def test_a_replay_reports_what_the_policy_raises(tmp_path: Path) -> None:
    path = record(tmp_path, added(1, START + 1))
    cancel = CancelRequested(id="s9", at=START + 9_000, query="q", by="somebody")
    with path.open("a") as file:
        file.write(json.dumps({"event": encode_event(cancel)}) + "\n")
    difference = replay(read_journal(path), CountingPolicy).difference
    assert difference is not None
    assert difference.error == "RuntimeError: this policy ends no queries"


def test_a_new_process_appends_its_own_run_also_after_a_cut_line(tmp_path: Path) -> None:
    path = record(tmp_path, *crowd(2))
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    record(tmp_path, *crowd(4))
    result = replay(read_journal(path), CountingPolicy)
    assert result.difference is None
    assert (result.runs, result.events) == (2, 10)


def test_a_cut_line_at_the_end_is_left_out(tmp_path: Path) -> None:
    path = record(tmp_path, *crowd(2))
    path.write_bytes(path.read_bytes()[:-20])
    assert replay(read_journal(path), CountingPolicy).difference is None


def test_the_room_is_bounded_and_two_parts_are_replayed_together(tmp_path: Path) -> None:
    path = record(tmp_path, *crowd(230), extra={"spark.elastic.journal.maxSize": "64k"})
    older = path.with_name(path.name + ".1")
    assert older.exists()
    headers = [entry for entry in entries(path) if isinstance(entry, Header)]
    assert [header.part for header in headers] == [0, 1]
    result = replay(read_journal(path), CountingPolicy)
    assert result.difference is None
    assert result.left_out == 0
    assert result.events == 232


def long_journal(folder: Path) -> Path:
    """Record enough that the first part is deleted and that the last part has events.

    The header names the path, so its length decides whether the last event ends a part.
    """
    for count in (700, 720):
        for file in folder.iterdir():
            file.unlink()
        path = record(folder, *crowd(count), extra={"spark.elastic.journal.maxSize": "64k"})
        if '{"event"' in path.read_text():
            break
    sizes = [file.stat().st_size for file in folder.iterdir()]
    assert len(sizes) == 2
    assert sum(sizes) < 66 << 10
    first, second = (entry.part for entry in entries(path) if isinstance(entry, Header))
    assert (first > 0, second) == (True, first + 1)
    last = [entry for entry in entries(path) if isinstance(entry, EventEntry)][-1]
    assert last.event.id == "r1"
    return path


def test_each_part_can_be_replayed_by_itself(tmp_path: Path) -> None:
    path = long_journal(tmp_path)
    both = replay(read_journal(path), CountingPolicy)
    assert (both.difference, both.runs, both.left_out) == (None, 1, 0)
    path.with_name(path.name + ".1").unlink()
    one = replay(read_journal(path), CountingPolicy)
    assert (one.difference, one.runs, one.left_out) == (None, 1, 0)
    assert 0 < one.events < both.events


def test_a_part_is_not_replayed_from_another_state(tmp_path: Path) -> None:
    path = long_journal(tmp_path)
    older = path.with_name(path.name + ".1")
    older.write_text(re.sub(r'"executors":\d+', '"executors":3', older.read_text(), count=1))
    assert replay(read_journal(path), CountingPolicy).difference is not None


def test_without_beginning_and_state_a_journal_can_be_read_but_not_replayed(tmp_path: Path) -> None:
    path = long_journal(tmp_path)
    older = path.with_name(path.name + ".1")
    for file in (path, older):
        lines = file.read_text().splitlines(keepends=True)
        file.write_text("".join(line for line in lines if not line.startswith('{"state"')))
    with pytest.raises(Unreadable, match="the start of this run is missing, and its state was too large"):
        replay(read_journal(path), CountingPolicy)


def test_a_state_of_another_form_is_refused_with_the_reason(tmp_path: Path) -> None:
    path = long_journal(tmp_path)
    for file in (path, path.with_name(path.name + ".1")):
        file.write_text(file.read_text().replace('"executors":', '"people":'))
    with pytest.raises(Unreadable, match=r"\.1:2: the saved state cannot be loaded: nobody has counted"):
        replay(read_journal(path), CountingPolicy)


def test_a_state_that_is_too_large_is_left_out_with_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "j.jsonl"
    journal = Journal(path, application="app-1", settings=Settings(), max_size=40_000)
    entry = StateEntry(state={"words": "x" * 6_000}, own_events=0, last_event="s1")
    with caplog.at_level(logging.WARNING, "spark_elastic"):
        for event in crowd(600):
            journal.event(encode_event(event))
            journal.end_batch(lambda: entry)
    journal.close()
    (message,) = caplog.messages
    assert "raise spark.elastic.journal.maxSize" in message
    assert not [entry for entry in entries(path) if isinstance(entry, StateEntry)]


def test_a_state_is_written_now_and_then(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    journal = Journal(path, application="app-1", settings=Settings(), max_size=64 << 20)
    entry = StateEntry(state={"executors": 0}, own_events=7, last_event="s1")
    (event,) = crowd(1)
    wide = {**encode_event(event), "host": "h" * 100_000}
    for _ in range(100):
        journal.event(wide)
        journal.end_batch(lambda: entry)
    journal.close()
    kinds = [type(entry) for entry in entries(path)]
    # One per megabyte.
    assert kinds.count(StateEntry) == 9
    assert kinds.index(StateEntry) == pytest.approx(11, abs=1)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("hello\nworld\n", ":1: no line of a journal"),
        ("[]\n{}\n", ":1: no line of a journal"),
        ('{"journal": 2}\n', "format 2, this version reads format 1"),
        ('{"event": {"type": "MoonRose"}}\n', "unknown event type 'MoonRose'"),
        (
            '{"event": {"type": "TimerFired", "id": "r1", "at": 1, "timer": "t"}}\n',
            "must start with its header",
        ),
    ],
)
def test_what_is_no_journal_is_refused(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "some.jsonl"
    path.write_text(text)
    with pytest.raises(Unreadable, match=says):
        replay(read_journal(path), CountingPolicy)


def test_a_missing_file_and_a_binary_one_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="No such file"):
        list(read_journal(tmp_path / "none"))
    (tmp_path / "binary").write_bytes(b"\xff\xfe\n")
    with pytest.raises(Unreadable, match="no text"):
        list(read_journal(tmp_path / "binary"))


def test_a_disk_error_ends_the_journal_with_one_warning_and_not_the_policy(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    in_the_way = tmp_path / "file"
    in_the_way.write_text("")
    with caplog.at_level(logging.WARNING, "spark_elastic"):
        record(in_the_way, *crowd(3))
    (message,) = caplog.messages
    assert message.startswith("decision journal stopped")
    assert str(in_the_way) in message


def test_a_full_disk_ends_the_journal_with_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this system has no /dev/full")
    journal = Journal(full, max_size=1 << 20)
    with caplog.at_level(logging.WARNING, "spark_elastic"):
        for _ in range(3):
            journal.event(encode_event(added(1, START)))
            journal.end_batch()
    journal.close()
    assert len(caplog.messages) == 1
    assert journal.path is None


class Full:
    """A file on a full disk."""

    def write(self, line: bytes) -> int:
        raise OSError(28, "No space left on device")

    def close(self) -> None:
        pass


def give_up(journal: Journal) -> None:
    assert journal._file is not None
    journal._file.close()
    journal._file = Full()  # type: ignore[assignment]
    journal.event(encode_event(added(1, START)))
    assert journal.failed


def reopened(path: Path) -> Journal:
    return Journal(path, application="app-1", settings=Settings(), max_size=1 << 20)


def test_a_journal_that_is_given_up_is_set_aside_and_can_be_read_there(tmp_path: Path) -> None:
    path = long_journal(tmp_path)
    before = entries(path)
    give_up(reopened(path))
    ended = path.with_name(path.name + ".ended")
    assert sorted(tmp_path.iterdir()) == [ended, ended.with_name(ended.name + ".1")]
    assert entries(ended)[: len(before)] == before
    assert replay(read_journal(ended), CountingPolicy).difference is None


def test_one_that_is_given_up_between_two_parts_can_be_read_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = long_journal(tmp_path)
    journal = Journal(path, application="app-1", settings=Settings(), max_size=1 << 10)

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Journal, "_open", fails)
    journal.end_batch(lambda: StateEntry(state={}, own_events=0, last_event="s1"))
    assert journal.failed
    ended = path.with_name(path.name + ".ended")
    assert list(tmp_path.iterdir()) == [ended]
    assert isinstance(entries(ended)[-1], Header)


def test_of_two_that_are_given_up_the_larger_is_kept(tmp_path: Path) -> None:
    path = long_journal(tmp_path)
    give_up(reopened(path))
    ended = path.with_name(path.name + ".ended")
    kept = entries(ended)
    give_up(reopened(path))
    assert sorted(tmp_path.iterdir()) == [ended, ended.with_name(ended.name + ".1")]
    assert entries(ended) == kept
    path.write_bytes(b"x" * (1 << 20))
    give_up(reopened(path))
    assert list(tmp_path.iterdir()) == [ended]
    assert ended.stat().st_size > 1 << 20


def test_what_was_written_can_be_read_after_each_batch(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    journal = Journal(path, application="app-1", settings=Settings(), max_size=1 << 20)
    journal.event(encode_event(added(1, START)))
    journal.end_batch()
    assert len(entries(path)) == 2
    journal.close()
    journal.close()
