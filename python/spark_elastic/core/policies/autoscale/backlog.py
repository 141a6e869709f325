"""What has piled up: whether it is one, how fast it is to go, and when it will be gone."""

from __future__ import annotations

from attrs import frozen

from spark_elastic.core.policies.autoscale.model import BatchTime
from spark_elastic.core.policies.autoscale.objective import Objective
from spark_elastic.core.policies.autoscale.rate import Inflow
from spark_elastic.core.policies.view import Sample

_LEAST_ROOM = 0.25
"""The room that is made where the fixed part of a batch leaves less, as a part of it."""
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

    def slots(
        self, model: BatchTime, inflow: Inflow, objective: Objective, *, current: float, ready_ms: float
    ) -> float:
        """Count the slots with which it is gone in time, though more piles up until they are there.

        `current` are those that work on it until then, for `ready_ms`. A source that is read with a limit
        lets in no more than that for each interval, and batches follow each other at once while they take
        longer than theirs.
        """
        meanwhile = max(0.0, inflow.rows_per_ms - _capacity(model, inflow, objective, current)) * ready_ms
        rate = inflow.rows_per_ms + (self.rows + meanwhile) / self.within_ms
        if not inflow.limited:
            return model.row_ms * rate
        if objective.interval_ms > 0:
            rate = min(rate, inflow.batch_rows / objective.interval_ms)
        if rate <= 0:
            return 1.0
        left = inflow.batch_rows / rate - model.fixed_ms
        return model.row_ms * inflow.batch_rows / max(left, _LEAST_ROOM * model.fixed_ms, 1.0)

    def gone_in_ms(
        self, model: BatchTime, inflow: Inflow, objective: Objective, slots: float
    ) -> float | None:
        """Forecast how long it takes until nothing is behind, None: with so many slots it never is."""
        capacity = _capacity(model, inflow, objective, slots)
        left = capacity - inflow.rows_per_ms
        return self.rows / left if left > 0 else None


def backlog(inflow: Inflow, latest: Sample, objective: Objective, catch_up_ms: int) -> Backlog | None:
    """Tell what has piled up beyond what one batch reads anyway, None if that is nothing to speak of.

    A source without a limit is read whole, so of it nothing is behind; what has come in while a batch took
    longer than its interval waits all the same. A shorter time to catch up than two intervals would call for
    more executors in vain.
    """
    overrun = max(0, latest.duration_ms - objective.interval_ms) if objective.interval_ms > 0 else 0
    rows = (inflow.behind or 0) + inflow.rows_per_ms * overrun
    usual = inflow.rows_per_ms * max(_LEAST_MS, 2 * objective.interval_ms)
    if rows <= usual:
        return None
    within = catch_up_ms
    if objective.max_lag_ms is not None:
        within = min(catch_up_ms, max(objective.max_lag_ms, 2 * objective.interval_ms))
    return Backlog(rows=rows, within_ms=within)


def _capacity(model: BatchTime, inflow: Inflow, objective: Objective, slots: float) -> float:
    """Tell how many rows per ms can be processed at most."""
    if inflow.limited:
        took = max(model.batch_ms(inflow.batch_rows, slots), objective.interval_ms)
        return inflow.batch_rows / max(1.0, took)
    # Batches grow until they take all the time.
    return slots / model.row_ms if model.row_ms > 0 else float("inf")
