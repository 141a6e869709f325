"""Whether a step is worth what it costs.

A change of the slots of a stateful query moves its state: the query stands still for as long as that takes,
and has its rows to make up for. What it saves are the slots that are given back, for as long as they stay so.
A step in place costs nothing.
"""

from __future__ import annotations

from statistics import median

from spark_elastic.core.policies.view import QueryMetrics
from spark_elastic.core.rescale.situation import HORIZON_MS, RESCALE_COST_MS


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
