"""What has piled up: whether it is one, how fast it is to go, and when it will be gone."""

from __future__ import annotations

from attrs import frozen

from spark_elastic.core.policies.autoscale.model import BatchTime
from spark_elastic.core.policies.autoscale.objective import Objective
from spark_elastic.core.policies.autoscale.rate import Inflow
from spark_elastic.core.policies.view import Sample

_LEAST_MS = 10_000
"""Less than this is no backlog: a batch that was a little late."""


@frozen(kw_only=True)
class Backlog:
    """So many `rows` are to be processed beside those that come in, within `within_ms`."""

    rows: float
    within_ms: int

    @property
    def rows_per_ms(self) -> float:
        """How many have to go per ms."""
        return self.rows / self.within_ms

    def gone_in_ms(self, model: BatchTime, inflow: Inflow, objective: Objective, slots: int) -> float | None:
        """Forecast how long it takes until nothing is behind, None: with so many slots it never is."""
        capacity = _capacity(model, inflow, objective, slots)
        left = capacity - inflow.rows_per_ms
        return self.rows / left if left > 0 else None


def backlog(
    inflow: Inflow, latest: Sample, objective: Objective, catch_up_ms: int, ready_ms: float = 0.0
) -> Backlog | None:
    """Tell what has piled up beyond what one batch reads anyway, None if that is nothing to speak of.

    A source without a limit is read whole, so of it nothing is behind; what has come in while a batch took
    longer than its interval waits all the same. Executors are ready `ready_ms` after they were requested, so
    a shorter time to catch up than that and two intervals would call for more of them in vain.
    """
    overrun = max(0, latest.duration_ms - objective.interval_ms) if objective.interval_ms > 0 else 0
    rows = (inflow.behind or 0) + inflow.rows_per_ms * overrun
    usual = inflow.rows_per_ms * max(_LEAST_MS, 2 * objective.interval_ms)
    if rows <= usual:
        return None
    soonest = 2 * (ready_ms + objective.interval_ms)
    within = catch_up_ms
    if objective.max_lag_ms is not None:
        within = min(catch_up_ms, max(objective.max_lag_ms, round(soonest)))
    return Backlog(rows=rows, within_ms=within)


def _capacity(model: BatchTime, inflow: Inflow, objective: Objective, slots: int) -> float:
    """Tell how many rows per ms can be processed at most."""
    if inflow.limited:
        took = max(model.batch_ms(inflow.batch_rows, slots), objective.interval_ms)
        return inflow.batch_rows / max(1.0, took)
    # Batches grow until they take all the time.
    return slots / model.row_ms if model.row_ms > 0 else float("inf")
