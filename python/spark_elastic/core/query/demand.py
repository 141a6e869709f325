"""The load of a query, and the number of slots that would bring it to a target.

Load is the share of the time available for a micro-batch that the micro-batch takes. With a trigger interval
this time is the interval. A query that overruns it reads more with each batch. From there on, the ratio of
input rate to processing rate says whether it keeps up (1) or falls behind (above 1).

A query without an interval is never without a batch as long as rows arrive, however few: its batches grow
until they barely keep up. The part that grows with the rows shows how near the query is to its limit, so the
fixed part of a batch is left out there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import median_high

from attrs import frozen

from spark_elastic.core.events import QueryFacts
from spark_elastic.core.load.pace import Batch, Pace
from spark_elastic.core.load.reading import Reading
from spark_elastic.core.rescale.gain import BASE_MS, BatchModel, waves

_MOST_FIXED = 0.5
"""Largest share of a batch that counts as its fixed part, so that a guess of it never explains everything."""

_LEAST_ROOM = 0.25
"""Minimum room for the work of a batch where its fixed part leaves none, as a share of the fixed part.

More slots do not shorten the fixed part; beyond this they gain next to nothing.
"""


@frozen(kw_only=True)
class Workload:
    """The inputs for the load of one query.

    `model` gives the fixed part of its batches. `needed` is the number of slots without which it does not
    run, `most` the number beyond which it may use no more. A `held` query waits to be started. `reading` is
    how its sources are read if it has no shuffle, so that their tasks are its only ones; None if it may have
    a shuffle.
    """

    facts: QueryFacts
    pace: Pace
    model: BatchModel
    needed: int
    most: int
    held: bool = False
    reading: Reading | None = None

    def tasks(self, batch: Batch) -> int:
        """Return the number of tasks that the work of a micro-batch was divided into, at least 1."""
        by_sources = None if self.reading is None else batch.source_tasks
        return max(1, batch.partitions if by_sources is None else by_sources)

    @property
    def useful(self) -> int:
        """The most slots that it can use: `most`, or the tasks of sources that cannot have more."""
        latest = self.pace.latest
        if self.reading is None or latest is None or not self.reading.is_fixed(latest.whole):
            return self.most
        return min(self.most, max(map(self.tasks, self.pace.batches)))


def load(query: Workload) -> float | None:
    """Compute the load by the last micro-batch, 0 for an idle query, None where it is unknown.

    It is unknown for a query whose trigger has no repeated batches, before the first batch, and after a first
    batch that takes longer than the interval: how long its rows have been waiting is not known.
    """
    if not _repeats(query.facts):
        return None
    if query.pace.idle:
        return 0.0
    batch, interval = query.pace.latest, query.facts.trigger_ms
    if batch is None:
        return None
    if 0 < batch.duration_ms <= interval:
        return batch.duration_ms / interval
    if batch.busy is None or batch.slots < 1:
        return None
    if interval > 0:
        return max(1.0, batch.busy)
    return batch.busy * (1 - _fixed_ms(batch, query.model, _rounds(query, batch)) / max(1, batch.duration_ms))


def busy(query: Workload) -> float | None:
    """Compute the share of the slots' time that the query's micro-batches take, None where it is unknown.

    A batch uses one slot per task, up to all slots; tasks are assumed to be alike.
    """
    if query.pace.idle or query.held:
        return 0.0
    batch = query.pace.latest
    if batch is None or batch.slots < 1:
        return None
    share = batch.busy
    if share is None and query.facts.trigger_ms >= max(1, batch.duration_ms):
        share = batch.duration_ms / query.facts.trigger_ms
    return None if share is None else min(1.0, share) * min(query.tasks(batch), batch.slots) / batch.slots


def desired_slots(query: Workload, target: float) -> int | None:
    """Compute the slots with which the load would be at most `target`, within the query's bounds.

    A query that is held, or idle, needs its lower bound. The result is None where it is unknown, as for the
    load. It is the median over the last micro-batches, so that a single slow one does not trigger scaling.
    """
    if not _repeats(query.facts):
        return None
    if query.held or query.pace.idle:
        return query.needed
    wanted = [slots for batch in query.pace.batches if (slots := _slots(query, batch, target)) is not None]
    return max(query.needed, min(query.useful, median_high(wanted))) if wanted else None


def together(parts: Iterable[float | None]) -> float | None:
    """Add up the values of all queries; None if there are no queries, or one value is unknown."""
    known = list(parts)
    if not known or None in known:
        return None
    return sum(part for part in known if part is not None)


def executors_for(slots: int, usable: Iterable[int], usual: int) -> int:
    """Return the number of executors that together have this many slots.

    Each counts with the slots of the largest of `usable` (the present executors), or with `usual` if there
    are none.
    """
    return -(-slots // max(usable, default=usual))


def _repeats(facts: QueryFacts) -> bool:
    return facts.trigger == "processing_time"


def _rounds(query: Workload, batch: Batch) -> int:
    return waves(query.tasks(batch), batch.slots)


def _fixed_ms(batch: Batch, model: BatchModel, rounds: int) -> float:
    """Return the part of a batch that does not grow with its rows, for this many waves of tasks.

    The base of the model is everything but the stages that read a shuffle. It includes the stages that read
    the sources, which do grow, so no more of it than usual counts as fixed.
    """
    return min(_MOST_FIXED * batch.duration_ms, min(BASE_MS, model.base_ms) + rounds * model.overhead_ms)


def _slots(query: Workload, batch: Batch, target: float) -> int | None:
    interval, rounds = query.facts.trigger_ms, 0 if batch.slots < 1 else _rounds(query, batch)
    if rounds == 0 or (batch.gap_ms is None and batch.duration_ms > interval):
        return None
    # The cost of the batch's rows on one slot: the last wave may leave slots empty.
    cost_ms = (batch.duration_ms - _fixed_ms(batch, query.model, rounds)) * query.tasks(batch) / rounds
    if interval == 0:
        assert batch.gap_ms is not None
        return _whole(cost_ms * batch.batches / (batch.gap_ms * target))
    if batch.gap_ms is not None and batch.duration_ms > interval:
        # The batch has the rows of more than one interval.
        cost_ms *= min(1.0, interval * batch.batches / batch.gap_ms)
    fixed_ms = _fixed_ms(batch, query.model, 1)
    return _whole(cost_ms / max(target * interval - fixed_ms, fixed_ms * _LEAST_ROOM, 1.0))


def _whole(slots: float) -> int:
    # Do not let a rounding error add a slot to a whole number.
    return max(1, math.ceil(slots - 1e-9))
