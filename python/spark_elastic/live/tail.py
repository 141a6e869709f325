"""Read a journal in the background while it is written."""

from __future__ import annotations

import queue
import threading
from pathlib import Path
from typing import Protocol

from spark_elastic.runtime.entries import Entry, Unreadable
from spark_elastic.runtime.follow import follow


class Reader(Protocol):
    """Follows a journal."""

    def read(self, entry: Entry) -> None:
        """Follow one entry. Raises Unreadable."""


class JournalTail:
    """A thread that follows a journal, and hands what it has read to readers when asked to."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ended = threading.Event()
        self._entries: queue.SimpleQueue[Entry] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self.error: Unreadable | None = None
        self._thread.start()

    def pump(self, *readers: Reader) -> None:
        """Let each of `readers` follow all that was read since the last time. Raises Unreadable."""
        while not self._entries.empty():
            entry = self._entries.get()
            for reader in readers:
                reader.read(entry)

    def stop(self) -> None:
        """Read what has been written up to now, then end."""
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            for entry in follow(self._path, self._ended.is_set):
                self._entries.put(entry)
        except Unreadable as error:
            self.error = error
