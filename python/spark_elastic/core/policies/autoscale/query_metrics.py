"""The basis of a decision about a query, computed once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import islice
from statistics import median

from attrs import evolve, field, frozen

from spark_elastic.core.events import QueryFacts
from spark_elastic.core.policies.autoscale.measured import (
    LEAST_SAMPLES,
    Basis,
    Batches,
    Bottleneck,
    Measured,
    bottleneck,
    foreseen,
    is_far,
    measured,
)
from spark_elastic.core.policies.autoscale.model import (
    BatchTime,
    Inflow,
    Needed,
    backlog,
    fit,
    growth,
    load_with,
    needed,
)
from spark_elastic.core.policies.policy import Outlook
from spark_elastic.core.policies.view import QueryMetrics, Sample, kept_busy, slots_that_keep_busy
from spark_elastic.core.rescale.situation import HORIZON_MS, RESCALE_COST_MS
from spark_elastic.core.settings import CoreSettings

# ---- The most rows that one micro-batch should read, so that a backlog is not read all at once. A
# micro-batch is never interrupted. One that reads everything an outage has left keeps its query from the next
# boundary, where more slots could be used. Several that last about one interval each process the same rows at
# little extra cost.


_LEAST_CONFIDENCE = 0.5
"""Below it, the line may be far from the duration of batches, and so may a limit."""
_FIXED_PARTS = 4
"""A batch lasts at least this multiple of its fixed part: a limit costs at most a fourth of the throughput.

