"""What a decision about a query rests on, put together once."""

from __future__ import annotations

import math
from statistics import median

from attrs import frozen

from spark_elastic.core.policies.autoscale.backlog import Backlog
from spark_elastic.core.policies.autoscale.backpressure import most_rows
from spark_elastic.core.policies.autoscale.measured import Measured, measured
from spark_elastic.core.policies.autoscale.model import fit
from spark_elastic.core.policies.autoscale.objective import Needed, load_with, needed
from spark_elastic.core.policies.autoscale.price import pause_ms
from spark_elastic.core.policies.autoscale.rate import Inflow
from spark_elastic.core.policies.outlook import Outlook
from spark_elastic.core.policies.view import QueryMetrics
from spark_elastic.core.policies.waves import kept_busy, slots_that_keep_busy

_ALWAYS_AT_WORK = 0.9
_PATIENCE = 1.5
"""So many times the time for it a backlog may take before more slots are wanted than were granted."""
_OVERRUNS = 2
_RECENT = 3
_MOST_FIXED = 0.1
"""The most of a batch that is taken for its fixed part where fewer executors are in question."""


@frozen
class EvaluatedMetrics:
    """What was found out about one `query` that runs, of which its micro-batches have told what is `known`.

    An executor is there `ready_ms` after its request.
    """

    query: QueryMetrics
    known: Measured
    ready_ms: float

    @classmethod
    def of(cls, query: QueryMetrics, ready_ms: float) -> EvaluatedMetrics | None:
        """Find out about a query, None while that is not known: before its batches have told a rate.

        An executor is ready `ready_ms` after it was requested.
        """
        known = measured(query)
        return None if known is None else cls(query, known, ready_ms)

    @property
    def drain(self) -> Backlog | None:
        """What has piled up and more slots would help with."""
        return self.known.backlog if self.known.hot is None else None

    @property
    def falls_behind(self) -> bool:
        """Whether it is at work all the time, and more is behind with each batch or waits for the next."""
        busy, interval = self.query.samples[-1].busy, self.query.facts.trigger_ms
        if busy is None or busy < _ALWAYS_AT_WORK:
            return False
        last = self.query.samples[-_OVERRUNS:]
        overruns = interval > 0 and all(sample.duration_ms > interval for sample in last)
        return overruns or (self.drain is not None and self.known.inflow.grows)

    def needed(self, load: float, *, rows_per_ms: float | None = None) -> Needed:
        """Count the slots that it needs for what comes in by the time that more could be there, or a rate."""
        limit = self.known.inflow.batch_rows if self.known.inflow.limited else None
        rate = rows_per_ms
        if rate is None:
            rate = self.known.inflow.rows_per_ms_in(self.ready_ms + self.known.objective.interval_ms)
        found = needed(self.known.model, self.known.objective, rate, load=min(1.0, load), batch_rows=limit)
        return Needed(slots=self._slots(found.slots), fixed=found.fixed, admits=found.admits)

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
        fixed = min(self.known.model.fixed_ms, _MOST_FIXED * median(one.duration_ms for one in recent))
        interval = self.known.objective.interval_ms
        room = self.known.objective.room_ms(self.known.objective.load) - fixed
        if interval <= 0 or room <= 0:
            return 0.0
        rows = self.known.inflow.rows_per_ms * interval
        grows = median(max(0.0, one.duration_ms - fixed) / max(1.0, one.rows_per_batch) for one in recent)
        return total * grows * rows / room

    def to_drain(self, current: int) -> int:
        """Count the slots with which what has piled up is gone in time, 0 where nothing has.

        Where it will be gone in time with the `current` ones, as soon as they are all there, these do.
        """
        piled_up = self.drain
        if piled_up is None:
            return 0
        gone = piled_up.gone_in_ms(
            self.known.model, self.known.inflow, self.known.objective, self._busy(current)
        )
        if gone is not None and gone <= _PATIENCE * piled_up.within_ms + self.ready_ms:
            return current
        there = max(1, min(current, self.query.slots))
        slots = piled_up.slots(
            self.known.model,
            self.known.inflow,
            self.known.objective,
            current=self._busy(there),
            ready_ms=self.ready_ms,
        )
        return max(1, math.ceil(self._slots(slots) - 1e-6))

    def outlook(self, current: int) -> Outlook:
        """Return what a decision rests on; `current` are the slots that the query has."""
        busy, model, piled_up = self._busy(max(1, current)), self.known.model, self.known.backlog
        rows_per_ms = self.known.inflow.rows_per_ms
        gone = (
            None
            if piled_up is None
            else piled_up.gone_in_ms(model, self.known.inflow, self.known.objective, busy)
        )
        return Outlook(
            rows_per_second=rows_per_ms * 1_000,
            batch_ms=self.query.samples[-1].duration_ms,
            fixed_ms=model.fixed_ms,
            row_us=model.row_ms * 1_000,
            confidence=model.confidence,
            load=load_with(model, self.known.objective, rows_per_ms, busy),
            target_load=self.known.objective.load,
            pause_ms=pause_ms(self.query),
            behind=self.known.inflow.behind,
            backlog=None if piled_up is None else piled_up.rows,
            within_ms=None if piled_up is None else piled_up.within_ms,
            gone_in_ms=gone,
        )


def read_at_most(query: QueryMetrics, found: EvaluatedMetrics | None) -> int | None:
    """Return the most rows that a micro-batch should read with the slots of now, None: all that there are.

    What `found` does not say, after a rest and in the first batches of a run, follows from earlier batches.
    """
    if not query.settings.backpressure or not any(source.limitable for source in query.facts.sources):
        return None  # no line is laid through batches, at each decision, for a limit that nobody can have
    model = fit(query.earlier) if found is None else found.known.model
    if model is None:
        return None
    comes_in = Inflow(rows_per_ms=0) if found is None else found.known.inflow
    return most_rows(model, comes_in, query.facts.trigger_ms, _busy(query, max(1, query.slots)))


def _partitions_stay(query: QueryMetrics) -> bool:
    """Say whether the partitions of a query do not follow each change of its slots."""
    return query.settings.rescale_policy != "always"


def _busy(query: QueryMetrics, slots: int) -> float:
    """Count how many of so many slots the partitions of a query keep busy."""
    stay = _partitions_stay(query)
    return kept_busy(query.partitions, slots) if stay and query.partitions else float(slots)
