"""What follows from the micro-batches of a query alone: computed once for these, not at each decision.

A decision looks at all queries, and of most of them nothing has been heard since the last one.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from attrs import frozen

from spark_elastic.core.policies.autoscale.effect import Worse, made_worse
from spark_elastic.core.policies.autoscale.model import BatchTime, fit
from spark_elastic.core.policies.autoscale.rate import Inflow, inflow
from spark_elastic.core.policies.autoscale.tried import tried
from spark_elastic.core.policies.view import QueryFigures, Sample

_KEPT = 2_048


@frozen(kw_only=True)
class Measured:
    """How long batches take, what comes in, and what slots have been tried; None where that is not known.

    `tried` has, by slots, what a batch with the rows of one interval would take with them (ms).
    """

    model: BatchTime | None
    inflow: Inflow | None
    worse: Worse | None
    tried: Mapping[int, float]


def measured(query: QueryFigures) -> Measured:
    """Return what the micro-batches of a query tell."""
    return _measured(query.earlier, query.samples, query.facts.trigger_ms)


@lru_cache(maxsize=_KEPT)
def _measured(earlier: tuple[Sample, ...], samples: tuple[Sample, ...], interval_ms: int) -> Measured:
    known = (*earlier, *samples)
    model, comes_in = fit(known), inflow(samples, interval_ms)
    rows = 0.0 if comes_in is None else comes_in.rows_per_ms * interval_ms
    fixed = 0.0 if model is None else model.fixed_ms
    return Measured(model=model, inflow=comes_in, worse=made_worse(known), tried=tried(known, rows, fixed))
