"""The timers that the scheduler has set."""

from __future__ import annotations

import heapq


class Timers:
    """Named wake-ups in the order of their time (epoch ms); setting a name again replaces it."""

    def __init__(self) -> None:
        self._at: dict[str, int] = {}
        # Replaced and cancelled timers stay in the heap until they come up, and are told by `_at`.
        self._heap: list[tuple[int, str]] = []

    def set(self, name: str, at: int) -> None:
        """Let `name` come due at `at`."""
        self._at[name] = at
        heapq.heappush(self._heap, (at, name))

    def cancel(self, name: str) -> None:
        """Forget `name`; one that is not set is nothing to complain about."""
        self._at.pop(name, None)

    def next_at(self) -> int | None:
        """Return the time of the next one, None without any."""
        while self._heap and self._at.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now: int) -> str | None:
        """Take out the earliest one that is due at `now`, None if none is."""
        at = self.next_at()
        if at is None or at > now:
            return None
        name = heapq.heappop(self._heap)[1]
        del self._at[name]
        return name
