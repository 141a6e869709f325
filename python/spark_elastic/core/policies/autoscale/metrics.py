"""What a decision about a query rests on, put together once."""

from __future__ import annotations

import math
from statistics import median

from attrs import frozen

from spark_elastic.core.policies.autoscale.measured import Measured, measured
from spark_elastic.core.policies.autoscale.model import (
    Backlog,
    BatchTime,
    Inflow,
    Needed,
    fit,
    load_with,
    needed,
)
from spark_elastic.core.policies.policy import Outlook
from spark_elastic.core.policies.view import QueryMetrics, kept_busy, slots_that_keep_busy
from spark_elastic.core.rescale.situation import HORIZON_MS, RESCALE_COST_MS

# How many rows one micro-batch should read at most, so that a backlog is not read all at once.
# A micro-batch is never interrupted: one that reads all that an outage has left keeps its query from the next
# boundary, where it could use more slots, for as long as it takes. Several that last about as long as their
# interval process the same rows, and cost little more.


_LEAST_CONFIDENCE = 0.5
"""Below it the line may be far from what batches take, and a limit with it."""
_FIXED_PARTS = 4
"""A batch lasts so many times its fixed part at least, so a limit costs a fourth of the throughput at most.

The fixed part is not known well after a leap of the load, and a batch that is too long is worse: the square
loads of the simulator are outside of their objective for two to four times as long with ten.
"""
_ROOM = 1.1
"""Where a limit of that size lets a backlog grow, batches last so many times as long as just keeps up."""
_LONGEST = 10
"""So many times as long they last at most: with less to spare, only more slots keep up."""


def most_rows(model: BatchTime, inflow: Inflow, interval_ms: int, busy: float) -> int | None:
    """Return the most rows that one micro-batch should read with so many `busy` slots (above 0).

    None: as many as there are. That is so without a trigger interval (`interval_ms` is 0), by which to tell
    what is long, and as long as it is not known well enough what batches take.
    """
    if interval_ms <= 0 or model.row_ms <= 0 or model.confidence < _LEAST_CONFIDENCE:
        return None
    shortest = max(float(interval_ms), _FIXED_PARTS * model.fixed_ms)
    lasts = shortest
    spare = 1 - inflow.rows_per_ms * model.row_ms / busy
    if inflow.grows and spare > 0 and spare * _LONGEST * shortest >= _ROOM * model.fixed_ms:
        lasts = max(shortest, _ROOM * model.fixed_ms / spare)
    return max(1, round((lasts - model.fixed_ms) / model.row_ms * busy))


# Whether a step is worth what it costs.
# A change of the slots of a stateful query moves its state: the query stands still for as long as that takes,
# and has its rows to make up for. What it saves are the slots that are given back, for as long as they stay
# so. A step in place costs nothing.


def pause_ms(query: QueryMetrics) -> float:
    """Tell how long a query stands still when its slots change, by its last rescales."""
    if not query.facts.stateful or not query.movable:
        return 0.0
    return float(median(query.pauses_ms)) if query.pauses_ms else float(RESCALE_COST_MS)


def down_pays(query: QueryMetrics, current: int, slots: int) -> bool:
    """Say whether the slots that a way down frees within the horizon are more than its pause takes.

    The state may have to be moved back, so it has to pay for both ways.
    """
    return (current - slots) * HORIZON_MS > 2 * pause_ms(query) * current


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
