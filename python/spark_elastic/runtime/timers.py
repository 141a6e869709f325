"""The timers that the scheduler has set."""

from __future__ import annotations

import heapq

from spark_elastic.core.actions import SetTimer


class Timers:
    """What was ordered for later, in the order of its time; setting a timer again replaces it."""

    def __init__(self) -> None:
        self._set: dict[str, SetTimer] = {}
        # Replaced and cancelled timers stay in the heap until they come up, and are told by `_set`.
        self._heap: list[tuple[int, str]] = []

    def set(self, order: SetTimer) -> None:
        """Let a timer come due."""
        self._set[order.timer] = order
        heapq.heappush(self._heap, (order.at, order.timer))

    def cancel(self, timer: str) -> None:
        """Forget a timer; one that is not set is nothing to complain about."""
        self._set.pop(timer, None)

    def next_at(self) -> int | None:
        """Return the time of the next one (epoch ms), None without any."""
        while self._heap:
            at, timer = self._heap[0]
            if timer in self._set and self._set[timer].at == at:
                return at
            heapq.heappop(self._heap)
        return None

    def pop_due(self, now: int) -> SetTimer | None:
        """Take out the earliest one that is due at `now` (epoch ms), None if none is."""
        at = self.next_at()
        if at is None or at > now:
            return None
        return self._set.pop(heapq.heappop(self._heap)[1])
