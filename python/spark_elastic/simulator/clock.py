"""The clock of a simulation: what happens next, in an order that is always the same."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterator

from attrs import define, field

Happening = Callable[[], None]


@define
class Clock:
    """Moments (ms since the begin), each with what happens then; what was set first is first."""

    now: int = 0
    _queue: list[tuple[int, int]] = field(factory=list)
    _set: dict[int, tuple[Happening, Hashable | None]] = field(factory=dict)
    _named: dict[Hashable, int] = field(factory=dict)
    _count: int = 0

    def at(self, when: float, happening: Happening, name: Hashable | None = None) -> None:
        """Let something happen at a moment, at the earliest now; under a `name` it replaces what has it."""
        if name is not None:
            self.forget(name)
            self._named[name] = self._count
        heapq.heappush(self._queue, (max(self.now, -int(-when // 1)), self._count))
        self._set[self._count] = (happening, name)
        self._count += 1

    def after(self, ms: float, happening: Happening, name: Hashable | None = None) -> None:
        """Let something happen in so many ms."""
        self.at(self.now + ms, happening, name)

    def forget(self, name: Hashable) -> None:
        """Let what has this name not happen."""
        number = self._named.pop(name, None)
        if number is not None:
            del self._set[number]

    def run(self, end: int) -> Iterator[int]:
        """Let all happen up to `end`, and yield the time after each; then it is `end`."""
        while self._queue and self._queue[0][0] <= end:
            at, number = heapq.heappop(self._queue)
            happening = self._set.pop(number, None)
            if happening is None:
                continue
            self.now = at
            if happening[1] is not None:
                del self._named[happening[1]]
            happening[0]()
            yield at
        self.now = end
