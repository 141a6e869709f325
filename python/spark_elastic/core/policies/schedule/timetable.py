"""What windows of time allow at a moment, and from when on that is something else.

What a window calls for is there when it begins: the fewest slots and executors are the most of what is called
for at any moment from now until the lead time is over. The most slots are those of now, unless that is fewer.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve, frozen

from spark_elastic.core.bounds.requirements import MAX_PARALLELISM
from spark_elastic.core.keys.periods import Window
from spark_elastic.core.policies.schedule.occurrences import Occurrences
from spark_elastic.core.policies.slot_limits import SlotLimits


@frozen(kw_only=True)
class Limited:
    """What windows allow: slots of a query, executors of the application at least; and who says so.

    None: no window says anything. `until` is when that may be something else (epoch ms).
    """

    limits: tuple[SlotLimits, ...] = ()
    executors: int | None = None
    executors_by: str = ""
    until: int


def limited(windows: Sequence[Window], zone: str, at: int, lead_ms: int) -> Limited:
    """Put together what counts from `at` until the lead time is over."""
    found = Occurrences.around(windows, zone, at)
    edges = found.edges()
    near = evolve(found, found=tuple(one for one in found.found if one[0] <= at + lead_ms))
    moments = [at, *(edge for edge in edges if at < edge <= at + lead_ms)]
    seen = [_at(near, moment) for moment in moments]
    now, low = seen[0], max(seen, key=lambda one: one.lower)
    most = max(seen, key=lambda one: one.executors)
    stated = []
    if low.lower_by is not None:
        stated.append(SlotLimits(lower=low.lower, by=low.lower_by))
    if now.upper_by is not None:
        stated.append(SlotLimits(upper=max(now.upper, low.lower), by=now.upper_by))
    changes = [moment for edge in edges for moment in (edge - lead_ms, edge) if moment > at]
    return Limited(
        limits=tuple(stated),
        executors=None if most.executors < 0 else most.executors,
        executors_by=most.executors_by or "",
        until=min([*changes, found.until - lead_ms]),
    )


@frozen(kw_only=True)
class _Moment:
    lower: int
    lower_by: str | None
    upper: int
    upper_by: str | None
    executors: int
    executors_by: str | None


def _at(found: Occurrences[Window], moment: int) -> _Moment:
    """Tell what the windows say that are in force: of each limit, the first of them that states it counts.

    Where the limits of two windows contradict each other, those of the first count as well.
    """
    windows = list(found.in_force(moment))
    low = next((one for one in windows if one.lower is not None), None)
    high = next((one for one in windows if one.upper is not None), None)
    lower = 1 if low is None or low.lower is None else low.lower
    upper = MAX_PARALLELISM if high is None or high.upper is None else high.upper
    if lower > upper and low is not None and high is not None:
        lower = upper = lower if windows.index(low) < windows.index(high) else upper
    least = next((one for one in windows if one.min_executors is not None), None)
    return _Moment(
        lower=lower,
        lower_by=_by(low),
        upper=upper,
        upper_by=_by(high),
        executors=-1 if least is None or least.min_executors is None else least.min_executors,
        executors_by=_by(least),
    )


def _by(window: Window | None) -> str | None:
    return None if window is None else f"the window {window.shown}"
