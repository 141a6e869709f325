"""The policy `schedule`: states the limits of time windows, and prevents changes in excluded periods.

It wants no number of slots: the policies after it in a chain do, within these limits. On its own, it leaves a
query with what its declared bounds and the windows allow. The rules of time zones are the machine's, so a
journal replays alike only where the time zone database says the same about its days.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

from attrs import evolve, frozen

from spark_elastic.core.bounds.requirements import MAX_PARALLELISM
from spark_elastic.core.keys.periods import DAY_MS, ExcludedPeriod, Period, Window, due
from spark_elastic.core.keys.policies import LONGEST_LEAD_MS, SCHEDULE
from spark_elastic.core.policies.policy import Wish
from spark_elastic.core.policies.view import ClusterView, QueryMetrics, SlotLimits, allowed
from spark_elastic.core.settings import CoreSettings

# ---- Occurrences of periods: which are in force at a moment, and when the next one begins or ends.


AHEAD_DAYS = 2
"""Number of whole days after today that are searched. A caller that finds nothing searches again then."""

Of = TypeVar("Of", bound=Period)


@frozen
class Occurrences(Generic[Of]):
    """Occurrences of periods around one moment: (begin, end, period), in the order of the periods.

    They are complete up to `until`. All times are epoch ms.
    """

    found: tuple[tuple[int, int, Of], ...]
    until: int

    @classmethod
    def around(cls, periods: Sequence[Of], zone: str, at: int) -> Occurrences[Of]:
        """Find those in force at any time from `at` until the end of the day after tomorrow (UTC)."""
        today = at // DAY_MS
        until = (today + 1 + AHEAD_DAYS) * DAY_MS
        return cls(tuple(one for period in periods for one in _of(period, zone, at, until)), until)

    def in_force(self, at: int) -> Iterator[Of]:
        """Yield the periods that are in force at a moment, each once, in their order."""
        last = None
        for begin, end, period in self.found:
            if begin <= at < end and period is not last:
                last = period
                yield period

    def edges(self) -> list[int]:
        """Return all moments at which a period begins or ends, in order."""
        return sorted({edge for begin, end, _ in self.found for edge in (begin, end)})


def _of(period: Of, zone: str, at: int, until: int) -> Iterator[tuple[int, int, Of]]:
    for day in range((at - period.duration_ms) // DAY_MS, until // DAY_MS):
        for begin in due(period.cron, zone, day):
            if begin + period.duration_ms > at:
                yield begin, begin + period.duration_ms, period


# ---- What windows allow at a moment, and until when that holds. The slots and executors that a window
# requires are available when it begins. So the minimum of slots and executors is the highest one required at
# any moment from now until the lead time ends. The maximum of slots is that of now, unless it is below this
# minimum.


@frozen(kw_only=True)
class Limited:
    """The limits that windows state for queries, and the minimum of executors for the application.

    `limits` is empty, and `executors` is None, if no window states any. `executors_by` names the window.
    `until` is when the limits may change (epoch ms).
    """

    limits: tuple[SlotLimits, ...] = ()
    executors: int | None = None
    executors_by: str = ""
    until: int


def limited(windows: Sequence[Window], zone: str, at: int, lead_ms: int) -> Limited:
    """Combine the limits that apply from `at` until the lead time ends."""
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
    """Evaluate the windows in force at a moment: each limit comes from the first window that states it.

    If the limits of two windows contradict each other, the first window takes precedence.
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
        lower_by=_by_window(low),
        upper=upper,
        upper_by=_by_window(high),
        executors=-1 if least is None or least.min_executors is None else least.min_executors,
        executors_by=_by_window(least),
    )


def _by_window(window: Window | None) -> str | None:
    return None if window is None else f"the window {window.shown}"


LEAD_MS = 60_000
"""Assumed start-up time of executors, until it is measured."""


