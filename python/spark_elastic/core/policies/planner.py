"""Asks the policies, fits their wishes into limits, and remembers what they depend on.

A policy is asked when something relevant has happened, and at the time that it has requested. It is asked at
most once a second, since a decision covers all queries.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from attrs import define, field, frozen

from spark_elastic.core import events as ev
from spark_elastic.core.bounds.requirements import Requirements, needed_slots
from spark_elastic.core.cluster.slots import SlotPool
from spark_elastic.core.cluster.supply import PolicyWants, Supply
from spark_elastic.core.events import BatchStages, TaskEvent
from spark_elastic.core.keys.policies import DECLARED, SCHEDULE
from spark_elastic.core.policies.autoscale.model import points
from spark_elastic.core.policies.autoscale.wishes import Autoscale
from spark_elastic.core.policies.batch_memory import BatchMemory
from spark_elastic.core.policies.custom import Customs, joined
from spark_elastic.core.policies.limits import Granted, grant, narrowed
from spark_elastic.core.policies.memory import QueryMemory, batches_not_kept, keep_batches, recall_batches
from spark_elastic.core.policies.policy import Outlook, Policy, Wish
from spark_elastic.core.policies.row_limits import RowLimits
from spark_elastic.core.policies.schedule import Schedule
from spark_elastic.core.policies.view import (
    BatchMetrics,
    ClusterView,
    ExecutorMetrics,
    QueryMetrics,
    Sample,
    SlotLimits,
    shown_limits,
)
from spark_elastic.core.query.internal_events import BoundsChanged, SettingsChanged
from spark_elastic.core.query.record import QueryRecord
from spark_elastic.core.reasons import catalogue
from spark_elastic.core.rescale.situation import is_movable
from spark_elastic.core.settings import CoreSettings
from spark_elastic.core.turn import Alarm, Number, Turn

# ---- The last decision of a policy about a query, as it can be inspected.


def sentence(granted: Granted, before: int, numbers: Mapping[str, Number], *, advise_only: bool) -> str:
    """Return the sentence on a wish for a query that had `before` slots, and on why it was trimmed."""
    wish = granted.wish
    said = catalogue.message(wish.reason, **numbers, before=before, after=wish.slots)
    if granted.reason is not None:
        trimmed: dict[str, Number] = {**numbers, "by": granted.by}
        said += " " + catalogue.message(granted.reason, **trimmed, before=before, after=granted.slots)
    return catalogue.advised(said, only=advise_only)


@frozen(kw_only=True)
class Plan:
    """The outcome of the last wish for one query, which had `before` slots then.

    With `advise_only` it is not applied. `samples` are the micro-batches that are known, the newest last. A
    micro-batch reads `most_rows` at most, None if only a limit of the user's own applies. `message` and
    `points` are put together only when a client reads them (`http/present.py`), not in a decision.
    """

    granted: Granted
    before: int
    advise_only: bool
    samples: tuple[Sample, ...]
    most_rows: int | None = None

    @property
    def outlook(self) -> Outlook | None:
        """The basis of the policy's decision, None while it is unknown."""
        return self.granted.wish.outlook

    @property
    def message(self) -> str:
        """The sentence that says what is wanted, and why."""
        return sentence(self.granted, self.before, self.granted.wish.told, advise_only=self.advise_only)

    @property
    def points(self) -> tuple[tuple[float, float], ...]:
        """The micro-batches to which a line can be fitted: rows per busy slot, and duration (ms)."""
        return tuple(points(self.samples))


# ---- The policy without a wish: only the declared bounds decide what a query has.


@frozen
class Declared:
    """The policy that wants nothing."""

    def decide(self, view: ClusterView) -> Wish:
        """Return no wish."""
        return Wish()


# ---- The policies by their names in ``spark.elastic.policy`` (`core/keys/policies.py`).


POLICIES: Mapping[str, Policy] = {DECLARED: Declared(), SCHEDULE: Schedule(), "autoscale": Autoscale()}


# ---- Builds the view of the application that a policy sees.


