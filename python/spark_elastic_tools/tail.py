"""Read files to which another process appends lines.

A journal is followed through its parts: the file stays open, so that the rest of a part is read after the
next one has taken its name.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Protocol

from spark_elastic.runtime.entries import Entry, Unreadable, parse_lines


class GrowingFile:
    """Reads each line of a file once, so that frequent polling takes no CPU time from a measurement."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0

    def new_lines(self) -> list[str]:
        """Return the lines since the last call; an incomplete line is left for the next call.

        There are none if the file does not exist yet. Bytes that are not UTF-8 are replaced.
        """
        if not self._path.is_file():
            return []
        with self._path.open("rb") as file:
            file.seek(self._read)
            whole, end, _ = file.read().rpartition(b"\n")
        self._read += len(whole + end)
        return whole.decode(errors="replace").split("\n") if end else []


_POLL_S = 0.05


def follow(path: Path, stop: Callable[[], bool] = lambda: False) -> Iterator[Entry]:
    """Yield the entries of a journal from its start, and each new one soon after it is written.

    Waits for a file that does not exist yet, and continues in the next part when one starts. Ends once `stop`
    returns True and everything written has been read. A `Player` holds the scheduler that the entries lead
    to. Raises Unreadable.
    """
    return (entry for _, entry in parse_lines(_tail(path, stop)))


def _tail(path: Path, stop: Callable[[], bool]) -> Iterator[tuple[str, str]]:
    """Yield complete lines with their places."""
    while True:
        # Called before reading, so that everything written before the stop is read.
        ends = stop()
        if path.exists():
            break
        if ends:
            return
        time.sleep(_POLL_S)
    file = path.open(encoding="utf-8", newline="\n")
    number, line = 0, ""
    try:
        while True:
            ends = stop()
            replaced = _replaced(path, file)
            while piece := file.readline():
                line += piece
                if line.endswith("\n"):
                    number += 1
                    yield f"{path}:{number}", line
                    line = ""
            if replaced:
                file.close()
                file = path.open(encoding="utf-8", newline="\n")
                number, line = 0, ""
            elif ends:
                return
            else:
                time.sleep(_POLL_S)
    finally:
        file.close()


def _replaced(path: Path, file: IO[str]) -> bool:
    """Return whether `path` is another file now; between two parts it is missing for a moment."""
    try:
        return not os.path.samestat(os.stat(path), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False


class Reader(Protocol):
    """Processes the entries of a journal."""

    def read(self, entry: Entry) -> None:
        """Process one entry. Raises Unreadable."""


class JournalTail:
    """A thread that follows a journal and hands the entries it has read to readers on request."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ended = threading.Event()
        self._entries: queue.SimpleQueue[Entry] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self.error: Unreadable | None = None
        self._thread.start()

    def pump(self, *readers: Reader) -> None:
        """Pass each of `readers` all entries read since the last call. Raises Unreadable."""
        while not self._entries.empty():
            entry = self._entries.get()
            for reader in readers:
                reader.read(entry)

    def stop(self) -> None:
        """Read what has been written so far, then end the thread."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            for entry in follow(self._path, self._ended.is_set):
                self._entries.put(entry)
        except Unreadable as error:
            self.error = error
