"""How many rows one micro-batch should read at most, so that a backlog is not read all at once.

A micro-batch is never interrupted: one that reads all that an outage has left keeps its query from the next
boundary, where it could use more slots, for as long as it takes. Several that last about as long as their
interval process the same rows, and cost little more.
"""

from __future__ import annotations

from spark_elastic.core.policies.autoscale.model import BatchTime
from spark_elastic.core.policies.autoscale.rate import Inflow

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
