"""Asks the policies, puts what they want within limits, and remembers what they go by.

A policy is asked when something has happened that it may go by, and when it said so; not more often than once
a second, since a decision looks at all queries.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from attrs import define, field

from spark_elastic.core import events as ev
from spark_elastic.core import reasons
from spark_elastic.core.alarm import Alarm
from spark_elastic.core.batch_events import BatchStages
from spark_elastic.core.bounds.requirements import Requirements, needed_slots
from spark_elastic.core.cluster.slots import SlotPool
from spark_elastic.core.cluster.supply import PolicyWants, Supply
from spark_elastic.core.policies.batch_memory import BatchMemory
from spark_elastic.core.policies.catalogue import POLICIES
from spark_elastic.core.policies.chain import joined
from spark_elastic.core.policies.customs import Customs
from spark_elastic.core.policies.kept_batches import batches_not_kept, keep_batches, recall_batches
from spark_elastic.core.policies.limits import Granted, grant, narrowed
from spark_elastic.core.policies.memory import QueryMemory
from spark_elastic.core.policies.plan import Plan, sentence
from spark_elastic.core.policies.row_limits import RowLimits
from spark_elastic.core.policies.sight import cluster_view, query_metrics
from spark_elastic.core.policies.slot_limits import SlotLimits, shown_limits
from spark_elastic.core.policies.startups import StartUps
from spark_elastic.core.policies.view import ClusterView, QueryMetrics
from spark_elastic.core.policies.wish import Wish
from spark_elastic.core.query.internal_events import BoundsChanged, SettingsChanged
from spark_elastic.core.query.record import QueryRecord
from spark_elastic.core.settings import CoreSettings
from spark_elastic.core.task_events import TaskEvent
from spark_elastic.core.turn import Number, Turn

EVERY_MS = 1_000
"""The shortest time between two decisions."""

_REPEAT_MS = 60_000
"""The shortest time after which it is said why nothing changes, in other words than before."""

_QUIET_MS = 600_000
"""The same where it is between reasons that a load near the band goes to and fro between."""

_QUIET = frozenset({"autoscale_keeps", "autoscale_down_waits", "autoscale_settling"})


def _patience_ms(before: tuple[str, int, str] | None, now: tuple[str, int, str]) -> int:
    """Tell how long nothing is said after what was said last; other slots are said at once."""
    if before is None or before[1] != now[1]:
        return 0
    return _QUIET_MS if {before[0], now[0]} <= _QUIET else _REPEAT_MS


@define
class Planner:
    """What the policies of one application remember, by query.

    `batch` is what is known of batch stages, and `heeds_batch` says that executors are requested for them.
    `since` is when each executor came (epoch ms), `startups` how long the last ones took. `stale` says that
    something has happened since the policies were asked, which was at `decided`; they are to be asked again
    at `until` (epoch ms), None: when something has happened. `executors` are those that they want at least,
    `executors_by` says who.
    """

    settings: CoreSettings
    alarm: Alarm = field(factory=Alarm)
    customs: Customs = field(factory=Customs)
    stale: bool = False
    plans: int = 0
    _memories: dict[str, QueryMemory] = field(factory=dict)
    _batch: BatchMemory = field(factory=BatchMemory)
    _since: dict[str, int] = field(factory=dict)
    _startups: StartUps = field(factory=StartUps)
    _decided: int = 0
    _until: int | None = None
    _executors: int = 0
    _executors_by: str = ""
    _heeds_batch: bool = False
    _row_limits: RowLimits = field(factory=RowLimits)

    def begin(self, executors: Iterable[ev.ExecutorInfo], at: int) -> None:
        """Take in what a snapshot shows; timers that were set are not, any more."""
        self.alarm.lost()
        self.customs.lost()
        self._since = {info.executor: self._since.get(info.executor, at) for info in executors}
        self._startups.lost()
        self._batch.begin()
        for memory in self._memories.values():
            memory.throttled = ()  # the shim has lifted all limits, too
        self._row_limits.lost()
        self.stale = bool(self._memories) or self.settings.measures

    def batch_event(self, event: BatchStages) -> None:
        """Take in which batch stages there are."""
        if self.settings.measures and self.settings.batch_gain is not None:
            self._batch.take(event)
            self.stale = self.stale or self._batch.seen

    def executor_event(self, event: ev.ExecutorEvent, pool: SlotPool) -> None:
        """Take in that an executor has come or gone."""
        match event:
            case ev.ExecutorAdded(executor=executor) if executor not in self._since:
                self._since[executor] = event.at
                self._startups.came(event.at, len(pool.executors))
            case ev.ExecutorRemoved(executor=executor):
                self._since.pop(executor, None)

    def requested(self, at: int, before: int | None, supply: Supply, pool: SlotPool) -> None:
        """Take in that other executors may have been requested; `before` is how many were until now."""
        total = supply.demand.requested
        if total != before:
            self._startups.requested(at, total, len(pool.executors))

    def requirements(self, query: str, declared: Requirements, own: CoreSettings) -> Requirements:
        """Give the requirements that are in force by what is declared for a query and granted to a policy."""
        if not own.measures:
            self.forget(query)
            return declared
        memory = self._memories.get(query)
        if memory is None:
            return declared
        limits = () if self.settings.advise_only else memory.limits
        return narrowed(declared, memory.granted, limits)

    def told(self, record: QueryRecord, event: object, at: int, *, surplus: bool) -> None:
        """Take in an event that a query has taken in.

        With a `surplus` there are executors that nobody wants: tasks run on them, too, so a batch does not
        tell what it takes with the slots that its query was granted. Nor does it beside batch stages.
        """
        own = record.settings or self.settings
        if not own.measures or isinstance(event, TaskEvent):
            return
        memory = self._memories.get(record.facts.query)
        if memory is None:
            memory = self._memories[record.facts.query] = QueryMemory()
            self._decided = 0  # what it is granted is said before executors are requested for it
        if isinstance(event, ev.ActionFailed):
            self._row_limits.failed(event, memory)
            batches_not_kept(event, memory)
        if record.known_share.slots > 0:
            memory.runs_with(at, record.known_share.slots, record.partitions)
        if record.rescales and record.rescale_cost_ms is not None:
            memory.paused_for(record.rescales[-1], record.rescale_cost_ms)
        batch = record.pace.latest
        if isinstance(event, ev.QueryProgress) and event.run == record.run and batch is not None:
            memory.batch(
                event, batch, at, alone=not (surplus or self._batch.busy), total=record.known_share.total,
                interval_ms=record.facts.trigger_ms,
            )  # fmt: skip
        if isinstance(event, ev.QueryIdle) and event.run == record.run:
            memory.rested(at)
        if memory.granted is None or isinstance(
            event, ev.QueryProgress | ev.QueryIdle | SettingsChanged | BoundsChanged
        ):
            self.stale = True  # nothing else tells what a query needs

    def plan(self, query: str) -> Plan | None:
        """Show what was last decided about a query, None before that and where its bounds alone count."""
        memory = self._memories.get(query)
        if memory is None or memory.decided is None:
            return None
        return Plan(
            granted=memory.decided,
            before=memory.before,
            advise_only=self.settings.advise_only,
            samples=(*memory.earlier, *memory.samples),
            most_rows=sum(limit.rows for limit in memory.throttled) or None,
        )

    def forget(self, query: str) -> None:
        """Let go of a query that is over, or is not measured any more."""
        memory = self._memories.pop(query, None)
        if memory is not None and self._row_limits.forget(query, memory):
            self.stale = True

    def wanted(self, queries: Iterable[str]) -> PolicyWants:
        """Say what policies want in all; `queries` are those that live."""
        granted = [query in self._memories and self._memories[query].granted is not None for query in queries]
        return PolicyWants(
            executors=self._executors,
            by=self._executors_by,
            of_all=bool(granted) and all(granted),
            batch=self._batch.demand if self._heeds_batch else None,
        )

    @property
    def due(self) -> int | None:
        """When the policies are to be asked (epoch ms), None: when something happens."""
        soonest = self._decided + EVERY_MS
        if self.customs.fresh:
            return self._decided
        if self.stale:
            return soonest
        at = _soonest(self._wished_at, self.customs.retry_at)
        return None if at is None else max(soonest, at)

    @property
    def _wished_at(self) -> int | None:
        """When policies want to be asked again at the latest (epoch ms), None: when something happens."""
        return _soonest(self._until, self._batch.until)

    def has_to_decide(self, now: int) -> bool:
        """Say whether the policies are to be asked now."""
        due = self.due
        return due is not None and now >= due

    def decide(
        self, records: Mapping[str, QueryRecord], pool: SlotPool, supply: Supply, turn: Turn
    ) -> tuple[str, ...]:
        """Ask the policies; return the queries that are granted something else now.

        `records` are those of the queries that live.
        """
        if turn.now >= self._decided + EVERY_MS:  # else it is only that a custom policy has answered
            if self.stale or turn.now >= (self._wished_at or math.inf):
                self.customs.happened()
            self.stale, self._decided = False, turn.now
        self.customs.fresh = False
        self.plans += 1
        self._begin_anew(records, turn)
        view = self.view(records, pool, supply, turn.now)
        if not view.queries and view.batch is None:
            self._decided = 0  # there was nothing to decide about: what comes first waits for nothing
        chains = {query.settings.policy for query in view.queries.values()}
        if self.settings.measures:
            chains.add(self.settings.policy)
        changed = []
        heeds = False
        wants = Wish()
        until: int | None = None
        shown: dict[str, ClusterView] = {}
        for names in sorted(chains):
            wish = self.customs.decide(names, POLICIES, view, shown)
            wants = joined(wants, wish)
            if wish.batch is not None and names == self.settings.policy:
                self._batch.wants(wish.batch, turn)
                heeds = not self.settings.advise_only
            granted = grant(wish, view)
            for query, metrics in view.queries.items():
                if metrics.settings.policy == names:
                    if query in granted:
                        until = _soonest(until, granted[query].wish.until)
                    self._for_batches(metrics, records[query], granted.get(query), turn)
                    limited = self._limit(metrics, wish.limits.get(query, ()), turn)
                    if self._grant(metrics, granted.get(query), turn) or limited:
                        changed.append(query)
        self._until = _soonest(wants.until, until)
        executors = wants.executors or 0
        if not self.settings.advise_only and executors != self._executors:
            self._executors, self._executors_by = executors, wants.executors_by
        self._heeds_batch = heeds
        self.customs.ask(shown, turn)
        self._row_limits.release(records, turn)
        return tuple(changed)

    def _begin_anew(self, records: Mapping[str, QueryRecord], turn: Turn) -> None:
        """Take up what is kept beside the checkpoints of queries that a policy has not decided about yet."""
        for query, record in records.items():
            if (record.settings or self.settings).measures:
                memory = self._memories.setdefault(query, QueryMemory())
                if not memory.begun:
                    memory.begun = True
                    recall_batches(record, memory, turn)

    def view(
        self, records: Mapping[str, QueryRecord], pool: SlotPool, supply: Supply, at: int
    ) -> ClusterView:
        """Show the policies the application, with the queries that they are to decide about."""
        queries = {}
        for query, record in records.items():
            if (record.settings or self.settings).measures:
                memory = self._memories.setdefault(query, QueryMemory())
                queries[query] = query_metrics(record, memory, self.settings)
        in_force = (record.requirements for record in records.values())
        return cluster_view(
            at, self.settings, pool, supply, self._since, self._startups.took_ms, self._executors, queries,
            waiting=self._startups.waiting,
            needed=needed_slots(in_force, self.settings.max_parallelism),
            batch=self._batch.metrics(at) if supply.allowed else None,
        )  # fmt: skip

    def _limit(self, query: QueryMetrics, limits: tuple[SlotLimits, ...], turn: Turn) -> bool:
        """Take over the limits that policies state for a query; say whether they are others than before."""
        memory = self._memories[query.query]
        before, memory.limits = memory.limits, limits
        if limits == before:
            return False
        shown = shown_limits(query.lower, query.upper, limits)
        if shown or shown_limits(query.lower, query.upper, before):
            numbers: dict[str, Number] = {"limits": shown, "slots": turn.slots}
            reason = "slots_limited" if shown else "slots_not_limited"
            said = reasons.advised(reasons.message(reason, **numbers), only=self.settings.advise_only)
            turn.publish(reason, said, query=query.query, before=None, after=None, numbers=numbers)
        return not self.settings.advise_only

    def _for_batches(
        self, query: QueryMetrics, record: QueryRecord, granted: Granted | None, turn: Turn
    ) -> None:
        """Limit what micro-batches of a query read, and have kept what they take."""
        memory = self._memories[query.query]
        wanted = granted.wish.most_rows if granted is not None and not self.settings.advise_only else None
        self._row_limits.limit(query, record, memory, wanted, turn)
        keep_batches(record, memory, turn)

    def _grant(self, query: QueryMetrics, granted: Granted | None, turn: Turn) -> bool:
        """Take over what a query is granted, None: nothing; say whether that is something else."""
        memory = self._memories[query.query]
        if granted is None:
            memory.decided = None
            before, memory.granted = memory.granted, None
            return before is not None
        wish = granted.wish
        memory.wants(
            turn.now, wish.unsmoothed or wish.slots, query.settings.scale_down_window_ms, wish.rows_per_ms
        )
        before = memory.granted or query.slots
        memory.decided, memory.before = granted, before
        self._tell(query.query, memory, granted, before, turn)
        if self.settings.advise_only or granted.slots == memory.granted:
            return False
        if memory.granted is not None and granted.slots > memory.granted:
            memory.raised_at = turn.now
        memory.granted, memory.granted_at = granted.slots, turn.now
        return True

    def _tell(self, query: str, memory: QueryMemory, granted: Granted, before: int, turn: Turn) -> None:
        """Publish a decision, if it is another one than the last."""
        wish = granted.wish
        told = (wish.reason, granted.slots, (granted.reason or "") + granted.by)
        if told == memory.told or turn.now < memory.told_at + _patience_ms(memory.told, told):
            return
        memory.told, memory.told_at = told, turn.now
        numbers: dict[str, Number] = {**wish.told, "slots": turn.slots, "wanted": wish.slots}
        said = sentence(granted, before, numbers, advise_only=self.settings.advise_only)
        turn.publish(
            wish.reason, said, query=query, before=before, after=granted.slots,
            numbers=numbers, until=wish.until,
        )  # fmt: skip

    def validate(self) -> None:
        """Check what is remembered. Raises AssertionError."""
        for memory in self._memories.values():
            memory.validate()
        self.customs.validate()
        self._batch.validate()
        self._startups.validate()


def _soonest(one: int | None, other: int | None) -> int | None:
    """Return the sooner of two times, None: never."""
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
