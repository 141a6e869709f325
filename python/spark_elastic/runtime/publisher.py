"""The policy as other threads see it: an immutable snapshot, renewed where it has changed."""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Container, Mapping
from typing import Any

from attrs import define, evolve, field, frozen

from spark_elastic.core.actions import Action, Decision, Report
from spark_elastic.core.events import (
    BatchStages,
    Event,
    ExecutorInfo,
    ExecutorUsage,
    Snapshot,
    StageCompleted,
)
from spark_elastic.core.policies.custom import CustomMetrics
from spark_elastic.core.query_view import QueryView, wanted_slots
from spark_elastic.core.rescale.history import Cause, Status
from spark_elastic.core.scheduler import Scheduler
from spark_elastic.core.settings import CoreSettings
from spark_elastic.core.transitions import FINISHED
from spark_elastic.runtime.decided_stages import DecidedStages
from spark_elastic.runtime.timeline import Capacity, Timeline, Usage
from spark_elastic.settings import Settings

# ---- Totals of each query since this policy process started; they never decrease. The scheduler counts
# separately for each run of a query. When the application starts a query again, the scheduler's counts start
# at zero, and the totals here continue.


@frozen(kw_only=True)
class Tally:
    """Totals of one query: restarts after failures, moves of its state, and times in milliseconds.

    `paused_ms` is the time for which finished rescales and retries kept it from running. `stayed_ms` is the
    time that it spent in each state that it has left.
    """

    restarted: int = 0
    rescaled: int = 0
    paused_ms: int = 0
    stayed_ms: Mapping[str, int] = field(factory=dict)


@define
class Tallies:
    """The totals of all known queries."""

    # The sums of the runs before the last one, and the last view of each query.
    _before: dict[str, Tally] = field(factory=dict)
    _seen: dict[str, QueryView] = field(factory=dict)
    _paused_ms: Counter[str] = field(factory=Counter)
    _totals: dict[str, Tally] = field(factory=dict)

    def take(self, query: str, view: QueryView) -> None:
        """Update the totals of a query with the scheduler's current counts."""
        seen = self._seen.get(query)
        if seen is not None and _begins_anew(seen, view):
            self._before[query] = _end(self._totals[query], seen, began=_begin(view))
        self._seen[query] = view
        before = self._before.get(query, Tally())
        self._totals[query] = Tally(
            restarted=before.restarted + view.restarted,
            rescaled=before.rescaled + view.rescaled,
            paused_ms=self._paused_ms[query],
            stayed_ms=_sum(before.stayed_ms, view.stayed_ms),
        )

    def paused(self, query: str, ms: int) -> None:
        """Add a pause that has ended."""
        self._paused_ms[query] += ms

    def keep_only(self, queries: Container[str]) -> None:
        """Remove all other queries."""
        for query in [query for query in self._seen if query not in queries]:
            for kept in (self._before, self._seen, self._paused_ms, self._totals):
                kept.pop(query, None)

    def all(self) -> Mapping[str, Tally]:
        """Return the totals by query id."""
        return dict(self._totals)


def _begins_anew(seen: QueryView, view: QueryView) -> bool:
    """Return whether `view` counts a later run than `seen`: within a run, the start of counting is fixed."""
    return _begin(view) > _begin(seen)


def _begin(view: QueryView) -> int:
    """Return when the counts of this run started (epoch ms)."""
    return view.entered - sum(view.stayed_ms.values())


def _end(total: Tally, seen: QueryView, *, began: int) -> Tally:
    """Add the stay in the last state of a run, which ended when the next run began."""
    if seen.state == FINISHED:
        return total
    return evolve(total, stayed_ms=_sum(total.stayed_ms, {seen.state: max(0, began - seen.entered)}))


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> Mapping[str, int]:
    return other if not one else dict(sorted((Counter(one) + Counter(other)).items()))


DECISIONS_KEPT = 1_000
# Upper bounds of the buckets for decision times, in seconds.
DECISION_BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5)


@frozen(kw_only=True)
class Totals:
    """Totals since this policy process started; times are in seconds.

    `decision_buckets` counts the decision times in each bucket of DECISION_BUCKETS, and at the end those
    above all bounds; the counts are not cumulative. `paused` is the time for which finished rescales kept
    queries from running, by cause. `queries` is by query id.
    """

    rescales: Mapping[tuple[Cause, Status], int]
    paused: Mapping[Cause, float]
    queries: Mapping[str, Tally]
    decision_buckets: tuple[int, ...]
    decision_seconds: float


