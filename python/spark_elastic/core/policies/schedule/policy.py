"""The policy: states what windows of time allow, and that nothing is changed in excluded periods.

It names no number of slots: who stands behind it in a chain does, within these limits. Alone, a query has
what its declared bounds and the windows allow.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from spark_elastic.core.bounds.requirements import MAX_PARALLELISM
from spark_elastic.core.keys.periods import ExcludedPeriod, Window
from spark_elastic.core.keys.policies import SCHEDULE
from spark_elastic.core.keys.schedule import LONGEST_LEAD_MS
from spark_elastic.core.policies.schedule.occurrences import Occurrences
from spark_elastic.core.policies.schedule.timetable import Limited, limited
from spark_elastic.core.policies.slot_limits import SlotLimits, allowed
from spark_elastic.core.policies.view import ClusterView, QueryMetrics
from spark_elastic.core.policies.wish import Wish
from spark_elastic.core.settings import CoreSettings

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
    return view.least_executors, _by(excluded)


def _held(query: QueryMetrics, now: Limited, excluded: ExcludedPeriod) -> tuple[SlotLimits, ...]:
    """Return limits that leave a query what it has, or more where the period allows that."""
    if query.granted is not None:
        if not excluded.allows_up:
            return (SlotLimits(lower=query.granted, upper=query.granted, by=_by(excluded)),)
        return (SlotLimits(lower=query.granted, by=_by(excluded)), *now.limits)
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


def _by(excluded: ExcludedPeriod) -> str:
    return f"the excluded period {excluded.shown}"
