"""The policy: puts the answers together into one wish for each query, with the reason that counts most.

Up at once, down to the most that was wanted in a window, and nothing while it is not known what is needed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import median

from attrs import frozen

from spark_elastic.core.policies.autoscale.bottleneck import Bottleneck, bottleneck
from spark_elastic.core.policies.autoscale.figures import Figures
from spark_elastic.core.policies.autoscale.objective import Needed
from spark_elastic.core.policies.autoscale.price import down_pays
from spark_elastic.core.policies.autoscale.window import most_wanted, one_step
from spark_elastic.core.policies.view import ClusterView, QueryFigures
from spark_elastic.core.policies.wish import QueryWish, Wish
from spark_elastic.core.turn import Number

_SETTLED = 2
"""As many batches have to have run with the slots of now before these are judged."""
_READY_MS = 30_000.0
"""How long an executor takes to come, until measured."""
_FAR = 2
"""A first batch that takes so many times its interval is reason enough to have twice the slots."""
_STEP_BEHIND = 1.25
"""How far a query goes up that falls behind against all that its batches say."""


@frozen
class Autoscale:
    """Goes by what micro-batches take and what comes in."""

    def decide(self, view: ClusterView) -> Wish:
        """Return the slots that each query needs for its objective."""
        wishes = {id: _wish_for(query, view) for id, query in view.queries.items()}
        return Wish(queries={id: wish for id, wish in wishes.items() if wish is not None})


def _wish_for(query: QueryFigures, view: ClusterView) -> QueryWish | None:
    """Decide about one query; None: its trigger has no batches that repeat, so its bounds hold alone."""
    if query.facts.trigger != "processing_time":
        return None
    current = query.granted or max(query.lower, min(query.upper, query.slots))
    if query.idle:
        return _Weighing(query, view, current, {}).down(max(1, query.lower), "autoscale_idle", {})
    found = Figures.of(query, _ready_ms(view))
    if found is None:
        if _overruns_at_once(query, current):
            numbers = {"batch_ms": query.samples[-1].duration_ms, "interval_ms": query.facts.trigger_ms}
            return QueryWish(slots=2 * current, reason="autoscale_first_batch", numbers=numbers)
        # What is not known is not zero: what it has, it keeps.
        return QueryWish(slots=current, reason="autoscale_measuring", numbers={"batches": len(query.samples)})
    return _Weighing(query, view, current, found.numbers(current)).decide(found)


def _ready_ms(view: ClusterView) -> float:
    """Tell how long an executor takes from its request until it is there, by the last ones."""
    return float(median(view.startups_ms)) if view.startups_ms else _READY_MS


def _overruns_at_once(query: QueryFigures, current: int) -> bool:
    """Say whether the first batch took far more than its interval: the next one has more rows still."""
    interval = query.facts.trigger_ms
    if len(query.samples) != 1 or interval == 0:
        return False
    (first,) = query.samples
    return first.slots >= current and first.duration_ms > _FAR * interval


@frozen
class _Weighing:
    """A decision about one query that has, or was granted, the slots `current`."""

    query: QueryFigures
    view: ClusterView
    current: int
    numbers: Mapping[str, Number]

    def decide(self, found: Figures) -> QueryWish:
        own = self.query.settings
        need = found.needed(own.target_load, steady=found.drain is not None and not self._has_run_with_all)
        limit = _limit(found, need)
        slots = self._filled(found, need.whole if limit is None else min(need.whole, limit.slots), limit)
        # What has piled up is gone one day: what is remembered for the window is needed for what comes in.
        steady = min(slots, self._filled(found, found.needed(own.target_load, steady=True).whole, limit))
        reason, numbers = "autoscale_keeps", dict[str, Number]()
        if limit is not None and (limit.slots <= need.whole or slots <= limit.slots < self.current):
            reason, numbers = limit.reason, {**limit.numbers}
        if slots > self.current:
            if found.needed(own.target_load + own.load_band).slots <= self.current:
                return self._wish(self.current, "autoscale_keeps", {}, unsmoothed=steady)
            if reason == "autoscale_keeps":
                reason = "autoscale_up" if found.drain is None else "autoscale_up_backlog"
            return self._wish(slots, reason, numbers, unsmoothed=steady)
        if found.falls_behind and limit is None and self._has_run_with_all:
            more = max(self.current + 1, math.ceil(self.current * _STEP_BEHIND))
            return self._wish(more, "autoscale_falls_behind", {})
        if slots == self.current:
            return self._wish(slots, reason, numbers, unsmoothed=steady)
        if limit is not None and limit.slots < self.current and limit.slots < need.whole:
            # What does not help is given back at once, not when a window is over.
            return self._wish(slots, reason, numbers)
        if found.drain is not None and reason == "autoscale_keeps":
            return self._wish(self.current, "autoscale_draining", {}, unsmoothed=steady)
        if found.needed(max(0.01, own.target_load - own.load_band)).slots >= self.current:
            return self._wish(self.current, reason, numbers, unsmoothed=slots)
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
        if slots >= self.current:
            return self._wish(self.current, reason, numbers)
        if not self.query.idle and not self._is_settled:
            return self._wish(self.current, "autoscale_settling", {}, unsmoothed=slots)
        target = most_wanted(self.query.wanted, slots, self.view.at, own.scale_down_window_ms, self.current)
        if target.slots >= self.current:
            told = {**numbers, "fewer": slots, "window_ms": own.scale_down_window_ms}
            return self._wish(self.current, waits, told, unsmoothed=slots, until=target.until)
        # What is not read at all needs no proof that fewer slots do.
        part = 1.0 if self.query.idle else own.most_down
        step = one_step(self.current, target.slots, part)
        if not down_pays(self.query, self.current, step):
            return self._wish(self.current, "autoscale_down_dear", {"fewer": slots}, unsmoothed=slots)
        return self._wish(step, reason, numbers, unsmoothed=slots, until=target.until)

    @property
    def _is_settled(self) -> bool:
        """Whether the last batches have run with the slots that the query has now, all alike."""
        last = self.query.samples[-_SETTLED:]
        return len(last) == _SETTLED and all(
            sample.steady and sample.slots == self.query.slots and sample.started >= self.query.granted_at
            for sample in last
        )

    @property
    def _has_run_with_all(self) -> bool:
        """Whether the slots that it was granted are there, and have been measured."""
        return self._is_settled and self.query.slots >= self.current

    def _filled(self, found: Figures, slots: int, limit: Bottleneck | None) -> int:
        """Fill the last executor, where there is no other query that could use its slots.

        One executor less will do where that brings the load into the upper half of the band at most: what a
        measurement is off by is to cost no executor.
        """
        each = self.view.usual_slots
        if len(self.view.queries) > 1 or limit is not None or each == 1:
            return slots
        own, filled = self.query.settings, -(-slots // each) * each
        less = filled - each
        if less > 0 and found.needed(own.target_load + own.load_band / 2).slots <= less:
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
        told = {**self.numbers, **numbers}
        return QueryWish(slots=slots, reason=reason, numbers=told, unsmoothed=unsmoothed, until=until)


def _limit(found: Figures, need: Needed) -> Bottleneck | None:
    """Find what keeps more slots from helping, the tightest if there is more than one."""
    limits = [bottleneck(found.query)]
    if not need.admits:
        limits.append(Bottleneck(slots=need.whole, reason="autoscale_admission"))
    elif need.fixed:
        limits.append(Bottleneck(slots=need.whole, reason="autoscale_fixed_part"))
    if found.hot is not None:
        limits.append(Bottleneck(slots=need.whole, reason="autoscale_hot_partition"))
    known = [limit for limit in limits if limit is not None]
    return min(known, key=lambda limit: limit.slots) if known else None
