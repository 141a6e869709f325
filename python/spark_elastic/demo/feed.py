"""Files that arrive in a folder at a steady rate, as from an upstream system."""

from __future__ import annotations

import os
import shutil
import threading
import time
from collections.abc import Sequence
from pathlib import Path

# The arrival time of the last file lies so far ahead that every window before it is closed.
_LAST_ARRIVAL_AHEAD_S = 3600.0


class Feed:
    """A thread that copies `parts` one by one, over and over, into `incoming` until it is finished.

    A file appears whole (written elsewhere, then renamed), and its modification time is its time of arrival.
    """

    def __init__(self, parts: Sequence[Path], incoming: Path, *, interval_s: float) -> None:
        if not parts:
            raise ValueError("there are no files to feed")
        self._parts = parts
        self._incoming = incoming
        self._staging = incoming.with_name(f"{incoming.name}-staging")
        self._interval_s = interval_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)
        self.delivered = 0
        self._incoming.mkdir(parents=True)
        self._staging.mkdir()

    def start(self) -> None:
        """Begin to deliver; the first file arrives at once."""
        self._thread.start()

    def stop(self) -> None:
        """Deliver nothing more; no sign of an end is left."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    def finish(self) -> None:
        """Deliver one last file with a late time of arrival, then the marker `_done`."""
        self.stop()
        self.deliver(arrival_s=time.time() + _LAST_ARRIVAL_AHEAD_S)
        (self._incoming / "_done").touch()

    def deliver(self, *, arrival_s: float | None = None) -> Path:
        """Deliver the next file, by default with now as its time of arrival; returns its path."""
        part = self._parts[self.delivered % len(self._parts)]
        name = f"lineitem-{self.delivered:06d}.parquet"
        staged = self._staging / name
        shutil.copyfile(part, staged)
        if arrival_s is not None:
            os.utime(staged, (arrival_s, arrival_s))
        target = self._incoming / name
        staged.rename(target)
        self.delivered += 1
        return target

    def _run(self) -> None:
        due = time.monotonic()
        while not self._ended.wait(max(0.0, due - time.monotonic())):
            self.deliver()
            # After a stall the rate goes on from now: a burst would hide what the stall did.
            due = max(due + self._interval_s, time.monotonic())