@frozen(kw_only=True)
class View:
    """The policy at one moment, `at` (epoch ms). `decisions` has the newest last.

    `parts` is as in the shim's snapshot. `usable` has the slots of each executor that has any; `usual_slots`
    is the number expected of an executor that has yet to arrive. `exclusions` has why Spark has excluded an
    executor, if known. `custom_policies` are the configured ones, by name. `wanted` are the slots that all
    queries want, None: one wants all.
    """

    at: int
    application: str
    application_name: str
    spark_version: str
    parts: Mapping[str, str]
    settings: Settings
    restarts: int
    slots: int
    wanted: int | None
    usage: Usage
    executors: tuple[ExecutorInfo, ...]
    usable: Mapping[str, int]
    exclusions: Mapping[str, str]
    usual_slots: int
    queries: Mapping[str, QueryView]
    custom_policies: Mapping[str, CustomMetrics]
    decisions: tuple[Decision, ...]
    totals: Totals


@define
class QueryViews:
    """The views of all queries of a scheduler, and their totals.

    `stale` has the queries that may have changed since their view was made. `wanted` are the slots that all
    queries want together, None: one wants all.
    """

    stale: set[str] = field(factory=set)
    all_stale: bool = True
    wanted: int | None = 0
    _shown: dict[str, QueryView] = field(factory=dict)
    # The last rescale of each query that was counted: its end, and its number.
    _counted: dict[str, tuple[int, int]] = field(factory=dict)
    _rescales: Counter[tuple[Cause, Status]] = field(factory=Counter)
    _paused: Counter[Cause] = field(factory=Counter)
    _tallies: Tallies = field(factory=Tallies)

    def renew(self, scheduler: Scheduler) -> Mapping[str, QueryView]:
        """Return a view of each query; a query that has not changed keeps its view."""
        queries, before = scheduler.queries, self._shown
        now = list(queries)
        if now == list(before):
            # Always a new object, because readers may hold the old one.
            self._shown = dict(before)
        else:
            self._shown = {query: before.get(query) or self._look(query, queries[query]) for query in now}
            for query in self._counted.keys() - set(now):
                del self._counted[query]
            self._tallies.keep_only(queries)
        wants_others = self.all_stale or now != list(before)
        for query in now if self.all_stale else self.stale.intersection(now):
            seen = self._shown[query]
            self._shown[query] = shown = self._look(query, queries[query])
            wants_others |= seen.requirements is not shown.requirements or seen.state != shown.state
        if wants_others:
            self.wanted = wanted_slots(self._shown.values(), scheduler.settings.max_parallelism)
        self.stale.clear()
        self.all_stale = False
        return self._shown

    def rescales(self) -> Mapping[tuple[Cause, Status], int]:
        """Return the counts of finished rescales, except those that a query dropped before they were seen."""
        return dict(self._rescales)

    def paused(self) -> Mapping[Cause, float]:
        """Return how long rescales kept their queries from running, in seconds, by cause."""
        return {cause: ms / 1_000 for cause, ms in self._paused.items()}

    def tallies(self) -> Mapping[str, Tally]:
        """Return the totals of each known query."""
        return self._tallies.all()

    def _look(self, query: str, view: QueryView) -> QueryView:
        last = self._counted.get(query, (0, 0))
        for rescale in view.history:
            if rescale.ended is None:
                # The only record that still changes, and so the only one copied.
                view = evolve(view, history=(evolve(rescale), *view.history[1:]))
                continue
            if (rescale.ended, rescale.number) <= last:
                break
            self._counted[query] = max(self._counted.get(query, last), (rescale.ended, rescale.number))
            self._rescales[rescale.cause, rescale.status] += 1
            self._paused[rescale.cause] += rescale.paused_ms
            self._tallies.paused(query, rescale.paused_ms)
        self._tallies.take(query, view)
        return view


@define
class Decisions:
    """The last decisions, and the time that the decisions about each event took."""

    _kept: deque[Decision] = field(factory=lambda: deque(maxlen=DECISIONS_KEPT))
    _buckets: list[int] = field(factory=lambda: [0] * (len(DECISION_BUCKETS) + 1))
    seconds: float = 0.0

    def keep(self, decision: Decision) -> None:
        """Add the newest decision."""
        self._kept.append(decision)

    def took(self, seconds: float) -> None:
        """Count the decision time of one event."""
        self._buckets[bisect_left(DECISION_BUCKETS, seconds)] += 1
        self.seconds += seconds

    def kept(self) -> tuple[Decision, ...]:
        """Return the decisions, newest last."""
        return tuple(self._kept)

    def buckets(self) -> tuple[int, ...]:
        """Return the number of events in each bucket of decision times."""
        return tuple(self._buckets)


