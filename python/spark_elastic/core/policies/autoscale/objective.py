"""How many slots an objective takes: the load that a batch may be of its interval, and the lag.

A query with a trigger interval reads the rows of one interval with each batch, so the batch has to be through
in a part of it. One without is never without a batch, which grows until it keeps up: what has to fit is the
part that grows with rows. Where a source is read with a limit, the rows of a batch are given, and what has to
fit is the time that as many take to come.
"""

from __future__ import annotations

import math

from attrs import frozen

from spark_elastic.core.policies.autoscale.model import BatchTime

_LEAST_ROOM = 0.25
"""The room that is made where the fixed part of a batch leaves less, as a part of it: more buys little."""

_LEAST_BUSY = 0.01
"""The part of what it can process that comes in at least, also with a load of 1 that leaves nothing else."""


@frozen(kw_only=True)
class Objective:
    """What is to be kept: `load` (0 to 1) of `interval_ms`, 0 without one; and `max_lag_ms`, None for any."""

    interval_ms: int
    load: float
    max_lag_ms: int | None = None

    def room_ms(self, load: float) -> float:
        """Tell what a batch may take with this load, at most what the lag allows."""
        room = load * self.interval_ms
        if self.max_lag_ms is None or self.max_lag_ms <= self.interval_ms:
            return room  # a row may have to wait for a whole interval, which no slot shortens
        return min(room, self.max_lag_ms - self.interval_ms)

    def busy(self, load: float, fixed_ms: float) -> float:
        """Tell which part of what it can process at most a query without an interval may have to.

        A batch takes fixed / (1 - part), and a row waits for one batch and is in the next.
        """
        if self.max_lag_ms is None:
            return load
        return min(load, max(1 - load, _LEAST_BUSY, 1 - 2 * fixed_ms / self.max_lag_ms))


@frozen(kw_only=True)
class Needed:
    """So many `slots` (not whole); `fixed` says that the fixed part leaves too little room for more to help.

    `admits` is False where the source's limit lets in less than comes, however many slots there are.
    """

    slots: float
    fixed: bool = False
    admits: bool = True

    @property
    def whole(self) -> int:
        """The slots, rounded up: what is whole but for rounding is whole."""
        return max(1, math.ceil(self.slots - 1e-6))


def needed(
    model: BatchTime,
    objective: Objective,
    rows_per_ms: float,
    *,
    load: float,
    batch_rows: float | None = None,
) -> Needed:
    """Count the slots with which a query keeps its objective at this load.

    `batch_rows` are those of a batch where a limit of the source says how many, None: what comes in.
    """
    if rows_per_ms <= 0:
        return Needed(slots=1)
    interval = objective.interval_ms
    admits = True
    if batch_rows is not None and batch_rows < rows_per_ms * interval:
        admits, rows, room = False, batch_rows, objective.room_ms(load)
    elif interval > 0:
        rows, room = rows_per_ms * interval, objective.room_ms(load)
    elif batch_rows is not None:
        rows, room = batch_rows, load * batch_rows / rows_per_ms
    else:
        return Needed(slots=model.row_ms * rows_per_ms / objective.busy(load, model.fixed_ms))
    left, least = room - model.fixed_ms, max(1.0, _LEAST_ROOM * model.fixed_ms)
    return Needed(slots=model.row_ms * rows / max(left, least), fixed=left < least, admits=admits)


def load_with(model: BatchTime, objective: Objective, rows_per_ms: float, slots: float) -> float:
    """Estimate the load of a query with so many slots (above 0)."""
    if objective.interval_ms == 0:
        return model.row_ms * rows_per_ms / slots
    return model.batch_ms(rows_per_ms * objective.interval_ms, slots) / objective.interval_ms
