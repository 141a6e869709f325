"""What a decision about a query rests on, put together once."""

from __future__ import annotations

from attrs import frozen

from spark_elastic.core.policies.autoscale.backlog import Backlog, backlog
from spark_elastic.core.policies.autoscale.bottleneck import hot_share
from spark_elastic.core.policies.autoscale.model import BatchTime, fit
from spark_elastic.core.policies.autoscale.objective import Needed, Objective, load_with, needed
from spark_elastic.core.policies.autoscale.price import pause_ms
from spark_elastic.core.policies.autoscale.rate import Inflow, inflow
from spark_elastic.core.policies.view import QueryFigures, Sample
from spark_elastic.core.turn import Number

_NOTHING = BatchTime(fixed_ms=0.0, row_ms=0.0, samples=0, error=0.0, separates=False)
_BUSY = 0.9
_OVERRUNS = 3


@frozen(kw_only=True)
class Figures:
    """What was found out about one query that runs.

    `hot` is the share of the rows behind that are in one partition, None if that is no more than in others.
    """

    query: QueryFigures
    latest: Sample
    model: BatchTime
    inflow: Inflow
    objective: Objective
    backlog: Backlog | None
    hot: float | None

    @classmethod
    def of(cls, query: QueryFigures, ready_ms: float) -> Figures | None:
        """Find out about a query, None while that is not known: before its batches have told a rate.

        An executor is ready `ready_ms` after it was requested.
        """
        latest, comes_in = query.latest, inflow(query.samples, query.facts.trigger_ms)
        model = fit((*query.earlier, *query.samples))
        if latest is None or comes_in is None or (model is None and comes_in.rows_per_ms > 0):
            return None
        own, interval = query.settings, query.facts.trigger_ms
        objective = Objective(interval_ms=interval, load=own.target_load, max_lag_ms=own.max_lag_ms)
        piled_up = backlog(comes_in, latest, objective, own.catch_up_ms, ready_ms)
        return cls(
            query=query,
            latest=latest,
            model=model or _NOTHING,
            inflow=comes_in,
            objective=objective,
            backlog=piled_up,
            hot=None if piled_up is None else hot_share(latest),
        )

    @property
    def drain(self) -> Backlog | None:
        """What has piled up and more slots would help with."""
        return self.backlog if self.hot is None else None

    @property
    def falls_behind(self) -> bool:
        """Whether it is at work all the time, and more is behind with each batch or waits for the next."""
        busy, interval = self.latest.busy, self.query.facts.trigger_ms
        if busy is None or busy < _BUSY:
            return False
        last = self.query.samples[-_OVERRUNS:]
        overruns = interval > 0 and all(sample.duration_ms > interval for sample in last)
        return overruns or (self.drain is not None and self.inflow.grows)

    def needed(self, load: float, *, steady: bool = False) -> Needed:
        """Count the slots that it needs to have this load, and what has piled up gone in time.

        Those that are `steady` are needed for what comes in alone.
        """
        more = 0.0 if self.drain is None or steady else self.drain.rows_per_ms
        limit = self.inflow.batch_rows if self.inflow.limited else None
        rate = self.inflow.rows_per_ms + more
        return needed(self.model, self.objective, rate, load=min(1.0, load), batch_rows=limit)

    def numbers(self, current: int) -> dict[str, Number]:
        """Return what a decision is told with; `current` are the slots that it has."""
        load = load_with(self.model, self.objective, self.inflow.rows_per_ms, max(1, current))
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
            gone = self.backlog.gone_in_ms(self.model, self.inflow, self.objective, max(1, current))
            if gone is not None:
                numbers["gone_in_ms"] = round(gone)
        if self.hot is not None:
            numbers["hot_percent"] = round(100 * self.hot)
        return numbers