class Publisher:
    """Publishes what the loop knows to readers in any thread, which never wait for the loop.

    They read `view`, which is None until the first snapshot has been handled, `timeline` and `stages`. The
    rest is for the loop's thread. `restarts` counts the policy processes before this one.
    """

    def __init__(self, restarts: int = 0) -> None:
        self.view: View | None = None
        self.timeline = Timeline()
        self.stages = DecidedStages()
        self.restarts = restarts
        self._settings: Settings | None = None
        self._snapshot: Snapshot | None = None
        self._scheduler: Scheduler | None = None
        self._shared = (0, 0)
        self._query_views = QueryViews()
        self._decisions = Decisions()
        self._at = 0
        self._news = False

    def scheduler(self, settings: CoreSettings) -> Watched:
        """Create a scheduler, and observe it."""
        return self.watch(Scheduler(settings))

    def watch(self, scheduler: Scheduler) -> Watched:
        """Observe a scheduler."""
        self._scheduler = scheduler
        return Watched(scheduler, self)

    def begin(self, settings: Settings, snapshot: Snapshot) -> None:
        """Note the settings and the first snapshot of the application."""
        self._settings = settings
        self._snapshot = snapshot

    @property
    def queries(self) -> Mapping[str, QueryView]:
        """The queries as they are now, ahead of `view`."""
        return {} if self._scheduler is None else self._scheduler.queries

    def note(self, event: Event, actions: tuple[Action, ...], seconds: float) -> None:
        """Record an event, its actions, and the time that deciding took."""
        self._decisions.took(seconds)
        self._at = max(self._at, event.at)
        self._news = True
        if self._scheduler is not None:
            self.timeline.note(event)
            # A change of one query can give others more or fewer slots.
            # In addition, policies look at all queries together.
            shared = self._scheduler.divisions, self._scheduler.plans
            if shared != self._shared:
                self._shared = shared
                self._query_views.all_stale = True
        # An event about a stage, or about what an executor holds, changes no query.
        if not isinstance(event, StageCompleted | BatchStages | ExecutorUsage):
            self._mark(event)
        for action in actions:
            if isinstance(action, Report):
                self._decisions.keep(action.decision)
                if action.decision.query is not None:
                    # When one query's move ends, another query can begin its own.
                    self._query_views.stale.add(action.decision.query)

    def _mark(self, event: Event) -> None:
        """Mark the queries that need a new view."""
        query = getattr(event, "query", None)
        if query is not None:
            self._query_views.stale.add(query)
        else:
            # An executor or a policy file may affect any query.
            self._query_views.all_stale = True

    def publish(self) -> None:
        """Publish what has changed."""
        if self._news and self._scheduler is not None and self._settings and self._snapshot:
            self._news = False
            self.view = self._look(self._scheduler, self._settings, self._snapshot)

    def _look(self, scheduler: Scheduler, settings: Settings, snapshot: Snapshot) -> View:
        queries = self._query_views.renew(scheduler)
        executors = tuple(scheduler.slots.executors.values())
        self.timeline.keep_only(queries)
        self.timeline.has(
            self._at,
            Capacity(
                slots=scheduler.slots.total,
                executors=len(executors),
                cores=sum(executor.cores for executor in executors),
                wanted=self._query_views.wanted,
            ),
        )
        return View(
            at=self._at,
            application=snapshot.application,
            application_name=snapshot.application_name,
            spark_version=snapshot.spark_version,
            parts=snapshot.parts,
            settings=settings,
            restarts=self.restarts,
            slots=scheduler.slots.total,
            wanted=self._query_views.wanted,
            usage=self.timeline.usage,
            executors=executors,
            usable=dict(scheduler.slots.usable),
            exclusions=dict(scheduler.slots.exclusions),
            usual_slots=scheduler.usual_slots,
            queries=queries,
            custom_policies=scheduler.custom_policies,
            decisions=self._decisions.kept(),
            totals=Totals(
                rescales=self._query_views.rescales(),
                paused=self._query_views.paused(),
                queries=self._query_views.tallies(),
                decision_buckets=self._decisions.buckets(),
                decision_seconds=self._decisions.seconds,
            ),
        )


class Watched:
    """A scheduler that reports every step to the publisher."""

    def __init__(self, scheduler: Scheduler, publisher: Publisher) -> None:
        self.scheduler = scheduler
        self._publisher = publisher

    def handle(self, event: Event) -> tuple[Action, ...]:
        """Handle one event and return the resulting actions."""
        begin = time.perf_counter()
        actions = self.scheduler.handle(event)
        self._publisher.note(event, actions, time.perf_counter() - begin)
        return actions

    def save(self) -> dict[str, Any]:
        """Return the complete state, ready for JSON."""
        return self.scheduler.save()
