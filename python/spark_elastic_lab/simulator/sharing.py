"""Which micro-batches run, on how many slots each, and when each is through.

Spark's scheduler takes turns between the tasks of those that run at once. Here they share the slots evenly,
none more than it has tasks, and slots that the last tasks of one leave empty are filled by the others. When
slots come or go, or another one begins or ends, what a micro-batch has done stays done; the rest continues at
another pace.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from attrs import define, field

Duration = Callable[[float, bool], float]
"""How long the whole of it takes (ms) on so many slots, more than 0, that it has alone or shares."""


@define
class Running:
    """A micro-batch that runs: `done` of it (0 to 1) by `since` (ms); it takes `whole` on its slots (ms)."""

    query: str
    width: int
    duration: Duration
    since: int
    done: float = 0.0
    slots: float = 0.0
    shares: bool = False
    whole: float = math.inf

    @property
    def end(self) -> float:
        """When it will be through (ms) on the slots that it has, infinity without any."""
        return self.since + (1 - self.done) * self.whole if self.whole < math.inf else math.inf

    def done_by(self, now: int) -> float:
        """Return how much of it is done (0 to 1) at a moment."""
        if self.whole == math.inf:
            return self.done
        return min(1.0, self.done + (now - self.since) / max(self.whole, 1e-9))


@define
class SharedSlots:
    """The slots and what runs on them, by query; times are ms."""

    slots: int = 0
    running: dict[str, Running] = field(factory=dict)
    version: int = 0
    """Counts the changes: an end that was computed before the last one is none."""

    def begin(self, query: str, width: int, duration: Duration, now: int) -> None:
        """Let a micro-batch begin that uses up to `width` slots."""
        self.running[query] = Running(query, width, duration, now)
        self._share(now)

    def end(self, query: str, now: int) -> None:
        """Take out a micro-batch that is through, or given up."""
        del self.running[query]
        self._share(now)

    def resize(self, slots: int, now: int, lost: bool = False) -> None:
        """Continue with so many slots; where executors were `lost`, what runs there is done again."""
        before, self.slots = self.slots, slots
        self._share(now)
        if lost and before > slots:
            for batch in self.running.values():
                batch.done *= slots / before

    def next_end(self) -> tuple[float, str] | None:
        """Return when the next one is through, and of which query; None if none ever is."""
        ends = [(batch.end, query) for query, batch in self.running.items()]
        return min(ends, default=None)

    def _share(self, now: int) -> None:
        self.version += 1
        shares = fair_shares([batch.width for batch in self.running.values()], self.slots)
        shared = len(shares) > 1
        for batch, slots in zip(self.running.values(), shares, strict=True):
            batch.done, batch.since = batch.done_by(now), now
            if (slots, shared) != (batch.slots, batch.shares):
                batch.slots, batch.shares = slots, shared
                batch.whole = batch.duration(slots, shared) if slots > 0 else math.inf


def fair_shares(widths: list[int], slots: int) -> list[float]:
    """Divide slots evenly, nobody getting more than its width; whole slots where there is one for each."""
    if not widths or slots <= 0:
        return [0.0] * len(widths)
    if slots < len(widths):
        return [slots / len(widths)] * len(widths)
    shares = [0] * len(widths)
    left = slots
    by_width = sorted(range(len(widths)), key=lambda place: widths[place])
    for number, place in enumerate(by_width):
        shares[place] = min(widths[place], left // (len(widths) - number))
        left -= shares[place]
    for place in by_width:  # what is left by rounding
        more = min(widths[place] - shares[place], left)
        shares[place] += more
        left -= more
    return [float(share) for share in shares]
