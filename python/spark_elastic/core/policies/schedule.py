"""The policy: states what windows of time allow, and that nothing is changed in excluded periods.

It names no number of slots: who stands behind it in a chain does, within these limits. Alone, a query has
what its declared bounds and the windows allow.
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

# When periods are in force: each time, and the next time at which one begins or ends.


AHEAD_DAYS = 2
"""So many whole days after today are looked at; who finds nothing there is to look again then."""

Of = TypeVar("Of", bound=Period)


@frozen
class Occurrences(Generic[Of]):
    """Periods around one moment: (begin, end, period) in epoch ms, in the order of the periods."""

    found: tuple[tuple[int, int, Of], ...]
    until: int

    @classmethod
    def around(cls, periods: Sequence[Of], zone: str, at: int) -> Occurrences[Of]:
        """Find those that may be in force from `at` until the end of the day after tomorrow (UTC)."""
        today = at // DAY_MS
        until = (today + 1 + AHEAD_DAYS) * DAY_MS
        return cls(tuple(one for period in periods for one in _of(period, zone, at, until)), until)

    def in_force(self, at: int) -> Iterator[Of]:
        """Give the periods that are in force at a moment, each once, in their order."""
        last = None
        for begin, end, period in self.found:
            if begin <= at < end and period is not last:
                last = period
                yield period

    def edges(self) -> list[int]:
        """Give all moments at which a period begins or ends, in order."""
        return sorted({edge for begin, end, _ in self.found for edge in (begin, end)})


def _of(period: Of, zone: str, at: int, until: int) -> Iterator[tuple[int, int, Of]]:
    for day in range((at - period.duration_ms) // DAY_MS, until // DAY_MS):
        for begin in due(period.cron, zone, day):
            if begin + period.duration_ms > at:
                yield begin, begin + period.duration_ms, period


# What windows of time allow at a moment, and from when on that is something else.
# What a window calls for is there when it begins: the fewest slots and executors are the most of what is
# called for at any moment from now until the lead time is over. The most slots are those of now, unless that
# is fewer.


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
        lower_by=_by_window(low),
        upper=upper,
        upper_by=_by_window(high),
        executors=-1 if least is None or least.min_executors is None else least.min_executors,
        executors_by=_by_window(least),
    )


def _by_window(window: Window | None) -> str | None:
    return None if window is None else f"the window {window.shown}"


LEAD_MS = 60_000
"""How long executors are taken to need, until measured."""


@frozen
class Schedule:
    """Goes by the clock."""

    def decide(self, view: ClusterView) -> Wish:
        """Return the limits of now, and of what begins before executors could be there."""
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
    """What is set of the schedule, for the application or for some queries."""

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
    """Give each plan that counts for the application or a query that goes by the clock, with the queries."""
    plans: dict[_Plan, list[QueryMetrics]] = {}
    if SCHEDULE in view.settings.policy:
        plans[_Plan.of(view.settings)] = []
    for query in view.queries.values():
        if SCHEDULE in query.settings.policy:
            plans.setdefault(_Plan.of(query.settings), []).append(query)
    yield from ((plan, queries) for plan, queries in plans.items() if plan.windows or plan.excluded)


def _lead_ms(plan: _Plan, view: ClusterView) -> int:
    """Tell how long before a window its executors are requested."""
    lead = max(view.startups_ms, default=LEAD_MS) if plan.lead_ms is None else plan.lead_ms
    return min(lead, LONGEST_LEAD_MS)


def _least(now: Limited, excluded: ExcludedPeriod | None, view: ClusterView) -> tuple[int, str]:
    """Return the fewest executors of the application, and who says so; excluded periods keep what was."""
    wanted = now.executors or 0
    if excluded is None or (excluded.allows_up and wanted >= view.least_executors):
        return wanted, now.executors_by
    return view.least_executors, _by_excluded(excluded)


def _held(query: QueryMetrics, now: Limited, excluded: ExcludedPeriod) -> tuple[SlotLimits, ...]:
    """Return limits that leave a query what it has, or more where the period allows that."""
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
