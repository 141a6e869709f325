"""What a decision about a query rests on, put together once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from statistics import median

from attrs import evolve, frozen

from spark_elastic.core.policies.autoscale.backlog import Backlog, backlog
from spark_elastic.core.policies.autoscale.bottleneck import hot_share
from spark_elastic.core.policies.autoscale.measured import measured
from spark_elastic.core.policies.autoscale.model import BatchTime
from spark_elastic.core.policies.autoscale.objective import Needed, Objective, load_with, needed
from spark_elastic.core.policies.autoscale.price import pause_ms
from spark_elastic.core.policies.autoscale.rate import Inflow
from spark_elastic.core.policies.autoscale.tried import most_that_fell_short
from spark_elastic.core.policies.view import QueryFigures, Sample
from spark_elastic.core.policies.waves import kept_busy, slots_that_keep_busy
from spark_elastic.core.turn import Number

_NOTHING = BatchTime(fixed_ms=0.0, row_ms=0.0, samples=0, error=0.0, separates=False)
_ALWAYS_AT_WORK = 0.9
_PATIENCE = 1.5
"""So many times the time for it a backlog may take before more slots are wanted than were granted."""
_OVERRUNS = 2
_RECENT = 3
_MOST_FIXED = 0.1
"""The most of a batch that is taken for its fixed part where fewer executors are in question."""


@frozen(kw_only=True)
class Figures:
    """What was found out about one query that runs.

    `hot` is the share of the rows behind that are in one partition, None if that is no more than in others.
    An executor is there `ready_ms` after its request. `tried` are the times of batches (ms) by slots.
    """

    query: QueryFigures
    latest: Sample
    model: BatchTime
    inflow: Inflow
    objective: Objective
    backlog: Backlog | None
    hot: float | None
    ready_ms: float
    tried: Mapping[int, float]

    @classmethod
    def of(cls, query: QueryFigures, ready_ms: float) -> Figures | None:
        """Find out about a query, None while that is not known: before its batches have told a rate.

        An executor is ready `ready_ms` after it was requested.
        """
        known = measured(query)
        comes_in, model = known.inflow, known.model
        latest = query.latest
        if latest is None or comes_in is None or (model is None and comes_in.rows_per_ms > 0):
            return None
        own, interval = query.settings, query.facts.trigger_ms
        load = comes_in.variation.load if own.target_load is None else own.target_load
        objective = Objective(interval_ms=interval, load=load, max_lag_ms=own.max_lag_ms)
        piled_up = backlog(comes_in, latest, objective, own.catch_up_ms)
        return cls(
            query=query,
            latest=latest,
            model=model or _NOTHING,
            inflow=comes_in,
            objective=objective,
            backlog=piled_up,
            hot=None if piled_up is None else hot_share(latest),
            ready_ms=ready_ms,
            tried=known.tried,
        )

    @property
    def drain(self) -> Backlog | None:
        """What has piled up and more slots would help with."""
        return self.backlog if self.hot is None else None

    @property
    def falls_behind(self) -> bool:
        """Whether it is at work all the time, and more is behind with each batch or waits for the next."""
        busy, interval = self.latest.busy, self.query.facts.trigger_ms
        if busy is None or busy < _ALWAYS_AT_WORK:
            return False
        last = self.query.samples[-_OVERRUNS:]
        overruns = interval > 0 and all(sample.duration_ms > interval for sample in last)
        return overruns or (self.drain is not None and self.inflow.grows)

    def needed(self, load: float, *, rows_per_ms: float | None = None) -> Needed:
        """Count the slots that it needs for what comes in by the time that more could be there, or a rate."""
        limit = self.inflow.batch_rows if self.inflow.limited else None
        rate = rows_per_ms
        if rate is None:
            rate = self.inflow.rows_per_ms_in(self.ready_ms + self.objective.interval_ms)
        found = needed(self.model, self.objective, rate, load=min(1.0, load), batch_rows=limit)
        return evolve(found, slots=self._slots(found.slots))

    def _slots(self, busy: float) -> float:
        """Count the slots of which so many are busy: partitions that stay fill the last ones less."""
        query = self.query
        return slots_that_keep_busy(query.partitions or 0, busy) if _partitions_stay(query) else busy

    def _busy(self, slots: int) -> float:
        """Count how many of so many slots will be busy."""
        return _busy(self.query, slots)

    def of_all_slots(self, total: int) -> float:
        """Count the slots that all queries together must have left for this one to be in time, 0 if unknown.

        `total` are there now. Its batches took so long beside those of the others; with fewer slots for all
        the part that grows with rows takes longer by as much.
        """
        recent = [sample for sample in self.query.samples[-_RECENT:] if sample.total == total]
        if len(recent) < _RECENT:
            return 0.0
        # Beside others a line takes much for fixed that is not.
        fixed = min(self.model.fixed_ms, _MOST_FIXED * median(one.duration_ms for one in recent))
        interval = self.objective.interval_ms
        room = self.objective.room_ms(self.objective.load) - fixed
        if interval <= 0 or room <= 0:
            return 0.0
        rows = self.inflow.rows_per_ms * interval
        grows = median(max(0.0, one.duration_ms - fixed) / max(1.0, one.rows_per_batch) for one in recent)
        return total * grows * rows / room

    @property
    def fell_short(self) -> int:
        """The most slots of which it was measured that they are too few for what comes in, 0 for none."""
        own, interval = self.query.settings, self.objective.interval_ms
        room = min(1.0, self.objective.load + own.load_band / 2) * interval
        return most_that_fell_short(self.tried, room) if interval > 0 else 0

    def to_drain(self, current: int) -> int:
        """Count the slots with which what has piled up is gone in time, 0 where nothing has.

        Where it will be gone in time with the `current` ones, as soon as they are all there, these do.
        """
        piled_up = self.drain
        if piled_up is None:
            return 0
        gone = piled_up.gone_in_ms(self.model, self.inflow, self.objective, self._busy(current))
        if gone is not None and gone <= _PATIENCE * piled_up.within_ms + self.ready_ms:
            return current
        there = max(1, min(current, self.query.slots))
        slots = piled_up.slots(
            self.model, self.inflow, self.objective, current=self._busy(there), ready_ms=self.ready_ms
        )
        return max(1, math.ceil(self._slots(slots) - 1e-6))

    def numbers(self, current: int) -> dict[str, Number]:
        """Return what a decision is told with; `current` are the slots that it has."""
        busy = self._busy(max(1, current))
        load = load_with(self.model, self.objective, self.inflow.rows_per_ms, busy)
        numbers: dict[str, Number] = {
            "rows_per_second": round(self.inflow.rows_per_ms * 1_000, 1),
            "batch_ms": self.latest.duration_ms,
            "fixed_ms": round(self.model.fixed_ms, 1),
            "row_us": round(self.model.row_ms * 1_000, 3),
            "confidence": round(self.model.confidence, 2),
            "load_percent": round(100 * load),
            "target_percent": round(100 * self.objective.load),
            "pause_ms": pause_ms(self.query),
        }
        if self.inflow.behind is not None:
            numbers["behind"] = self.inflow.behind
        if self.backlog is not None:
            numbers |= {"piled_up": round(self.backlog.rows), "within_ms": self.backlog.within_ms}
            gone = self.backlog.gone_in_ms(self.model, self.inflow, self.objective, busy)
            if gone is not None:
                numbers["gone_in_ms"] = round(gone)
        if self.hot is not None:
            numbers["hot_percent"] = round(100 * self.hot)
        return numbers


def _partitions_stay(query: QueryFigures) -> bool:
    """Say whether the partitions of a query do not follow each change of its slots."""
    return query.settings.rescale_policy != "always"


def _busy(query: QueryFigures, slots: int) -> float:
    """Count how many of so many slots the partitions of a query keep busy."""
    stay = _partitions_stay(query)
    return kept_busy(query.partitions, slots) if stay and query.partitions else float(slots)
