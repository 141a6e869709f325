"""The common routine: from a row of slices to ranges of about a task's volume, as many as are allowed."""

from __future__ import annotations

from spark_elastic.core.batch.even import split_evenly
from spark_elastic.core.batch.number import clamp
from spark_elastic.core.batch.presets import Preset
from spark_elastic.core.batch.search import greatest, least
from spark_elastic.core.batch.slices import Slices
from spark_elastic.core.batch.spans import Span, spans_of
from spark_elastic.core.batch.waves import Waves, even_out
from spark_elastic.core.requirements import Bounds


def balance(
    slices: Slices, limit: int, bounds: Bounds, *, decided: int, preset: Preset, waves: Waves | None = None
) -> list[Span] | None:
    """Cut slices into ranges of at most `limit` bytes; move the limit as far as the bounds ask for.

    If no limit gives an allowed number, slices are split by count: into `decided` ranges, or as the preset
    has it. None if there are fewer slices than the lower bound, or if a range has to begin in more places
    than there may be ranges. `waves` fills the slots, None leaves them out of account.
    """
    count = slices.count(limit)
    needed = max(bounds.lower, min(count, bounds.upper))
    allowed: int | None = limit
    if count < bounds.lower:
        allowed = _lower(slices, limit, bounds.lower)
    elif count > bounds.upper:
        allowed = _raise(slices, limit, bounds.upper, exactly=waves is None)
    if allowed is not None:
        starts = even_out(slices, allowed, needed, bounds, waves) if waves else slices.cut(allowed)
        if bounds.lower <= len(starts) <= bounds.upper:
            return spans_of(starts, len(slices.weights))
    return _by_count(slices, bounds, decided, preset)


def _raise(slices: Slices, limit: int, upper: int, *, exactly: bool) -> int | None:
    """Raise the limit until there are no more than `upper` ranges; not `exactly`: as far as is enough."""

    def is_enough(at: int) -> bool:
        return slices.count(at, upper) <= upper

    enough = slices.total // upper + slices.heaviest + 1
    if not exactly and is_enough(enough):
        return enough
    return least(is_enough, limit, slices.total)


def _lower(slices: Slices, limit: int, lower: int) -> int | None:
    """Lower the limit until there are enough ranges, and on as long as that makes no more of them."""
    low = min(min(slices.weights, default=0), limit)
    highest = greatest(lambda at: slices.count(at) >= lower, low, limit)
    if highest is None:
        return None
    count = slices.count(highest)
    return least(lambda at: slices.count(at, count) <= count, low, highest)


def _by_count(slices: Slices, bounds: Bounds, decided: int, preset: Preset) -> list[Span] | None:
    available = len(slices.weights)
    if available < bounds.lower or slices.segments > 1:
        return None
    wanted = bounds.upper if preset.even_split == "most" else clamp(decided, bounds)
    return split_evenly(available, min(available, wanted))
