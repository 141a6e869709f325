"""An in-memory counterpart of the gateway: a scripted world on a clock that jumps."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence

from spark_elastic.core.actions import Action
from spark_elastic.core.events import Event
from spark_elastic.runtime.port import Exchange, JsonObject
from spark_elastic.wire import decode_action, encode_event

World = Callable[[Action, int], Iterable[Event]]


class SteppedClock:
    """A clock that moves only during a wait; times are epoch ms."""

    def __init__(self, now: int = 0) -> None:
        self._now = now

    def now(self) -> int:
        """Return the time."""
        return self._now

    def advance_to(self, at: int) -> None:
        """Jump to `at`; a time that has passed changes nothing."""
        self._now = max(self._now, at)

    def follow(self, earlier: object) -> None:
        """Change nothing: all processes share one clock."""

    def shifted(self, event: Event) -> Event:
        """Return an event unchanged: the whole world uses this clock."""
        return event


class MemoryGateway:
    """A driver that plays events at their time and ends at `end` (epoch ms).

    `world` maps each action and its time to the events that follow from it, each played at its own time.
    `actions` are all actions so far.
    """

    def __init__(self, clock: SteppedClock, *, end: int, world: World = lambda _action, _now: ()) -> None:
        self._clock = clock
        self._end = end
        self._world = world
        self._script: list[tuple[int, int, JsonObject]] = []
        self._offered = 0
        self.actions: list[Action] = []

    def offer(self, *events: Event) -> None:
        """Add events, each to be played at its time; those with equal times keep their order."""
        for event in events:
            self.offer_raw(encode_event(event), event.at)

    def offer_raw(self, event: JsonObject, at: int) -> None:
        """Add an event in the form in which it comes over the wire."""
        heapq.heappush(self._script, (at, self._offered, event))
        self._offered += 1

    def exchange(self, actions: Sequence[JsonObject], wait_ms: int) -> Exchange:
        """Accept `actions`, then jump to the next event or to the end of the wait."""
        for value in actions:
            action = decode_action(value)
            self.actions.append(action)
            self.offer(*self._world(action, self._clock.now()))
        deadline = min(self._clock.now() + wait_ms, self._end)
        if self._script:
            deadline = min(deadline, self._script[0][0])
        self._clock.advance_to(deadline)
        events: list[JsonObject] = []
        while self._script and self._script[0][0] <= self._clock.now():
            events.append(heapq.heappop(self._script)[2])
        return Exchange(events=tuple(events), stop=self._clock.now() >= self._end)
