"""Files are read while another process writes them: journals through their parts, others line by line."""

from __future__ import annotations

import threading
from pathlib import Path

from spark_elastic.core.events import ExecutorAdded
from spark_elastic.runtime.entries import (
    Entry,
    EventEntry,
    Header,
    StateEntry,
)
from spark_elastic.runtime.journal import Journal
from spark_elastic.settings import Settings
from spark_elastic.wire import encode_event
from spark_elastic_tools.tail import GrowingFile, follow
from tests.unit.runtime.test_journal import crowd


def test_a_follower_sees_what_is_written_while_it_looks(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    done = threading.Event()
    seen: list[Entry] = []
    reader = threading.Thread(target=lambda: seen.extend(follow(path, done.is_set)))
    reader.start()
    journal = Journal(path, application="app-1", settings=Settings(), max_size=1 << 20)
    for event in crowd(50):
        journal.event(encode_event(event))
        journal.end_batch()
    journal.close()
    done.set()
    reader.join(10)
    assert [entry.event for entry in seen if isinstance(entry, EventEntry)] == crowd(50)


def test_a_follower_goes_on_in_the_next_part(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    journal = Journal(path, application="app-1", settings=Settings(), max_size=20_000)
    done = False
    seen: list[Entry] = []
    entries = follow(path, lambda: done)
    everybody = crowd(400)
    for first in range(0, 400, 50):
        batch = everybody[first : first + 50]
        for event in batch:
            journal.event(encode_event(event))
        journal.end_batch(lambda: StateEntry(state={}, own_events=0, last_event="s1"))
        while len(numbers(seen)) < first + 50:
            seen.append(next(entries))
    journal.close()
    done = True
    seen.extend(entries)
    assert numbers(seen) == list(range(1, 401))
    parts = [entry.part for entry in seen if isinstance(entry, Header)]
    assert len(parts) > 2
    assert parts == list(range(len(parts)))


def numbers(seen: list[Entry]) -> list[int]:
    return [
        int(entry.event.executor)
        for entry in seen
        if isinstance(entry, EventEntry) and isinstance(entry.event, ExecutorAdded)
    ]


def test_a_follower_of_nothing_ends_when_told(tmp_path: Path) -> None:
    assert list(follow(tmp_path / "none", lambda: True)) == []


def test_each_line_of_a_growing_file_is_read_once_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "log"
    growing = GrowingFile(path)
    assert growing.new_lines() == []
    path.write_bytes(b"one\ntwo \xff\nthr")
    assert growing.new_lines() == ["one", "two \N{REPLACEMENT CHARACTER}"]
    assert growing.new_lines() == []
    with path.open("ab") as file:
        file.write(b"ee\n\n")
    assert growing.new_lines() == ["three", ""]
