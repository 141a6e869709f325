"""What is delivered at a steady rate, as from an upstream system; parts of a table above all."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

# The arrival time of the last part lies so far ahead that every window before it is closed.
_LAST_ARRIVAL_AHEAD_S = 3600.0


class Steady(ABC):
    """A thread that delivers something every `interval_s` seconds, until it is stopped."""

    def __init__(self, *, interval_s: float) -> None:
        self._interval_s = interval_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="feed", daemon=True)

    def start(self) -> None:
        """Begin to deliver; the first time at once."""
        self._thread.start()

    def pace(self, interval_s: float) -> None:
        """Deliver each `interval_s` seconds from the next one on."""
        self._interval_s = interval_s

    def stop(self) -> None:
        """Deliver nothing more; returns once all has arrived, and leaves no sign of an end."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()

    @abstractmethod
    def deliver(self) -> None:
        """Deliver the next one."""

    def _run(self) -> None:
        due = time.monotonic()
        while not self._ended.wait(max(0.0, due - time.monotonic())):
            self.deliver()
            # After a stall the rate continues from now: a burst would hide what the stall did.
            due = max(due + self._interval_s, time.monotonic())


class Delivery(Steady):
    """Delivers `parts` one by one, over and over, until it is finished.

    Others may deliver too meanwhile: parts get their numbers, and times of arrival, one after the other.
    """

    def __init__(self, parts: Sequence[Path], *, interval_s: float) -> None:
        if not parts:
            raise ValueError("there are no files to feed")
        super().__init__(interval_s=interval_s)
        self._parts = parts
        self._one = threading.Lock()
        self.delivered = 0

    def finish(self) -> None:
        """Deliver one last part with a late time of arrival; returns once all has arrived."""
        self.stop()
        self.deliver(arrival_s=time.time() + _LAST_ARRIVAL_AHEAD_S)

    def deliver(self, *, arrival_s: float | None = None) -> None:
        """Deliver the next part, by default with now as its time of arrival (epoch seconds)."""
        with self._one:
            part = self._parts[self.delivered % len(self._parts)]
            self._deliver(part, self.delivered, time.time() if arrival_s is None else arrival_s)
            self.delivered += 1

    @abstractmethod
    def _deliver(self, part: Path, number: int, arrival_s: float) -> None:
        """Deliver a part under a number that no other has."""
