"""How many executors batch stages should have: as many as save them more time than they take to come.

With work W left, in ms of one slot, and s slots for it, the stages take ``W ÷ s``. An executor that is
requested now comes after its start-up u, in which it is paid for and does nothing; with it they take
``u + (W − s·u) ÷ (s + slots of one)``. It is requested if that is less by u or more: the work itself costs as
much on it as anywhere, so its start-up is its price.
"""

from __future__ import annotations

import math

from attrs import evolve, frozen

from spark_elastic.core.policies.view import BatchMetrics, ClusterView
from spark_elastic.core.policies.wish import BatchWish
from spark_elastic.core.turn import Number

_LEFT_BY_QUERIES = 0.2
"""The part of their slots that micro-batches leave to others: they are to take 0.8 of their time."""


@frozen(kw_only=True)
class Price:
    """What one more executor of `each` slots costs and is worth: it comes after `ready_ms`.

    It is worth its price if it saves more than `gain` times that.
    """

    each: int
    ready_ms: float
    gain: float

    def takes_ms(self, work_ms: float, slots: float, more: int) -> float:
        """Return how long work takes on `slots` that are there and `more` executors that are to come."""
        if more == 0 or work_ms <= slots * self.ready_ms:
            return work_ms / slots if slots > 0 else math.inf
        return self.ready_ms + (work_ms - slots * self.ready_ms) / (slots + more * self.each)

    def saves_ms(self, work_ms: float, slots: float, more: int) -> float:
        """Return what the last one of `more` executors saves, infinity for the first slots at all."""
        return self.takes_ms(work_ms, slots, more - 1) - self.takes_ms(work_ms, slots, more)

    def pays(self, work_ms: float, slots: float, more: int) -> bool:
        """Say whether the last one of `more` executors is worth its price."""
        saves = self.saves_ms(work_ms, slots, more)
        return saves > 0 and saves >= self.gain * self.ready_ms

    def worth(self, work_ms: float, slots: float, most: int) -> int:
        """Count the executors that are worth their price, up to `most`; each one saves less than the last."""
        low, high = 0, max(0, most)
        while low < high:
            middle = (low + high + 1) // 2
            if self.pays(work_ms, slots, middle):
                low = middle
            else:
                high = middle - 1
        return low


def batch_wish(view: ClusterView, batch: BatchMetrics, ready_ms: float, gain: float) -> BatchWish:
    """Return what is wanted for batch stages, beside the executors that queries need.

    The queries come first: what they should have is not counted as there for batch stages, but for the part
    of the time in which their micro-batches leave it to others.
    """
    each, there = max(1, view.usual_slots), len(view.executors)
    queries = -(-view.needed // each)
    own = max(0, there - queries)
    free = max(0, view.slots - view.needed) + _LEFT_BY_QUERIES * min(view.needed, view.slots)
    work = batch.work_ms + _to_come(batch, free)
    most = -(-batch.left // each)
    price = Price(each=each, ready_ms=ready_ms, gain=gain)
    more = price.worth(work, free, most - own)
    wanted = own + more if more else 0
    for total, since in view.waiting:
        # What was waited of the start-up is spent: those that were requested are to be worth the rest.
        rest = evolve(price, ready_ms=max(0.0, ready_ms - (view.at - since)))
        wanted = max(wanted, min(total - queries, own + rest.worth(work, free, most - own)))
    # Those that are here stay while there is work for them until they would be given back without any.
    wanted = max(wanted, min(own, int(work / (each * max(1, view.settings.slot_idle_ms)))))
    wanted = min(wanted, most)
    if batch.active and queries == 0:
        wanted = max(1, wanted)
    held = max(wanted, batch.peak)
    # What is told is the last one that is worth its price, or else the first one that is not.
    saved = price.saves_ms(work, free, more if more and held > batch.executors else more + 1)
    numbers: dict[str, Number] = {
        "left": batch.left,
        "work_ms": round(work),
        "ready_ms": round(ready_ms),
        "saved_ms": round(saved) if saved < math.inf else 0,
        "free_slots": round(free, 1),
    }
    reason = _reason(batch, held, own, free)
    return BatchWish(executors=held, reason=reason, numbers=numbers, unsmoothed=wanted)


def _to_come(batch: BatchMetrics, slots: float) -> float:
    """Estimate the work of stages that will follow, in ms of one slot.

    What has lasted so long may last as long again: as many stages as have come to their end in a row, each of
    the size of those of now; as much work as these took; slots that are short for as long as they were. The
    least of these counts, so neither work that comes now and then nor a short last stage is taken for more.
    """
    return min(batch.row * batch.work_ms, batch.row_ms, batch.crowded_ms * slots)


def _reason(batch: BatchMetrics, wanted: int, own: int, free: float) -> str:
    if not batch.left:
        return "batch_held" if wanted else "batch_over"
    if wanted > max(own, batch.executors):
        return "batch_up" if free > 0 else "batch_first"
    return "batch_keeps" if wanted >= batch.executors else "batch_down"
