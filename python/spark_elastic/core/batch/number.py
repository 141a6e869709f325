"""The number of tasks, from bytes: so many that none has to read more than its volume, within bounds."""

from __future__ import annotations

from spark_elastic.core.bounds.requirements import MAX_PARALLELISM, Bounds

DEFAULT_MAX = 128
"""The most tasks of a stage if nobody has said another number."""


def highest_parallelism(configured: int | None, default: int | None = None) -> int:
    """Choose the global upper bound: what is configured, else `default`, else 128; 32768 at most."""
    chosen = next((number for number in (configured, default) if number is not None), DEFAULT_MAX)
    return min(chosen, MAX_PARALLELISM)


def narrow(bounds: Bounds, lower: int | None = None, upper: int | None = None) -> Bounds:
    """Narrow the global bounds to those of one stage; None is none. The upper one wins.

    Raises ValueError if `upper` is less than 1.
    """
    most = bounds.upper if upper is None else min(bounds.upper, upper)
    return Bounds(lower=min(max(bounds.lower, lower or 1), most), upper=most)


def clamp(number: int, bounds: Bounds) -> int:
    """Bring a number within bounds."""
    return max(bounds.lower, min(number, bounds.upper))


def tasks_for(bytes_to_read: int, volume: int, bounds: Bounds) -> int:
    """Decide for so many tasks that each reads at most `volume` bytes."""
    return clamp(-(-bytes_to_read // volume), bounds)
