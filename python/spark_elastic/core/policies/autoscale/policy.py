"""The policy: puts the answers together into one wish for each query, with the reason that counts most.

Up at once, down to the most that was wanted in a window, and nothing while it is not known what is needed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from statistics import median

from attrs import evolve, frozen

from spark_elastic.core.policies.autoscale.batch import batch_wish
from spark_elastic.core.policies.autoscale.bottleneck import Bottleneck, bottleneck
from spark_elastic.core.policies.autoscale.metrics import EvaluatedMetrics, read_at_most
from spark_elastic.core.policies.autoscale.objective import Needed
from spark_elastic.core.policies.autoscale.price import down_pays
from spark_elastic.core.policies.autoscale.whole import Weighed, in_whole_executors, within_what_is_there
from spark_elastic.core.policies.autoscale.window import most_wanted, one_step
from spark_elastic.core.policies.view import ClusterView, QueryMetrics, Wanted
from spark_elastic.core.policies.wish import QueryWish, Wish
from spark_elastic.core.rescale.situation import HORIZON_MS
from spark_elastic.core.turn import Number

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