@frozen
class Schedule:
    """The policy that states limits by the clock."""

    def decide(self, view: ClusterView) -> Wish:
        """Return the limits of now, and of windows that begin before new executors could be ready."""
        limits: dict[str, tuple[SlotLimits, ...]] = {}
        least: list[tuple[int, str]] = []
        times: list[int] = []
        for plan, queries in _plans(view):
            now = limited(plan.windows, plan.zone, view.at, _lead_ms(plan, view))
            found = Occurrences.around(plan.excluded, plan.zone, view.at)
            excluded = next(found.in_force(view.at), None)
            times += (now.until, found.until, *(edge for edge in found.edges() if edge > view.at))
            least.append(_least(now, excluded, view))
            for query in queries:
                limits[query.query] = now.limits if excluded is None else _held(query, now, excluded)
        executors, by = max(least, key=lambda one: one[0], default=(0, ""))
        return Wish(
            limits={query: stated for query, stated in limits.items() if stated},
            executors=executors or None,
            executors_by=by,
            until=min(times, default=None),
        )


@frozen
class _Plan:
    """The schedule settings of the application or of some queries."""

    zone: str
    windows: tuple[Window, ...]
    excluded: tuple[ExcludedPeriod, ...]
    lead_ms: int | None

    @classmethod
    def of(cls, settings: CoreSettings) -> _Plan:
        return cls(
            settings.schedule_zone,
            settings.schedule_windows,
            settings.schedule_excluded,
            settings.schedule_lead_ms,
        )


def _plans(view: ClusterView) -> Iterator[tuple[_Plan, list[QueryMetrics]]]:
    """Yield each non-empty plan of the application or of a query under this policy, with its queries."""
    plans: dict[_Plan, list[QueryMetrics]] = {}
    if SCHEDULE in view.settings.policy:
        plans[_Plan.of(view.settings)] = []
    for query in view.queries.values():
        if SCHEDULE in query.settings.policy:
            plans.setdefault(_Plan.of(query.settings), []).append(query)
    yield from ((plan, queries) for plan, queries in plans.items() if plan.windows or plan.excluded)


def _lead_ms(plan: _Plan, view: ClusterView) -> int:
    """Return how long before a window begins its executors are requested."""
    lead = max(view.startups_ms, default=LEAD_MS) if plan.lead_ms is None else plan.lead_ms
    return min(lead, LONGEST_LEAD_MS)


def _least(now: Limited, excluded: ExcludedPeriod | None, view: ClusterView) -> tuple[int, str]:
    """Return the minimum of executors, and who states it; an excluded period keeps the previous one."""
    wanted = now.executors or 0
    if excluded is None or (excluded.allows_up and wanted >= view.least_executors):
        return wanted, now.executors_by
    return view.least_executors, _by_excluded(excluded)


def _held(query: QueryMetrics, now: Limited, excluded: ExcludedPeriod) -> tuple[SlotLimits, ...]:
    """Return limits that hold a query at its slots, or let it have more if the period allows that."""
    if query.granted is not None:
        if not excluded.allows_up:
            return (SlotLimits(lower=query.granted, upper=query.granted, by=_by_excluded(excluded)),)
        return (SlotLimits(lower=query.granted, by=_by_excluded(excluded)), *now.limits)
    if not excluded.allows_up:
        return query.limited
    before, new = (allowed(1, MAX_PARALLELISM, limits) for limits in (query.limited, now.limits))
    lower = max((before.lower, before.lower_by), (new.lower, new.lower_by), key=lambda end: end[0])
    upper = max((before.upper, before.upper_by), (new.upper, new.upper_by), key=lambda end: end[0])
    held = []
    if lower[1] is not None:
        held.append(SlotLimits(lower=lower[0], by=lower[1]))
    if upper[1] is not None:
        held.append(SlotLimits(upper=upper[0], by=upper[1]))
    return tuple(held)


def _by_excluded(excluded: ExcludedPeriod) -> str:
    return f"the excluded period {excluded.shown}"