def query_metrics(record: QueryRecord, memory: QueryMemory, settings: CoreSettings) -> QueryMetrics:
    """Return the view of one query; `settings` are those of the application."""
    progress = record.load.last_progress
    own = record.settings or settings
    return QueryMetrics(
        query=record.facts.query,
        facts=record.facts,
        settings=own,
        requirements=record.declared,
        limited=memory.limits,
        slots=record.shares.known.slots,
        partitions=record.partitions,
        held=record.run_state == "held",
        idle=record.load.pace.idle and memory.running is None,
        moving=any(order.kind in ("rescale", "prepare") for order in record.orders.pending.values()),
        movable=is_movable(record.facts, record.checkpoint.provider, own),
        samples=memory.samples,
        earlier=memory.earlier,
        running=memory.running,
        applied=memory.applied,
        wanted=memory.wanted,
        granted=memory.granted,
        granted_at=memory.granted_at,
        raised_at=memory.raised_at,
        pauses_ms=memory.pauses_ms,
        state_bytes=0 if progress is None else progress.state_bytes,
        throttled=bool(memory.throttled),
    )


def cluster_view(
    at: int,
    settings: CoreSettings,
    pool: SlotPool,
    supply: Supply,
    since: Mapping[str, int],
    startups_ms: tuple[int, ...],
    least_executors: int,
    queries: Mapping[str, QueryMetrics],
    *,
    waiting: tuple[tuple[int, int], ...] = (),
    needed: int = 0,
    batch: BatchMetrics | None = None,
) -> ClusterView:
    """Return the view of the application; `since` is when each executor came (epoch ms)."""
    executors = tuple(
        ExecutorMetrics(executor=id, slots=slots, since=since.get(id, at), held_bytes=pool.held_bytes(id))
        for id, slots in pool.usable.items()
    )
    return ClusterView(
        at=at,
        mode=settings.mode,
        settings=settings,
        slots=pool.total,
        usual_slots=max(pool.usable.values(), default=supply.demand.usual_slots),
        executors=executors,
        requested=supply.demand.requested,
        least_executors=least_executors,
        waiting=waiting,
        startups_ms=startups_ms,
        needed=needed,
        queries=queries,
        batch=batch,
    )


# ---- How long executors take to come: each is matched with the request that has waited longest.


_KEPT = 10
_WAITING = 64


@define
class StartUps:
    """The requests that are open, and how long the last executors took to come.

    `waiting` has the totals that were requested, in ascending order, each with its time (epoch ms). `took_ms`
    are the times from a request until the executor was there, the newest last.
    """

    waiting: tuple[tuple[int, int], ...] = ()
    took_ms: tuple[int, ...] = ()

    def lost(self) -> None:
        """Forget the requests, since their outcome is unknown."""
        self.waiting = ()

    def requested(self, at: int, total: int | None, here: int) -> None:
        """Note the total that is requested now, None if there is none, while `here` executors are there."""
        if total is None or total <= here:
            self.waiting = ()
            return
        # An executor that an earlier request asked for, and that is still wanted, is awaited since then.
        since = next((when for earlier, when in self.waiting if earlier >= total), at)
        fewer = [one for one in self.waiting if one[0] < total]
        self.waiting = (*fewer, (total, since))[-_WAITING:]

    def came(self, at: int, here: int) -> None:
        """Note that an executor has come; with it `here` are there."""
        since = next((when for total, when in self.waiting if total >= here), None)
        if since is not None:
            self.took_ms = (*self.took_ms, max(0, at - since))[-_KEPT:]
        self.waiting = tuple(one for one in self.waiting if one[0] > here)

    def validate(self) -> None:
        """Check that the requests are bounded and in order. Raises AssertionError."""
        assert len(self.took_ms) <= _KEPT
        assert len(self.waiting) <= _WAITING
        assert [total for total, _ in self.waiting] == sorted({total for total, _ in self.waiting})


EVERY_MS = 1_000
"""The shortest time between two decisions."""

_REPEAT_MS = 60_000
"""The shortest time between two reports that give different reasons for the same slots."""

_QUIET_MS = 600_000
"""The same between reasons that a load near the band alternates between."""

_QUIET = frozenset({"autoscale_keeps", "autoscale_down_waits", "autoscale_settling"})


def _patience_ms(before: tuple[str, int, str] | None, now: tuple[str, int, str]) -> int:
    """Return how long the next report waits after the last one; a change of slots is reported at once."""
    if before is None or before[1] != now[1]:
        return 0
    return _QUIET_MS if {before[0], now[0]} <= _QUIET else _REPEAT_MS


