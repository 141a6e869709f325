"""The policy: puts the answers together into one wish for each query, with the reason that counts most.

Up at once, down to the most that was wanted in a window, and nothing while it is not known what is needed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import median

from attrs import evolve, frozen

from spark_elastic.core.policies.autoscale.measured import Bottleneck, bottleneck
from spark_elastic.core.policies.autoscale.metrics import EvaluatedMetrics, down_pays, read_at_most
from spark_elastic.core.policies.autoscale.model import Needed
from spark_elastic.core.policies.policy import BatchWish, QueryWish, Wish
from spark_elastic.core.policies.view import BatchMetrics, ClusterView, QueryMetrics, Wanted
from spark_elastic.core.rescale.situation import HORIZON_MS
from spark_elastic.core.turn import Number

# How many executors batch stages should have: as many as save them more time than they take to come.
# With work W left, in ms of one slot, and s slots for it, the stages take ``W ÷ s``. An executor that is
# requested now comes after its start-up u, in which it is paid for and does nothing; with it they take ``u +
# (W − s·u) ÷ (s + slots of one)``. It is requested if that is less by u or more: the work itself costs as
# much on it as anywhere, so its start-up is its price.


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


# When a query is scaled down, and how far: to the most that was wanted in the last window.
# As Kubernetes' horizontal autoscaler (scale-down stabilization) and Flink's autoscaler (scale-down.interval)
# do, so that a load that comes back finds its slots. Before something has been wanted for a whole window
# nothing is scaled down.


@frozen(kw_only=True)
class Down:
    """Go down to `slots`; `until` (epoch ms) is when fewer may do, None: these are what is wanted now."""

    slots: int
    until: int | None = None


def most_wanted(wanted: Sequence[Wanted], slots: int, at: int, window_ms: int, current: int) -> Down:
    """Return the most that was wanted in the window before `at`, `slots` being wanted now.

    `current` is what is there: nothing is higher, and it is kept until the window is full.
    """
    within = [one for one in wanted if one.last > at - window_ms]
    began = wanted[0].at if wanted else at
    if window_ms > 0 and began > at - window_ms:
        return Down(slots=current, until=began + window_ms)
    most = min(current, max((one.slots for one in within), default=slots))
    if most <= slots:
        return Down(slots=slots)
    return Down(slots=most, until=max(one.last for one in within if one.slots >= most) + window_ms)


def one_step(current: int, target: int, most_down: float) -> int:
    """Limit a way down to the largest part of the slots that may go at once; at least one slot goes."""
    return max(target, min(current - 1, math.ceil(current * (1 - most_down) - 1e-9)))


# Executors are whole: slots are given back only where that frees one, and what is left of one is free.


_MARGIN = 1.2
"""So much more than is needed is kept where slots have been added within the horizon."""


@frozen
class Weighed:
    """What was found for one query: its `wish`, the slots that are `current`, and whether it `may_wait`.

    One whose slots are of no use to it gives them back whatever that frees. One that `is_new` has not been
    granted any yet; one that was `raised_lately` might soon want back what is given back now. `of_all_slots`
    counts those that all queries together must have left for it to be in time: asked only where an executor
    could go.
    """

    wish: QueryWish
    current: int
    may_wait: bool = True
    is_new: bool = False
    of_all_slots: Callable[[], float] = float
    raised_lately: bool = False


def within_what_is_there(weighed: dict[str, Weighed], slots: int) -> dict[str, Weighed]:
    """Have queries of which nothing is known yet keep what there is together, of `slots` in all: no more."""
    new = {query: one for query, one in weighed.items() if one.wish.reason == "autoscale_measuring"}
    wanted = sum(one.wish.slots for one in weighed.values())
    measuring = sum(one.wish.slots for one in new.values())
    left = max(0, slots - wanted + measuring)
    if measuring <= left or not any(one.is_new for one in new.values()):
        return weighed
    return weighed | {
        query: evolve(one, wish=evolve(one.wish, slots=max(1, one.wish.slots * left // measuring)))
        for query, one in new.items()
    }


def in_whole_executors(weighed: Mapping[str, Weighed], slots_of_one: int) -> Mapping[str, QueryWish]:
    """Take back each step down that together with all others frees no executor of `slots_of_one` slots.

    So what two queries want, who go up and down by a slot or two, does not make an executor come and go.
    Slots of the last executor that nobody was granted are in use by then, so who goes up wants others.
    """
    wishes = {query: one.wish for query, one in weighed.items()}
    up = [query for query, one in weighed.items() if one.wish.slots > one.current]
    spare = -sum(one.current for one in weighed.values()) % max(1, slots_of_one)
    if up and spare and len(weighed) > 1:
        first = max(up, key=lambda query: wishes[query].slots - weighed[query].current)
        wishes[first] = evolve(wishes[first], slots=wishes[first].slots + spare)
    waits = [query for query, one in weighed.items() if one.may_wait and one.wish.slots < one.current]
    if not waits or slots_of_one <= 1:
        return wishes
    now = sum(one.current for one in weighed.values())
    wanted = sum(wish.slots for wish in wishes.values())
    before, after = -(-now // slots_of_one), -(-wanted // slots_of_one)
    raised = any(one.raised_lately for one in weighed.values())
    margin = _MARGIN if raised else 1.0
    needed = margin * max(one.of_all_slots() for one in weighed.values())
    least = min(before, math.ceil(needed / slots_of_one))
    # One that came within the horizon and may go again stays: a load that goes to and fro would want it back.
    if max(after, least) < before - raised:
        if after < least:
            last = max(waits, key=lambda query: weighed[query].current - wishes[query].slots)
            more = least * slots_of_one - wanted
            slots = min(weighed[last].current, wishes[last].slots + more)
            wishes[last] = evolve(wishes[last], slots=slots)
        return wishes
    kept = wanted + sum(weighed[query].current - wishes[query].slots for query in waits)
    if -(-kept // slots_of_one) > -(-now // slots_of_one):
        return wishes  # others go up, and use what is given back here
    for query in waits:
        one = weighed[query]
        numbers = {**one.wish.numbers, "fewer": one.wish.slots, "executor_slots": slots_of_one}
        wishes[query] = evolve(
            one.wish, slots=one.current, reason="autoscale_no_whole_executor", numbers=numbers,
            unsmoothed=one.wish.unsmoothed or one.wish.slots,
        )  # fmt: skip
    return wishes


_SETTLED = 2
"""As many batches have to have run with the slots of now before these are judged."""
_READY_MS = 30_000.0
"""How long an executor takes to come, until measured."""
_CAN_WAIT = ("autoscale_down", "autoscale_idle")
_CAREFUL = 1.2
"""A long way down ends so far above what is needed; the rest goes executor by executor."""
_LEAST_LOAD = 0.01
_MEASURED = 3
"""After so many intervals with new slots there are batches that tell what these do."""
_FAR = 2
"""A first batch that takes so many times its interval is reason enough to have twice the slots."""
_STEP_BEHIND = 0.1
"""How far a query goes up that falls behind against all that its batches say, one executor at least."""


@frozen
class Autoscale:
    """Goes by what micro-batches take and what comes in."""

    def decide(self, view: ClusterView) -> Wish:
        """Return the slots that each query needs for its objective."""
        ready_ms = _ready_ms(view)
        found = {id: _weighed(query, view, ready_ms) for id, query in view.queries.items()}
        weighed = {id: one for id, one in found.items() if one is not None}
        weighed = within_what_is_there(weighed, view.slots)
        wishes = in_whole_executors(weighed, view.usual_slots)
        gain = view.settings.batch_gain
        if view.batch is None or gain is None:
            return Wish(queries=wishes)
        return Wish(queries=wishes, batch=batch_wish(view, view.batch, _ready_ms(view), gain))


def _weighed(query: QueryMetrics, view: ClusterView, ready_ms: float) -> Weighed | None:
    """Decide about one query; None: its trigger has no batches that repeat, so its bounds hold alone."""
    if query.facts.trigger != "processing_time":
        return None
    current = query.granted or max(query.lower, min(query.upper, query.slots))
    found = None if query.idle else EvaluatedMetrics.of(query, ready_ms)
    wish = evolve(_wish_for(query, view, current, found), most_rows=read_at_most(query, found))
    return Weighed(
        wish,
        current,
        may_wait=wish.reason in _CAN_WAIT,
        is_new=query.granted is None,
        raised_lately=_was_raised_lately(query, view.at),
        of_all_slots=(lambda: 0.0) if found is None else partial(found.of_all_slots, view.slots),
    )


def _wish_for(
    query: QueryMetrics, view: ClusterView, current: int, found: EvaluatedMetrics | None
) -> QueryWish:
    if query.idle:
        return _Weighing(query, view, current).down(max(1, query.lower), "autoscale_idle", {})
    if found is None:
        if _overruns_at_once(query, current):
            numbers = {"batch_ms": query.samples[-1].duration_ms, "interval_ms": query.facts.trigger_ms}
            return QueryWish(slots=2 * current, reason="autoscale_first_batch", numbers=numbers)
        # What is not known is not zero: what it has, it keeps.
        return QueryWish(slots=current, reason="autoscale_measuring", numbers={"batches": len(query.samples)})
    return _Weighing(query, view, current, found).decide(found)


def _was_raised_lately(query: QueryMetrics, at: int) -> bool:
    """Say whether it was granted more slots within the horizon before `at`."""
    return query.raised_at is not None and at < query.raised_at + HORIZON_MS


def _ready_ms(view: ClusterView) -> float:
    """Tell how long an executor takes from its request until it is there, by the last ones."""
    return float(median(view.startups_ms)) if view.startups_ms else _READY_MS


def _overruns_at_once(query: QueryMetrics, current: int) -> bool:
    """Say whether the first batch took far more than its interval: the next one has more rows still."""
    interval = query.facts.trigger_ms
    if len(query.samples) != 1 or interval == 0:
        return False
    (first,) = query.samples
    return first.slots >= current and first.duration_ms > _FAR * interval


@frozen
class _Weighing:
    """A decision about one query that has, or was granted, the slots `current`."""

    query: QueryMetrics
    view: ClusterView
    current: int
    found: EvaluatedMetrics | None = None

    def decide(self, found: EvaluatedMetrics) -> QueryWish:
        target = found.known.objective.load
        need = found.needed(target)
        limit = _limit(found, need, self.current)
        # What has piled up is gone one day: what is remembered for the window is needed for what comes in.
        least = max(need.whole, min(self.current, found.known.fell_short + 1))
        steady = self._filled(found, least if limit is None else min(least, limit.slots), limit)
        drain = found.to_drain(self.current)
        slots = max(steady, drain if limit is None else min(drain, limit.slots))
        reason, numbers = "autoscale_keeps", dict[str, Number]()
        if limit is not None and (limit.slots <= need.whole or slots <= limit.slots < self.current):
            reason, numbers = limit.reason, {**limit.numbers}
        if slots > self.current:
            in_band = found.needed(target + self.query.settings.load_band).slots <= self.current
            behind = found.falls_behind and self._has_run_with_all
            if drain <= self.current and ((in_band and not behind) or self._is_under_way(found)):
                return self._wish(self.current, "autoscale_keeps", {}, unsmoothed=steady)
            if reason == "autoscale_keeps":
                reason = "autoscale_up" if found.drain is None else "autoscale_up_backlog"
            return self._wish(slots, reason, numbers, unsmoothed=steady)
        if found.falls_behind and limit is None and self._has_run_with_all and drain == 0:
            more = self.current + max(self.view.usual_slots, math.ceil(self.current * _STEP_BEHIND))
            return self._wish(more, "autoscale_falls_behind", {})
        if slots == self.current:
            if drain and reason == "autoscale_keeps":
                reason = "autoscale_draining"
            return self._wish(slots, reason, numbers, unsmoothed=steady)
        if limit is not None and limit.slots < self.current and limit.slots < need.whole:
            # What does not help is given back at once, not when a window is over.
            return self._wish(slots, reason, numbers)
        if _was_raised_lately(self.query, self.view.at) and limit is None:
            # What is given back now may be wanted back soon: then it is to be for a load that has changed.
            slots = max(slots, found.needed(max(_LEAST_LOAD, target - self.query.settings.load_band)).whole)
        waits = "autoscale_down_waits" if reason == "autoscale_keeps" else reason
        return self.down(slots, "autoscale_down", numbers, waits=waits)

    def down(
        self, slots: int, reason: str, numbers: Mapping[str, Number], waits: str = "autoscale_down_waits"
    ) -> QueryWish:
        """Go down to `slots`, or as far as the window, the price and the limit of a step let it.

        `waits` is the reason while the window keeps it from that.
        """
        own = self.query.settings
        slots = max(slots, min(self.query.lower, self.current))
        # What was granted and never came is not gone down from step by step.
        there = max(slots, min(self.current, self.query.slots))
        if slots >= self.current:
            return self._wish(self.current, reason, numbers)
        if not self.query.idle and not self._is_settled:
            return self._wish(self.current, "autoscale_settling", {}, unsmoothed=slots)
        target = most_wanted(self._wanted(slots), slots, self.view.at, own.scale_down_window_ms, self.current)
        if target.slots >= self.current:
            told = {**numbers, "fewer": slots, "window_ms": own.scale_down_window_ms}
            return self._wish(self.current, waits, told, unsmoothed=slots, until=target.until)
        # What is not read at all needs no proof that fewer slots do.
        part = 1.0 if self.query.idle else own.most_down
        step = max(target.slots, one_step(there, self._carefully(target.slots, there), part))
        if not down_pays(self.query, self.current, step):
            return self._wish(self.current, "autoscale_down_dear", {"fewer": slots}, unsmoothed=slots)
        return self._wish(step, reason, numbers, unsmoothed=slots, until=target.until)

    def _wanted(self, slots: int) -> Sequence[Wanted]:
        """Return what was wanted, as far as that is still taken for true where it was more than these slots.

        In a flood batches take long for many reasons: what is known by now of a rate counts for that one too.
        """
        found = self.found
        if found is None:
            return self.query.wanted
        load = max(_LEAST_LOAD, found.known.objective.load - self.query.settings.load_band)
        return [
            one
            if one.rows_per_ms is None or one.slots <= slots
            else Wanted(
                at=one.at,
                last=one.last,
                slots=min(one.slots, found.needed(load, rows_per_ms=one.rows_per_ms).whole),
                rows_per_ms=one.rows_per_ms,
            )
            for one in self.query.wanted
        ]

    def _carefully(self, slots: int, there: int) -> int:
        """Stop before the last executor that may go: what a line says of slots far away is seen first."""
        if self.query.idle:
            return slots
        return max(slots, min(there - self.view.usual_slots, math.ceil(slots * _CAREFUL)))

    @property
    def _is_settled(self) -> bool:
        """Whether the last batches have run with the slots that the query has now, all alike."""
        last = self.query.samples[-_SETTLED:]
        return len(last) == _SETTLED and all(
            sample.steady and sample.slots == self.query.slots and sample.started >= self.query.granted_at
            for sample in last
        )

    def _is_under_way(self, found: EvaluatedMetrics) -> bool:
        """Say whether what was granted last cannot have been measured yet."""
        takes = found.ready_ms + _MEASURED * self.query.facts.trigger_ms
        return not self._is_settled and self.view.at < self.query.granted_at + takes

    @property
    def _has_run_with_all(self) -> bool:
        """Whether the slots that it was granted are there, and have been measured."""
        return self._is_settled and self.query.slots >= self.current

    def _filled(self, found: EvaluatedMetrics, slots: int, limit: Bottleneck | None) -> int:
        """Fill the last executor, where there is no other query that could use its slots.

        One executor less will do where that brings the load into the upper half of the band at most: what a
        measurement is off by is to cost no executor.
        """
        each = self.view.usual_slots
        if len(self.view.queries) > 1 or limit is not None or each == 1:
            return slots
        load, filled = found.known.objective.load, -(-slots // each) * each
        less = filled - each
        if less > 0 and found.needed(load + self.query.settings.load_band / 2).slots <= less:
            filled = less
        return min(filled, max(slots, self.query.upper))

    def _wish(
        self,
        slots: int,
        reason: str,
        numbers: Mapping[str, Number],
        unsmoothed: int | None = None,
        until: int | None = None,
    ) -> QueryWish:
        found = self.found
        return QueryWish(
            slots=slots,
            reason=reason,
            numbers=numbers,
            unsmoothed=unsmoothed,
            until=until,
            rows_per_ms=None if found is None else found.known.inflow.rows_per_ms,
            outlook=None if found is None else found.outlook(self.current),
        )


def _limit(found: EvaluatedMetrics, need: Needed, current: int) -> Bottleneck | None:
    """Find what keeps more slots than `current` ones from helping, the tightest if there is more than one."""
    limits = [bottleneck(found.query, found.known, current)]
    if not need.admits:
        limits.append(Bottleneck(slots=need.whole, reason="autoscale_admission"))
    elif need.fixed:
        limits.append(Bottleneck(slots=need.whole, reason="autoscale_fixed_part"))
    if found.known.hot is not None:
        numbers = found.known.hot.numbers
        limits.append(Bottleneck(slots=need.whole, reason="autoscale_hot_partition", numbers=numbers))
    known = [limit for limit in limits if limit is not None]
    return min(known, key=lambda limit: limit.slots) if known else None
