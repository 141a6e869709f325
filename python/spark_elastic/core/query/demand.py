"""How loaded a query is, and how many slots it would take to bring that to a target.

Load is the part of the time that a query has for a micro-batch which the micro-batch takes. With a trigger
interval the time is that interval. A query that overruns it reads more with each batch, so from there on the
ratio of input rate to processing rate says whether it keeps up (1) or falls behind (above 1).

A query without an interval is never without a batch as long as rows come in, however few: its batches grow
until they just keep up. What says how near it is to its limit is the part that grows with the rows, so
the fixed part of a batch is left out there.
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
"""The most of a batch that is taken for its fixed part, so that a guess of it never explains all."""

_LEAST_ROOM = 0.25
"""Where the fixed part of a batch leaves no room for its work: the room that is made, as a part of it.

More slots do not shorten the fixed part; beyond this they buy next to nothing.
"""


@frozen(kw_only=True)
class Workload:
    """What the load of one query depends on.

    `model` tells the fixed part of its batches. `needed` are the slots without which it does not run, `most`
    those beyond which it may use no more. One that is `held` waits to be started. `reading` is how its
    sources are read if it has no shuffle, so that their tasks are all that it has; None if it may have one.
    """

    facts: QueryFacts
    pace: Pace
    model: BatchModel
    needed: int
    most: int
    held: bool = False
    reading: Reading | None = None

    def tasks(self, batch: Batch) -> int:
        """Tell into how many tasks the work of a micro-batch was divided, at least 1."""
        by_sources = None if self.reading is None else batch.source_tasks
        return max(1, batch.partitions if by_sources is None else by_sources)

    @property
    def useful(self) -> int:
        """The slots beyond which it can use no more: `most`, or the tasks of sources that can't have more."""
        latest = self.pace.latest
        if self.reading is None or latest is None or not self.reading.is_fixed(latest.whole):
            return self.most
        return min(self.most, max(map(self.tasks, self.pace.batches)))


def load(query: Workload) -> float | None:
    """Compute the load by the last micro-batch, 0 for an idle query; None where it is not known.

    It is not known of a query whose trigger has no batches that repeat, before the first one, and of a first
    one that takes longer than the interval, since nobody knows how long its rows have been waiting.
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
    """Compute the share of the slots' time that the query's micro-batches take, None where it is not known.

    A batch takes as many slots as it has tasks, at most all; these are taken to be alike.
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
    """Count the slots with which the load would be `target` at most, within the query's bounds.

    A query that is held, or idle, needs its lower bound. None where it is not known, as for the load. It
    is the median over the last micro-batches, so one that is slow is no reason to scale.
    """
    if not _repeats(query.facts):
        return None
    if query.held or query.pace.idle:
        return query.needed
    wanted = [slots for batch in query.pace.batches if (slots := _slots(query, batch, target)) is not None]
    return max(query.needed, min(query.useful, median_high(wanted))) if wanted else None


def together(parts: Iterable[float | None]) -> float | None:
    """Add up what all queries have; None if there is none, or one of which it is not known."""
    known = list(parts)
    if not known or None in known:
        return None
    return sum(part for part in known if part is not None)


def executors_for(slots: int, usable: Iterable[int], usual: int) -> int:
    """Count the executors that have so many slots.

    Each has as many as the largest of `usable`, those of the executors that are there, or `usual` where none
    is.
    """
    return -(-slots // max(usable, default=usual))


def _repeats(facts: QueryFacts) -> bool:
    return facts.trigger == "processing_time"


def _rounds(query: Workload, batch: Batch) -> int:
    return waves(query.tasks(batch), batch.slots)


def _fixed_ms(batch: Batch, model: BatchModel, rounds: int) -> float:
    """Tell how much of a batch does not grow with its rows, if its tasks took so many waves.

    What the model takes for its base is all but the stages that read a shuffle. Those that read the sources
    are in it, and these do grow, so no more of it than is usual counts as fixed.
    """
    return min(_MOST_FIXED * batch.duration_ms, min(BASE_MS, model.base_ms) + rounds * model.overhead_ms)


def _slots(query: Workload, batch: Batch, target: float) -> int | None:
    interval, rounds = query.facts.trigger_ms, 0 if batch.slots < 1 else _rounds(query, batch)
    if rounds == 0 or (batch.gap_ms is None and batch.duration_ms > interval):
        return None
    # What the rows of the batch cost one slot: the last wave may leave slots empty.
    cost_ms = (batch.duration_ms - _fixed_ms(batch, query.model, rounds)) * query.tasks(batch) / rounds
    if interval == 0:
        assert batch.gap_ms is not None
        return _whole(cost_ms * batch.batches / (batch.gap_ms * target))
    if batch.gap_ms is not None and batch.duration_ms > interval:
        # It has the rows of more than one interval.
        cost_ms *= min(1.0, interval * batch.batches / batch.gap_ms)
    fixed_ms = _fixed_ms(batch, query.model, 1)
    return _whole(cost_ms / max(target * interval - fixed_ms, fixed_ms * _LEAST_ROOM, 1.0))


def _whole(slots: float) -> int:
    # What is a whole number but for rounding is one.
    return max(1, math.ceil(slots - 1e-9))
