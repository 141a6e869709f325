"""The running micro-batches, the slots of each, and when each ends.

Spark's scheduler takes turns between the tasks of those that run at the same time. Here they share the slots
evenly, none gets more than it has tasks, and slots that the last tasks of one leave empty are filled by the
others. When the slots change, or another micro-batch starts or ends, the completed part of a micro-batch
stays completed; the rest continues at another pace.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from attrs import define, field

Duration = Callable[[float, bool], float]
"""Returns a micro-batch's whole duration (ms) on more than 0 slots, which it has alone or shares."""


@define
class Running:
    """A running micro-batch: `done` of it (0 to 1) by `since` (ms); it takes `whole` on its slots (ms)."""

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
        """The time of its end (ms) on its current slots, infinity without any."""
        return self.since + (1 - self.done) * self.whole if self.whole < math.inf else math.inf

    def done_by(self, now: int) -> float:
        """Return the share of it that is done (0 to 1) at a moment."""
        if self.whole == math.inf:
            return self.done
        return min(1.0, self.done + (now - self.since) / max(self.whole, 1e-9))


@define
class SharedSlots:
    """The slots and the micro-batches on them, by query; times are ms."""

    slots: int = 0
    running: dict[str, Running] = field(factory=dict)
    version: int = 0
    """Counts the changes: an end computed before the last change is invalid."""

    def begin(self, query: str, width: int, duration: Duration, now: int) -> None:
        """Start a micro-batch that uses up to `width` slots."""
        self.running[query] = Running(query, width, duration, now)
        self._share(now)

    def end(self, query: str, now: int) -> None:
        """Remove a micro-batch that has ended or was aborted."""
        del self.running[query]
        self._share(now)

    def resize(self, slots: int, now: int, lost: bool = False) -> None:
        """Change the slots; if executors were `lost`, the work done on them is repeated."""
        before, self.slots = self.slots, slots
        self._share(now)
        if lost and before > slots:
            for batch in self.running.values():
                batch.done *= slots / before

    def next_end(self) -> tuple[float, str] | None:
        """Return the time and the query of the next end, or None if nothing will end."""
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
    """Divide slots evenly, up to each width; whole slots if there is at least one for each."""
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
    for place in by_width:  # the remainder of the division
        more = min(widths[place] - shares[place], left)
        shares[place] += more
        left -= more
    return [float(share) for share in shares]
