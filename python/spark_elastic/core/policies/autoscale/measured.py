"""What follows from the micro-batches of a query alone: computed once for these, not at each decision.

A decision looks at all queries, and of most of them nothing has been heard since the last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from attrs import frozen

from spark_elastic.core.policies.autoscale.backlog import Backlog, backlog
from spark_elastic.core.policies.autoscale.effect import Worse, made_worse
from spark_elastic.core.policies.autoscale.model import BatchTime, fit
from spark_elastic.core.policies.autoscale.objective import Objective
from spark_elastic.core.policies.autoscale.pressure import Pressure, memory_pressure
from spark_elastic.core.policies.autoscale.rate import Inflow, inflow
from spark_elastic.core.policies.autoscale.skew import Hot, Skew, hot_behind, hot_input, skewed
from spark_elastic.core.policies.autoscale.tried import most_that_fell_short, tried
from spark_elastic.core.policies.view import QueryMetrics, Sample
from spark_elastic.core.settings import CoreSettings

_NOTHING = BatchTime(fixed_ms=0.0, row_ms=0.0, samples=0, error=0.0, separates=False)
"""What batches take of which none has read rows."""
_KEPT = 2_048


@frozen(kw_only=True)
class Measured:
    """How long batches take, what comes in, and what follows from that by the settings of the query.

    `backlog` is what has piled up, None if that is nothing to speak of, `hot` the one partition that has most
    of it, `hot_input` that with most of what comes in, None if that is no more than in others. `worse` is a
    step up that made batches slower, `pressure` a want of memory, `skew` a task that holds up the others,
    None if there is none. `source_tasks` are the most tasks that the sources were read with where more could
    not be had, or where there were more slots than that, None: nowhere.
    `fell_short` are the most slots of which it was measured that they are too few for what comes in, 0 for
    none.
    """

    model: BatchTime
    inflow: Inflow
    objective: Objective
    backlog: Backlog | None
    hot: Hot | None
    hot_input: Hot | None
    worse: Worse | None
    pressure: Pressure | None
    skew: Skew | None
    source_tasks: int | None
    fell_short: int


def measured(query: QueryMetrics) -> Measured | None:
    """Return what the micro-batches of a query tell, None before they have told a rate."""
    return _measured(
        _Known(query.earlier, query.samples, query.settings, query.facts.trigger_ms, query.throttled)
    )


class _Known:
    """What it follows from, the same only as objects: to compare each batch costs more than it saves."""

    __slots__ = ("earlier", "interval_ms", "samples", "settings", "throttled")

    def __init__(
        self,
        earlier: tuple[Sample, ...],
        samples: tuple[Sample, ...],
        settings: CoreSettings,
        interval_ms: int,
        throttled: bool,
    ) -> None:
        self.earlier, self.samples, self.settings = earlier, samples, settings
        self.interval_ms, self.throttled = interval_ms, throttled

    def __hash__(self) -> int:
        return id(self.samples)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Known)
            and self.samples is other.samples
            and self.earlier is other.earlier
            and self.settings is other.settings
            and (self.interval_ms, self.throttled) == (other.interval_ms, other.throttled)
        )


@lru_cache(maxsize=_KEPT)
def _measured(known: _Known) -> Measured | None:
    samples, together = known.samples, (*known.earlier, *known.samples)
    own, interval = known.settings, known.interval_ms
    model, comes_in = fit(together), inflow(samples, interval, throttled=known.throttled)
    if comes_in is None or (model is None and comes_in.rows_per_ms > 0):
        return None
    line = _NOTHING if model is None else model
    load = comes_in.variation.load if own.target_load is None else own.target_load
    objective = Objective(interval_ms=interval, load=load, max_lag_ms=own.max_lag_ms)
    piled_up = backlog(comes_in, samples[-1], objective, own.catch_up_ms)
    took = tried(together, comes_in.rows_per_ms * interval, line.fixed_ms)
    room = min(1.0, load + own.load_band / 2) * interval
    return Measured(
        model=line,
        inflow=comes_in,
        objective=objective,
        backlog=piled_up,
        hot=None if piled_up is None else hot_behind(samples[-1]),
        hot_input=hot_input(samples),
        worse=made_worse(together),
        pressure=memory_pressure(samples),
        skew=skewed(samples),
        source_tasks=_tasks_below_slots(together),
        fell_short=most_that_fell_short(took, room) if interval > 0 else 0,
    )


def _tasks_below_slots(samples: Sequence[Sample]) -> int | None:
    short = [
        sample.source_tasks
        for sample in samples
        if sample.steady
        and sample.source_tasks  # a batch without rows has no tasks
        and (sample.whole or sample.source_tasks < sample.slots)
    ]
    return max(short) if short else None