The fixed part is not known well after a jump of the load, and a batch that is too long is worse: with ten,
the square loads of the simulator miss their objective for two to four times as long.
"""
_ROOM = 1.1
"""If a limit of that size lets a backlog grow, batches last this multiple of the time that just keeps up."""
_LONGEST = 10
"""Batches last at most this multiple of the shortest time: with less to spare, only more slots keep up."""


def most_rows(model: BatchTime, inflow: Inflow, interval_ms: int, busy: float) -> int | None:
    """Return the most rows that one micro-batch should read with `busy` slots (above 0), None for no limit.

    There is no limit without a trigger interval (`interval_ms` is 0), which defines what is long, and until
    the duration of batches is known well enough.
    """
    if interval_ms <= 0 or model.row_ms <= 0 or model.confidence < _LEAST_CONFIDENCE:
        return None
    shortest = max(float(interval_ms), _FIXED_PARTS * model.fixed_ms)
    lasts = shortest
    spare = 1 - inflow.rows_per_ms * model.row_ms / busy
    if inflow.grows and spare > 0 and spare * _LONGEST * shortest >= _ROOM * model.fixed_ms:
        lasts = max(shortest, _ROOM * model.fixed_ms / spare)
    return max(1, round((lasts - model.fixed_ms) / model.row_ms * busy))


# ---- Whether a step is worth its cost. A change of the slots of a stateful query moves its state: the query
# stands still for as long as that takes, and has to catch up afterwards. The step saves the slots that are
# given back, for as long as they stay so. A step in place costs nothing.


def pause_ms(facts: QueryFacts, pauses_ms: Sequence[int], *, movable: bool) -> float:
    """Return how long a query stands still when its slots change, based on its last rescales."""
    if not facts.stateful or not movable:
        return 0.0
    return float(median(pauses_ms)) if pauses_ms else float(RESCALE_COST_MS)


def down_pays(query: QueryMetrics, current: int, slots: int) -> bool:
    """Return whether a step down frees more slot time within the horizon than its pause costs.

    The state may have to be moved back, so the step has to pay for both moves.
    """
    pause = pause_ms(query.facts, query.pauses_ms, movable=query.movable)
    return (current - slots) * HORIZON_MS > 2 * pause * current


_ALWAYS_AT_WORK = 0.9
_PATIENCE = 1.5
"""A backlog may take this multiple of its time before more slots are wanted than were granted."""
_OVERRUNS = 2
_RECENT = 3
_MOST_FIXED = 0.1
"""The largest part of a batch that counts as fixed when the question is whether fewer executors do."""


@frozen
class EvaluatedMetrics:
    """What follows for one running query from its `basis`; `known` is what its micro-batches show.

    `need` is what the query needs for its objective, `limit` what keeps more than its current slots from
    helping, None if nothing does. `of_all_slots` is the number of slots that all queries together must keep
    for this one to be in time, 0 if unknown. `outlook` is what is reported about it.
    """

    basis: Basis
    known: Measured
    need: Needed = field(init=False)
    limit: Bottleneck | None = field(init=False)
    of_all_slots: float = field(init=False)
    outlook: Outlook = field(init=False)

    @property
    def falls_behind(self) -> bool:
        """Whether the query is always busy, and its batches overrun or each leave more rows behind."""
        samples, interval = self.basis.batches.samples, self.known.objective.interval_ms
        busy = samples[-1].busy if samples else None
        if busy is None or busy < _ALWAYS_AT_WORK:
            return False
        overruns = interval > 0 and all(sample.duration_ms > interval for sample in samples[-_OVERRUNS:])
        piles_up = self.known.backlog is not None and self.known.hot is None
        return overruns or (piles_up and self.known.inflow.grows)

    @need.default
    def _need(self) -> Needed:
        return self.needed(self.known.objective.load)

    def needed(self, load: float, *, rows_per_ms: float | None = None) -> Needed:
        """Compute the slots for `rows_per_ms`, if None for the rate when more slots could be there."""
        limit = self.known.inflow.batch_rows if self.known.inflow.limited else None
        rate = rows_per_ms
        if rate is None:
            rate = self.known.inflow.rows_per_ms_in(self.basis.ready_ms + self.known.objective.interval_ms)
        found = needed(self.known.model, self.known.objective, rate, load=min(1.0, load), batch_rows=limit)
        return Needed(slots=self._slots(found.slots), fixed=found.fixed, admits=found.admits)

    def _slots(self, busy: float) -> float:
        """Compute the slots needed to keep `busy` of them busy; partitions that stay leave some idle."""
        basis = self.basis
        stay = _partitions_stay(basis.batches.settings)
        return slots_that_keep_busy(basis.partitions or 0, busy) if stay else busy

    def _busy(self, slots: int) -> float:
        """Return how many of the slots will be busy."""
        return _busy(self.basis.batches.settings, self.basis.partitions, slots)

    @limit.default
    def _limit(self) -> Bottleneck | None:
        """Find what limits the slots that help, the tightest if there is more than one."""
        need, hot = self.need, self.known.hot
        limits = [bottleneck(self.basis)]
        if not need.admits:
            limits.append(Bottleneck(slots=need.whole, reason="autoscale_admission"))
        elif need.fixed:
            limits.append(Bottleneck(slots=need.whole, reason="autoscale_fixed_part"))
        if hot is not None:
            limits.append(Bottleneck(slots=need.whole, reason="autoscale_hot_partition", numbers=hot.numbers))
        known = [limit for limit in limits if limit is not None]
        return min(known, key=lambda limit: limit.slots) if known else None

    @of_all_slots.default
    def _of_all_slots(self) -> float:
        """Compute the slots of all queries together.

        The query's batches ran alongside those of others; with fewer slots for all, the part that grows with
        rows takes longer in proportion, or by another wave of its partitions.
        """
        recent = [sample for sample in self.basis.batches.samples[-_RECENT:] if sample.total]
        if len(recent) < _RECENT:
            return 0.0
        fixed = self._fixed_ms(recent)
        interval = self.known.objective.interval_ms
        room = self.known.objective.room_ms(self.known.objective.load) - fixed
        if interval <= 0 or room <= 0:
            return 0.0
        part = self.known.inflow.rows_per_ms * interval / room
        grows = [max(0.0, one.duration_ms - fixed) / max(1.0, one.rows_per_batch) for one in recent]
        all_slots = median(ms * one.total for ms, one in zip(grows, recent, strict=True))
        busy = median(ms * self._busy(one.total) for ms, one in zip(grows, recent, strict=True))
        return max(part * all_slots, self._slots(part * busy))

    def _crowded(self, beside: float) -> BatchTime:
        """Return the line if other queries need all of their slots, as they may while a backlog is processed.

        A batch runs on all slots that others leave to it, whatever its query was granted.
        """
        known = (*self.basis.batches.earlier, *self.basis.batches.samples)
        newest = (one for one in reversed(known) if one.steady and one.total and one.input_rows > 0)
        recent = list(islice(newest, _RECENT))[::-1]
        if not recent:
            return self.known.model
        fixed = self._fixed_ms(recent)
        work = sum(
            max(0.0, one.duration_ms - fixed) * self._busy(max(1, round(one.total / (1 + beside))))
            for one in recent
        )
        row_ms = work / sum(one.rows_per_batch for one in recent)
        return evolve(self.known.model, fixed_ms=fixed, row_ms=max(self.known.model.row_ms, row_ms))

    def _fixed_ms(self, recent: Sequence[Sample]) -> float:
        """Return the fixed part of batches: alongside other queries, the line overestimates it."""
        return min(self.known.model.fixed_ms, _MOST_FIXED * median(one.duration_ms for one in recent))

    def to_drain(self, slots: int, beside: float) -> int:
        """Compute the slots that process the backlog in time, 0 without one, or if more would not help.

        The query can use `slots` now, and `beside` is how many other queries run a micro-batch at the same
        time, on average. What counts is the backlog when more than the current slots could be there: until
        then it grows, if the slots that are there fall behind. If the current slots will do once all of them
        are there, they are enough.
        """
        known, current = self.known, self.basis.current
        if known.hot is not None or not (known.waiting or known.foreseen):
            return 0
        inflow, objective, piled_up = known.inflow, known.objective, known.backlog
        line = self._crowded(beside)
        if line.samples >= LEAST_SAMPLES or is_far(known.latest.duration_ms, objective.interval_ms):
            there = self._busy(max(1, min(current, slots)))
            grows = growth(line, inflow, objective, slots=there, ready_ms=self.basis.ready_ms)
            within = self.basis.batches.settings.catch_up_ms
            piled_up = backlog(known.waiting, inflow, objective, within, grows=grows)
        if piled_up is None:
            return 0
        gone = piled_up.gone_in_ms(known.model, inflow, objective, self._busy(current))
        if gone is not None and gone <= _PATIENCE * piled_up.within_ms:
            return current
        return max(1, math.ceil(self._slots(piled_up.slots(line, inflow, objective)) - 1e-6))

    @outlook.default
    def _outlook(self) -> Outlook:
        known, basis = self.known, self.basis
        busy, model, piled_up = self._busy(max(1, basis.current)), known.model, known.backlog
        rows_per_ms = known.inflow.rows_per_ms
        gone = None if piled_up is None else piled_up.gone_in_ms(model, known.inflow, known.objective, busy)
        return Outlook(
            rows_per_second=rows_per_ms * 1_000,
            batch_ms=known.latest.duration_ms,
            fixed_ms=model.fixed_ms,
            row_us=model.row_ms * 1_000,
            confidence=model.confidence,
            load=load_with(model, known.objective, rows_per_ms, busy),
            target_load=known.objective.load,
            pause_ms=pause_ms(basis.batches.facts, basis.pauses_ms, movable=basis.movable),
            behind=known.inflow.behind,
            backlog=None if piled_up is None else piled_up.rows,
            within_ms=None if piled_up is None else piled_up.within_ms,
            gone_in_ms=gone,
        )


@frozen
class Findings:
    """What was found out about a query, to be kept until the next decision.

    `running` is its running micro-batch as it will be committed, None if that does not count. `known` is what
    its micro-batches show, and `evaluated` what follows from it, None until they have shown a rate.
    """

    basis: Basis
    running: Sample | None
    known: Measured | None
    evaluated: EvaluatedMetrics | None

    @classmethod
    def of(
        cls, query: QueryMetrics, current: int, ready_ms: float, at: int, before: Findings | None = None
    ) -> Findings:
        """Evaluate a query `at` a time (epoch ms), with what still holds of the findings `before`.

        `current` is the number of slots that it has, or was granted. An executor is ready `ready_ms` after
        its request.
        """
        batches = Batches.of(query, None if before is None else before.basis.batches)
        basis = Basis.of(query, batches, current, ready_ms)
        running = foreseen(query, batches, at)
        if before is None or before.basis.batches is not batches or before.running != running:
            known = measured(batches, running)
        elif before.basis == basis:
            return before
        else:
            known = before.known
        return cls(basis, running, known, None if known is None else EvaluatedMetrics(basis, known))


def read_at_most(query: QueryMetrics, found: EvaluatedMetrics | None) -> int | None:
    """Return the most rows that a micro-batch should read with the current slots, None for no limit.

    Without `found`, after a rest and in the first batches of a run, earlier batches decide.
    """
    if not query.settings.backpressure or not any(source.limitable for source in query.facts.sources):
        return None  # avoid fitting a line at each decision for a limit that cannot be set
    model = fit(query.earlier) if found is None else found.known.model
    if model is None:
        return None
    comes_in = Inflow(rows_per_ms=0) if found is None else found.known.inflow
    busy = _busy(query.settings, query.partitions, max(1, query.slots))
    return most_rows(model, comes_in, query.facts.trigger_ms, busy)


def _partitions_stay(settings: CoreSettings) -> bool:
    """Return whether the partitions of a query do not follow each change of its slots."""
    return settings.rescale_policy != "always"


def _busy(settings: CoreSettings, partitions: int | None, slots: int) -> float:
    """Return how many of the slots the partitions of a query keep busy."""
    return kept_busy(partitions, slots) if partitions and _partitions_stay(settings) else float(slots)