@define
class Planner:
    """The memory of one application's policies, by query.

    `batch` is what is known about batch stages, and `heeds_batch` says that executors are requested for them.
    `since` is when each executor came (epoch ms), `startups` how long the last ones took. `stale` says that
    something has happened since the policies were asked, which was at `decided`. They are asked again at
    `until` (epoch ms), or after the next event if None. `executors` is the minimum that they want,
    `executors_by` names who wants it.
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
        """Process a snapshot; timers that were set before it are lost."""
        self.alarm.lost()
        self.customs.lost()
        self._since = {info.executor: self._since.get(info.executor, at) for info in executors}
        self._startups.lost()
        self._batch.begin()
        for memory in self._memories.values():
            memory.throttled = ()  # the shim has lifted all limits, too
            memory.running = None
        self._row_limits.lost()
        self.stale = bool(self._memories) or self.settings.measures

    def batch_event(self, event: BatchStages) -> None:
        """Process a report of the batch stages."""
        if self.settings.measures and self.settings.batch_gain is not None:
            self._batch.take(event)
            self.stale = self.stale or self._batch.seen

    def executor_event(self, event: ev.ExecutorEvent, pool: SlotPool) -> None:
        """Process an executor's arrival or loss."""
        match event:
            case ev.ExecutorAdded(executor=executor) if executor not in self._since:
                self._since[executor] = event.at
                self._startups.came(event.at, len(pool.executors))
            case ev.ExecutorRemoved(executor=executor):
                self._since.pop(executor, None)

    def requested(self, at: int, before: int | None, supply: Supply, pool: SlotPool) -> None:
        """Process a possible change of the requested executors; `before` is the number until now."""
        total = supply.demand.requested
        if total != before:
            self._startups.requested(at, total, len(pool.executors))

    def requirements(self, query: str, declared: Requirements, own: CoreSettings) -> Requirements:
        """Return a query's requirements in force, from what is declared for it and granted to a policy."""
        if not own.measures:
            self.forget(query)
            return declared
        memory = self._memories.get(query)
        if memory is None:
            return declared
        limits = () if self.settings.advise_only else memory.limits
        return narrowed(declared, memory.granted, limits)

    def told(self, record: QueryRecord, event: object, at: int, *, surplus: bool) -> None:
        """Process an event that a query has processed.

        With a `surplus` there are executors that are not wanted. Tasks run on them too, so a batch does not
        show how long it takes with the slots that its query was granted. Nor does it alongside batch stages
        or a copy of the state.
        """
        own = record.settings or self.settings
        if not own.measures or isinstance(event, TaskEvent):
            return
        if record.facts.query not in self._memories:
            self._decided = 0  # its grant has to come before executors are requested for it
        memory = self._memory(record.facts.query)
        if isinstance(event, ev.ActionFailed):
            self._row_limits.failed(event, memory)
            batches_not_kept(event, memory)
        if record.shares.known.slots > 0:
            memory.runs_with(at, record.shares.known.slots, record.partitions)
        if record.moves.ended and record.moves.pause_ms is not None:
            memory.paused_for(record.moves.ended[-1], record.moves.pause_ms)
        batch = record.load.pace.latest
        if isinstance(event, ev.QueryProgress) and event.run == record.run and batch is not None:
            beside_others = surplus or self._batch.busy or record.state.preparing is not None
            memory.batch(
                event, batch, at, alone=not beside_others, total=record.shares.known.total,
                interval_ms=record.facts.trigger_ms,
            )  # fmt: skip
        if isinstance(event, ev.QueryIdle) and event.run == record.run:
            memory.rested(at)
        if isinstance(event, ev.BatchPlanned) and event.run == record.run:
            pace = record.load.pace
            before = pace.started if pace.run == event.run else None
            memory.planned(event, at, before, record.facts.trigger_ms, record.shares.known.slots)
        if isinstance(event, ev.QueryFailed):
            memory.running = None
        if memory.granted is None or isinstance(
            event, ev.BatchPlanned | ev.QueryProgress | ev.QueryIdle | SettingsChanged | BoundsChanged
        ):
            self.stale = True  # no other event shows what a query needs

    def plan(self, query: str) -> Plan | None:
        """Return the last decision about a query, None before that and if only its bounds count."""
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
        """Forget a query that has ended, or is not measured any more."""
        memory = self._memories.pop(query, None)
        if memory is not None and self._row_limits.forget(query, memory):
            self.stale = True

    def wanted(self, queries: Iterable[str]) -> PolicyWants:
        """Return what policies want in all; `queries` are the live ones."""
        granted = [query in self._memories and self._memories[query].granted is not None for query in queries]
        return PolicyWants(
            executors=self._executors,
            by=self._executors_by,
            of_all=bool(granted) and all(granted),
            batch=self._batch.demand if self._heeds_batch else None,
        )

    @property
    def due(self) -> int | None:
        """When the policies must be asked (epoch ms), None to wait for the next event."""
        soonest = self._decided + EVERY_MS
        if self.customs.fresh:
            return self._decided
        if self.stale:
            return soonest
        at = _soonest(self._wished_at, self.customs.retry_at)
        return None if at is None else max(soonest, at)

    @property
    def _wished_at(self) -> int | None:
        """The latest time at which policies want to be asked again (epoch ms), None if they name none."""
        return _soonest(self._until, self._batch.until)

    def has_to_decide(self, now: int) -> bool:
        """Return whether the policies must be asked now."""
        due = self.due
        return due is not None and now >= due

    def decide(
        self, records: Mapping[str, QueryRecord], pool: SlotPool, supply: Supply, turn: Turn
    ) -> tuple[str, ...]:
        """Ask the policies; return the queries whose grants or limits have changed.

        `records` are those of the live queries.
        """
        if turn.now >= self._decided + EVERY_MS:  # else only a custom policy has answered
            if self.stale or turn.now >= (self._wished_at or math.inf):
                self.customs.happened()
            self.stale, self._decided = False, turn.now
        self.customs.fresh = False
        self.plans += 1
        self._begin_anew(records, turn)
        view = self.view(records, pool, supply, turn.now)
        if not view.queries and view.batch is None:
            self._decided = 0  # there was nothing to decide about, so the first decision need not wait
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
        """Restore what is kept beside the checkpoints of queries that no policy has decided about yet."""
        for query, record in records.items():
            if (record.settings or self.settings).measures:
                memory = self._memory(query)
                if not memory.begun:
                    memory.begun = True
                    recall_batches(record, memory, turn)

    def view(
        self, records: Mapping[str, QueryRecord], pool: SlotPool, supply: Supply, at: int
    ) -> ClusterView:
        """Return the view for the policies, with the queries that they decide about."""
        queries = {}
        for query, record in records.items():
            if (record.settings or self.settings).measures:
                queries[query] = query_metrics(record, self._memory(query), self.settings)
        in_force = (record.requirements for record in records.values())
        return cluster_view(
            at, self.settings, pool, supply, self._since, self._startups.took_ms, self._executors, queries,
            waiting=self._startups.waiting,
            needed=needed_slots(in_force, self.settings.max_parallelism),
            batch=self._batch.metrics(at) if supply.allowed else None,
        )  # fmt: skip

    def _memory(self, query: str) -> QueryMemory:
        """Return what is remembered of a query, nothing at first."""
        memory = self._memories.get(query)
        if memory is None:
            memory = self._memories[query] = QueryMemory()
        return memory

    def _limit(self, query: QueryMetrics, limits: tuple[SlotLimits, ...], turn: Turn) -> bool:
        """Apply the limits that policies state for a query; return whether they have changed."""
        memory = self._memories[query.query]
        before, memory.limits = memory.limits, limits
        if limits == before:
            return False
        shown = shown_limits(query.lower, query.upper, limits)
        if shown or shown_limits(query.lower, query.upper, before):
            numbers: dict[str, Number] = {"limits": shown, "slots": turn.slots}
            reason = "slots_limited" if shown else "slots_not_limited"
            said = catalogue.advised(catalogue.message(reason, **numbers), only=self.settings.advise_only)
            turn.publish(reason, said, query=query.query, before=None, after=None, numbers=numbers)
        return not self.settings.advise_only

    def _for_batches(
        self, query: QueryMetrics, record: QueryRecord, granted: Granted | None, turn: Turn
    ) -> None:
        """Limit the rows that a query's micro-batches read, and order that their durations are kept."""
        memory = self._memories[query.query]
        wanted = granted.wish.most_rows if granted is not None and not self.settings.advise_only else None
        self._row_limits.limit(query, record, memory, wanted, turn)
        keep_batches(record, memory, turn)

    def _grant(self, query: QueryMetrics, granted: Granted | None, turn: Turn) -> bool:
        """Apply what a query is granted, None for nothing; return whether it has changed."""
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
        """Publish a decision if it differs from the last one."""
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
    """Return the earlier of two times; None is never."""
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
