"""The speed of a scheduler in a world: for all events together, and for each separately.

Each event goes to two schedulers. One is timed over up to 10,000 events (`events_per_s`), the other event by
event (`handle_ms`; `decision_ms` for events that lead to a decision or an order), so that reading the clock
does not affect the first figure. Both must return the same actions. All times are CPU time: other processes
on the machine do not count. Decoding events from JSON is timed separately.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from attrs import define, field

from integration.bench.core_world import World
from integration.bench.figures import p50_p99
from spark_elastic.core.actions import Action, CancelTimer, SetTimer
from spark_elastic.core.events import Event
from spark_elastic.core.scheduler import Scheduler
from spark_elastic.core.settings import CoreSettings
from spark_elastic.wire import decode_event, encode_event

_ROUND = 10_000


@define
class Meter:
    """A world, the two schedulers in it, and their measurements."""

    world: World
    settings: CoreSettings
    _whole: Scheduler = field(init=False)
    _single: Scheduler = field(init=False)
    _cpu_ns: int = field(default=0, init=False)
    _handle_ms: list[float] = field(factory=list, init=False)
    _decision_ms: list[float] = field(factory=list, init=False)
    _events: Counter[str] = field(factory=Counter, init=False)
    _actions: Counter[str] = field(factory=Counter, init=False)
    _sample: list[Event] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self._whole = Scheduler(self.settings)
        self._single = Scheduler(self.settings)

    def live(self, ms: int) -> None:
        """Start, and let `ms` of the world's time pass without measuring."""
        end = self.world.now + ms
        batch = list(self.world.begin())
        while self.world.now < end:
            for event in batch:
                actions = self._whole.handle(event)
                assert self._single.handle(event) == actions
                self.world.carry_out(actions)
            batch = self.world.batch()

    def measure(self, events: int) -> None:
        """Measure at least `events` events."""
        while len(self._handle_ms) < events:
            taken: list[Event] = []
            answers: list[tuple[Action, ...]] = []
            while len(taken) < min(events, _ROUND):
                batch = self.world.batch()
                answered = [self._time(event) for event in batch]
                for actions in answered:
                    self.world.carry_out(actions)
                taken += batch
                answers += answered
            begun = time.process_time_ns()
            whole = [self._whole.handle(event) for event in taken]
            self._cpu_ns += time.process_time_ns() - begun
            assert whole == answers
            self._events.update(type(event).__name__ for event in taken)
            self._actions.update(type(action).__name__ for actions in whole for action in actions)
            self._sample = taken
        self._whole.validate()

    def _time(self, event: Event) -> tuple[Action, ...]:
        begun = time.thread_time_ns()
        actions = self._single.handle(event)
        took_ms = (time.thread_time_ns() - begun) / 1e6
        self._handle_ms.append(took_ms)
        if not all(isinstance(action, SetTimer | CancelTimer) for action in actions):
            self._decision_ms.append(took_ms)
        return actions

    def summary(self) -> dict[str, Any]:
        """Return the figures."""
        count = len(self._handle_ms)
        return {
            "events_per_s": round(count / (self._cpu_ns / 1e9)),
            "handle_ms": p50_p99(self._handle_ms),
            "decision_ms": p50_p99(self._decision_ms)
            | {"max": round(max(self._decision_ms, default=0.0), 3)},
            "deciding_events": len(self._decision_ms),
            # One event may lead to a decision about each query.
            "ms_per_report": round(sum(self._decision_ms) / max(1, self._actions["Report"]), 3),
            "cpu_s": round(self._cpu_ns / 1e9, 1),
            "decode_events_per_s": round(_decoded_per_s(self._sample)),
            "events": dict(self._events.most_common()),
            "actions": dict(self._actions.most_common()),
        }


def decision_times(world: World, scheduler: Scheduler, many: int) -> list[float]:
    """Return the durations (CPU ms) of `many` events for which the policies were asked about all queries.

    The same number of events before them is a warm-up and not counted.
    """
    took: list[float] = []
    planner = scheduler._planner
    batch = list(world.begin())
    while len(took) < 2 * many:
        for event in batch:
            asked = planner._decided
            begun = time.thread_time_ns()
            actions = scheduler.handle(event)
            took_ms = (time.thread_time_ns() - begun) / 1e6
            if planner._decided != asked:
                took.append(took_ms)
            world.carry_out(actions)
        batch = world.batch()
    return took[-many:]


def _decoded_per_s(events: Sequence[Event]) -> float:
    texts = [json.dumps(encode_event(event)) for event in events]
    begun = time.process_time()
    for text in texts:
        decode_event(json.loads(text))
    return len(texts) / (time.process_time() - begun)
