"""The policy `autoscale`: combines the findings into one wish per query, with the reason that counts most.

It scales up at once, and down to the most that was wanted in a window. It changes nothing while the need is
unknown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median

from attrs import evolve, field, frozen

from spark_elastic.core.policies.autoscale.measured import LEAST_SAMPLES, LONG_MS, Bottleneck, is_far
from spark_elastic.core.policies.autoscale.query_metrics import (
    EvaluatedMetrics,
    Findings,
    down_pays,
    read_at_most,
)
from spark_elastic.core.policies.policy import BatchWish, QueryWish, Wish
from spark_elastic.core.policies.view import BatchMetrics, ClusterView, QueryMetrics, Wanted
from spark_elastic.core.rescale.situation import HORIZON_MS
from spark_elastic.core.turn import Number

# The executors that batch stages should have: as many as save them more time than they take to come.
# With work W left, in ms of one slot, and s slots for it, the stages take ``W ÷ s``. An executor that is
# requested now comes after its start-up u, in which it is paid for and does nothing; with it they take ``u +
# (W − s·u) ÷ (s + slots of one)``. It is requested if that is less by u or more: the work itself costs the
# same everywhere, so the start-up is the price of the executor.


_LEFT_BY_QUERIES = 0.2
"""The part of their slots that micro-batches leave to others, since they should take 0.8 of their time."""


@frozen(kw_only=True)
class Price:
    """Cost and benefit of one more executor of `each` slots, which comes after `ready_ms`.

    It is worth its price if it saves at least `gain` times `ready_ms`.
    """

    each: int
    ready_ms: float
    gain: float

    def takes_ms(self, work_ms: float, slots: float, more: int) -> float:
        """Return how long work takes on the `slots` that are there and `more` executors that will come."""
        if more == 0 or work_ms <= slots * self.ready_ms:
            return work_ms / slots if slots > 0 else math.inf
        return self.ready_ms + (work_ms - slots * self.ready_ms) / (slots + more * self.each)

    def saves_ms(self, work_ms: float, slots: float, more: int) -> float:
        """Return what the last of `more` executors saves, infinity if it brings the first slots at all."""
        return self.takes_ms(work_ms, slots, more - 1) - self.takes_ms(work_ms, slots, more)

    def pays(self, work_ms: float, slots: float, more: int) -> bool:
        """Return whether the last of `more` executors is worth its price."""
        saves = self.saves_ms(work_ms, slots, more)
        return saves > 0 and saves >= self.gain * self.ready_ms

    def worth(self, work_ms: float, slots: float, most: int) -> int:
        """Count the executors that are worth their price, up to `most`; each saves less than the last one."""
        low, high = 0, max(0, most)
        while low < high:
            middle = (low + high + 1) // 2
            if self.pays(work_ms, slots, middle):
                low = middle
            else:
                high = middle - 1
        return low


def batch_wish(view: ClusterView, batch: BatchMetrics, ready_ms: float, gain: float) -> BatchWish:
    """Return the wish for batch stages, in addition to the executors that queries need.

    The queries come first: their slots count for batch stages only for the part of the time that
    micro-batches leave unused.
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
        # The time waited so far is spent: executors that were requested only have to be worth the rest.
        rest = evolve(price, ready_ms=max(0.0, ready_ms - (view.at - since)))
        wanted = max(wanted, min(total - queries, own + rest.worth(work, free, most - own)))
    # Present executors stay while each has work for at least the idle timeout that would release it.
    wanted = max(wanted, min(own, int(work / (each * max(1, view.settings.slot_idle_ms)))))
    wanted = min(wanted, most)
    if batch.active and queries == 0:
        wanted = max(1, wanted)
    held = max(wanted, batch.peak)
    # Report the last executor that is worth its price, or else the first one that is not.
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

    A phase that has lasted for some time may last as long again. There are three estimates: as many stages as
    have ended in a row, each of the current size; as much work as those took; slots that stay short for as
    long as they have been. The least of them counts, so neither occasional work nor a short last stage is
    overestimated.
    """
    return min(batch.row * batch.work_ms, batch.row_ms, batch.crowded_ms * slots)


def _reason(batch: BatchMetrics, wanted: int, own: int, free: float) -> str:
    if not batch.left:
        return "batch_held" if wanted else "batch_over"
    if wanted > max(own, batch.executors):
        return "batch_up" if free > 0 else "batch_first"
    return "batch_keeps" if wanted >= batch.executors else "batch_down"


# ---- When a query is scaled down, and how far: to the most that was wanted in the last window. Kubernetes'
# horizontal autoscaler (scale-down stabilization) and Flink's autoscaler (scale-down.interval) do the same,
# so that a load that comes back finds its slots. Nothing is scaled down until wishes have been recorded for a
# whole window.


@frozen(kw_only=True)
class Down:
    """Go down to `slots`; `until` (epoch ms) is when fewer may do, None if these are what is wanted now."""

    slots: int
    until: int | None = None


def most_wanted(wanted: Sequence[Wanted], slots: int, at: int, window_ms: int, current: int) -> Down:
    """Return the most that was wanted in the window before `at`, while `slots` are wanted now.

    The result never exceeds `current`, the slots that are there, and equals it until the window is full.
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
    """Limit a step down to the largest part of the slots that may go at once; at least one slot goes."""
    return max(target, min(current - 1, math.ceil(current * (1 - most_down) - 1e-9)))


