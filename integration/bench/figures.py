"""Summaries of measured times."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable


def p50(values: Iterable[float]) -> float:
    """Return the median, rounded to a tenth. Raises StatisticsError without values."""
    return round(statistics.median(values), 1)


def p50_max(values: Iterable[float]) -> dict[str, float]:
    """Return the median and the maximum; both are 0 without values."""
    known = list(values)
    return {"p50": p50(known), "max": round(max(known), 1)} if known else {"p50": 0.0, "max": 0.0}


def p50_p99(values: Iterable[float]) -> dict[str, float]:
    """Return the median and the 99th percentile; both are 0 without values."""
    return _p50_and(99, values)


def p50_p95(values: Iterable[float]) -> dict[str, float]:
    """Return the median and the 95th percentile; both are 0 without values."""
    return _p50_and(95, values)


def _p50_and(percent: int, values: Iterable[float]) -> dict[str, float]:
    known = sorted(values)
    if not known:
        return {"p50": 0.0, f"p{percent}": 0.0}
    # The nearest rank: a measured value, not one interpolated between two.
    rank = math.ceil(percent * len(known) / 100)
    return {"p50": round(statistics.median(known), 3), f"p{percent}": round(known[rank - 1], 3)}