# ---- Executors are whole: slots are given back only if that frees one, and its other slots cost nothing
# extra.


_MARGIN = 1.2
"""The multiple of the need that is kept if slots were added within the horizon."""


@frozen
class Weighed:
    """The result for one query: its `wish`, its `current` slots, and whether it `may_wait`.

    A query whose slots are of no use gives them back, whatever that frees. One that `is_new` has not been
    granted any yet; one that was `raised_lately` might soon want back what is given back now. `of_all_slots`
    is the number of slots that all queries together must keep for this one to be in time, 0 if unknown.
    """

    wish: QueryWish
    current: int
    may_wait: bool = True
    is_new: bool = False
    of_all_slots: float = 0.0
    raised_lately: bool = False


def within_what_is_there(weighed: dict[str, Weighed], slots: int) -> dict[str, Weighed]:
    """Trim unmeasured queries to the slots that others leave of `slots` in total, if one of them is new."""
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
    """Revert each step down that, together with all others, frees no executor of `slots_of_one` slots.

    Executors are what costs, and queries share slots whatever they were granted. So queries are weighed one
    by one, and this looks at all of them together: two queries that go up and down by a slot or two do not
    make an executor come and go. Slots of the last executor that are granted to no query are already in use,
    so a query that goes up wants additional ones.
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
    needed = margin * max(one.of_all_slots for one in weighed.values())
    least = min(before, math.ceil(needed / slots_of_one))
    # An executor that came within the horizon and may go again stays: an oscillating load would want it back.
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
"""Number of batches that must have run with the current slots before these are judged."""
_READY_MS = 30_000.0
"""How long an executor takes to come, until measured."""
_CAN_WAIT = ("autoscale_down", "autoscale_idle")
_CAREFUL = 1.2
"""A long way down ends at this multiple of the need; the rest goes executor by executor."""
_LEAST_LOAD = 0.01
_MEASURED = 3
"""After this number of intervals with new slots, batches show their effect."""
_STEP_BEHIND = 0.1
"""The step up of a query that falls behind although its batches say otherwise, at least one executor."""


@frozen
class Autoscale:
    """The policy that decides by micro-batch durations and arrival rates.

    It keeps its last findings, by query, since most queries have reported nothing since. Each is used only
    while all that it follows from is the same, so they make no difference to a wish.
    """

    _findings: dict[str, Findings] = field(factory=dict, init=False, eq=False, repr=False)

    def decide(self, view: ClusterView) -> Wish:
        """Return the slots that each query needs for its objective."""
        ready_ms = _ready_ms(view)
        running = sum(_busy(query) for query in view.queries.values())
        findings: dict[str, Findings] = {}
        weighed: dict[str, Weighed] = {}
        for id, query in view.queries.items():
            if query.facts.trigger != "processing_time":
                continue  # it has no batches that repeat, so only its bounds apply
            current = query.granted or max(query.lower, min(query.upper, query.slots))
            found = None
            if not query.idle:
                before = self._findings.get(id)
                findings[id] = Findings.of(query, current, ready_ms, view.at, before)
                found = findings[id].evaluated
            weighed[id] = _weighed(query, view, current, running - _busy(query), found)
        self._findings.clear()
        self._findings.update(findings)
        weighed = within_what_is_there(weighed, view.slots)
        wishes = in_whole_executors(weighed, view.usual_slots)
        gain = view.settings.batch_gain
        if view.batch is None or gain is None:
            return Wish(queries=wishes)
        return Wish(queries=wishes, batch=batch_wish(view, view.batch, _ready_ms(view), gain))


def _busy(query: QueryMetrics) -> float:
    """Return the part of the time (0 to 1) in which a query has last run a micro-batch."""
    latest = None if query.idle else query.latest
    return 0.0 if latest is None else min(1.0, latest.busy or 0.0)


def _weighed(
    query: QueryMetrics, view: ClusterView, current: int, beside: float, found: EvaluatedMetrics | None
) -> Weighed:
    wish = _Weighing(query, view, current, beside, found).decide()
    return Weighed(
        wish,
        current,
        may_wait=wish.reason in _CAN_WAIT,
        is_new=query.granted is None,
        raised_lately=_was_raised_lately(query, view.at),
        of_all_slots=0.0 if found is None else found.of_all_slots,
    )


def _was_raised_lately(query: QueryMetrics, at: int) -> bool:
    """Return whether a query was granted more slots within the horizon before `at`."""
    return query.raised_at is not None and at < query.raised_at + HORIZON_MS


def _ready_ms(view: ClusterView) -> float:
    """Return how long an executor takes from its request until it is there, based on the last ones."""
    return float(median(view.startups_ms)) if view.startups_ms else _READY_MS


def _first_took_ms(query: QueryMetrics, at: int) -> int:
    """Return how long the first batch took, or has run, 0 after it: the next one has even more rows."""
    if len(query.samples) == 1:
        return query.samples[0].duration_ms
    return at - query.running.at if query.running is not None and not query.samples else 0


def _look_again(query: QueryMetrics, at: int) -> int | None:
    """Return when a running micro-batch has taken another interval, None if its duration can be foreseen."""
    running = query.running
    if running is None or len(query.earlier) + len(query.samples) >= LEAST_SAMPLES:
        return None
    interval = query.facts.trigger_ms or LONG_MS
    return running.at + interval * ((at - running.at) // interval + 1)


@frozen
class _Weighing:
    """A decision about one query; `current` is the number of slots that it has, or was granted.

    `beside` is how many other queries run a micro-batch at the same time, on average. `found` is what is
    known about the query, None while that does not suffice.
    """

    query: QueryMetrics
    view: ClusterView
    current: int
    beside: float
    found: EvaluatedMetrics | None

    def decide(self) -> QueryWish:
        if self.query.idle:
            return self.down(max(1, self.query.lower), "autoscale_idle", {})
        if self.found is None:
            return self._first()
        return self._by_need(self.found)

    def _first(self) -> QueryWish:
        query = self.query
        took, interval = _first_took_ms(query, self.view.at), query.facts.trigger_ms
        if query.slots >= self.current and is_far(took, interval):
            numbers = {"batch_ms": took, "interval_ms": interval}
            return self._wish(2 * self.current, "autoscale_first_batch", numbers)
        # Unknown is not zero: the query keeps what it has.
        return self._wish(self.current, "autoscale_measuring", {"batches": len(query.samples)})

    def _by_need(self, found: EvaluatedMetrics) -> QueryWish:
        target, need, limit = found.known.objective.load, found.need, found.limit
        # The backlog will be gone one day, so the window remembers only the need for what arrives.
        least = max(need.whole, min(self.current, found.known.fell_short + 1))
        steady = self._filled(found, least if limit is None else min(least, limit.slots), limit)
        drain = found.to_drain(self.query.slots, self.beside)
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
                reason = "autoscale_up" if found.known.backlog is None else "autoscale_up_backlog"
            return self._wish(slots, reason, numbers, unsmoothed=steady)
        if found.falls_behind and limit is None and self._has_run_with_all and drain == 0:
            more = self.current + max(self.view.usual_slots, math.ceil(self.current * _STEP_BEHIND))
            return self._wish(more, "autoscale_falls_behind", {})
        if slots == self.current:
            if drain and found.known.backlog is not None and reason == "autoscale_keeps":
                reason = "autoscale_draining"
            return self._wish(slots, reason, numbers, unsmoothed=steady)
        if limit is not None and limit.slots < self.current and limit.slots < need.whole:
            # Slots that do not help are given back at once, not when a window has ended.
            return self._wish(slots, reason, numbers)
        if _was_raised_lately(self.query, self.view.at) and limit is None:
            # Slots that are given back now may be wanted back soon, unless the load has really changed.
            slots = max(slots, found.needed(max(_LEAST_LOAD, target - self.query.settings.load_band)).whole)
        waits = "autoscale_down_waits" if reason == "autoscale_keeps" else reason
        numbers["window_ms"] = self.query.settings.scale_down_window_ms
        return self.down(slots, "autoscale_down", numbers, waits=waits)

    def down(
        self, slots: int, reason: str, numbers: Mapping[str, Number], waits: str = "autoscale_down_waits"
    ) -> QueryWish:
        """Go down to `slots`, or as far as the window, the price and the limit of a step allow.

        `waits` is the reason while the window prevents that.
        """
        own = self.query.settings
        slots = max(slots, min(self.query.lower, self.current))
        # Slots that were granted and never came do not have to go step by step.
        there = max(slots, min(self.current, self.query.slots))
        if slots >= self.current:
            return self._wish(self.current, reason, numbers)
        foreseen = self.found is not None and self.found.known.foreseen
        if not self.query.idle and (foreseen or not self._is_settled):
            return self._wish(self.current, "autoscale_settling", {}, unsmoothed=slots)
        target = most_wanted(self._wanted(slots), slots, self.view.at, own.scale_down_window_ms, self.current)
        if target.slots >= self.current:
            told = {**numbers, "fewer": slots, "window_ms": own.scale_down_window_ms}
            return self._wish(self.current, waits, told, unsmoothed=slots, until=target.until)
        # An idle query reads nothing, so it needs no proof that fewer slots do.
        part = 1.0 if self.query.idle else own.most_down
        step = max(target.slots, one_step(there, self._carefully(target.slots, there), part))
        if not down_pays(self.query, self.current, step):
            return self._wish(self.current, "autoscale_down_dear", {"fewer": slots}, unsmoothed=slots)
        return self._wish(step, reason, numbers, unsmoothed=slots, until=target.until)

    def _wanted(self, slots: int) -> Sequence[Wanted]:
        """Return what was wanted, recomputing wishes for more than `slots` with current measurements.

        During a flood, batches take long for many reasons: later measurements apply to its rate as well.
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
        """Stop before the last executor that may go, to verify what the line predicts for far fewer slots."""
        if self.query.idle:
            return slots
        return max(slots, min(there - self.view.usual_slots, math.ceil(slots * _CAREFUL)))

    @property
    def _is_settled(self) -> bool:
        """Whether the last batches have all run with the slots that the query has now."""
        last = self.query.samples[-_SETTLED:]
        return len(last) == _SETTLED and all(
            sample.steady and sample.slots == self.query.slots and sample.started >= self.query.granted_at
            for sample in last
        )

    def _is_under_way(self, found: EvaluatedMetrics) -> bool:
        """Return whether the last grant cannot have been measured yet."""
        takes = found.basis.ready_ms + _MEASURED * self.query.facts.trigger_ms
        return not self._is_settled and self.view.at < self.query.granted_at + takes

    @property
    def _has_run_with_all(self) -> bool:
        """Whether the slots that the query was granted are there, and have been measured."""
        return self._is_settled and self.query.slots >= self.current

    def _filled(self, found: EvaluatedMetrics, slots: int, limit: Bottleneck | None) -> int:
        """Fill the last executor, if there is no other query that could use its slots.

        One executor less will do if that brings the load into the upper half of the band at most: a
        measurement error should not cost an executor.
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
        again = [at for at in (until, _look_again(self.query, self.view.at)) if at is not None]
        return QueryWish(
            slots=slots,
            reason=reason,
            numbers=numbers,
            until=min(again, default=None),
            unsmoothed=unsmoothed,
            rows_per_ms=None if found is None else found.known.inflow.rows_per_ms,
            most_rows=read_at_most(self.query, found),
            outlook=None if found is None else found.outlook,
        )
