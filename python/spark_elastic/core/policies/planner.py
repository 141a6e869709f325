"""Asks the policies, puts what they want within limits, and remembers what they go by.

A policy is asked when something has happened that it may go by, and when it said so; not more often than once
a second, since a decision looks at all queries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import define, field

from spark_elastic.core import events as ev
from spark_elastic.core import reasons
from spark_elastic.core.alarm import Alarm
from spark_elastic.core.bounds.requirements import Requirements
from spark_elastic.core.cluster.slots import SlotPool
from spark_elastic.core.cluster.supply import PolicyWants, Supply
from spark_elastic.core.policies.catalogue import POLICIES
from spark_elastic.core.policies.limits import Granted, grant, narrowed
from spark_elastic.core.policies.memory import QueryMemory
from spark_elastic.core.policies.sight import cluster_view, query_figures
from spark_elastic.core.policies.view import ClusterView
from spark_elastic.core.query.internal_events import BoundsChanged, SettingsChanged
from spark_elastic.core.query.record import QueryRecord
from spark_elastic.core.sentences import fill
from spark_elastic.core.settings import CoreSettings
from spark_elastic.core.turn import Number, Turn

EVERY_MS = 1_000
"""The shortest time between two decisions."""

_REPEAT_MS = 60_000
"""The shortest time after which it is said why nothing changes, in other words than before."""

_QUIET_MS = 600_000
"""The same where it is between reasons that a load near the band goes to and fro between."""

_QUIET = frozenset({"autoscale_keeps", "autoscale_down_waits", "autoscale_settling"})
_STARTUPS = 10


def _patience_ms(before: tuple[str, int, str] | None, now: tuple[str, int, str]) -> int:
    """Tell how long nothing is said after what was said last; other slots are said at once."""
    if before is None or before[1] != now[1]:
        return 0
    return _QUIET_MS if {before[0], now[0]} <= _QUIET else _REPEAT_MS


@define
class Planner:
    """What the policies of one application remember, by query.

    `since` is when each executor came (epoch ms), `asked` when executors were requested that have not come
    yet, None if all have, `startups_ms` how long the last ones took. `stale` says that something has happened
    since the policies were asked, which was at `decided` (epoch ms).
    """

    settings: CoreSettings
    alarm: Alarm = field(factory=Alarm)
    stale: bool = False
    _memories: dict[str, QueryMemory] = field(factory=dict)
    _since: dict[str, int] = field(factory=dict)
    _asked: int | None = None
    _startups_ms: tuple[int, ...] = ()
    _decided: int = 0
    _executors: int = 0

    def begin(self, executors: Iterable[ev.ExecutorInfo], at: int) -> None:
        """Take in what a snapshot shows; timers that were set are not, any more."""
        self.alarm.lost()
        self._since = {info.executor: self._since.get(info.executor, at) for info in executors}
        self._asked = None
        self.stale = bool(self._memories)

    def executor_event(self, event: ev.ExecutorEvent, supply: Supply, pool: SlotPool) -> None:
        """Take in that an executor has come or gone."""
        match event:
            case ev.ExecutorAdded(executor=executor) if executor not in self._since:
                self._since[executor] = event.at
                if self._asked is not None:
                    self._startups_ms = (*self._startups_ms, max(0, event.at - self._asked))[-_STARTUPS:]
                    if len(pool.usable) >= (supply.demand.requested or 0):
                        self._asked = None
            case ev.ExecutorRemoved(executor=executor):
                self._since.pop(executor, None)

    def requested(self, at: int, before: int | None, supply: Supply, pool: SlotPool) -> None:
        """Take in that other executors may have been requested; `before` is how many were until now."""
        total = supply.demand.requested
        if total == before:
            return
        if total is None or total <= len(pool.executors):
            self._asked = None
        elif self._asked is None or total > (before or 0):
            self._asked = at

    def requirements(self, query: str, declared: Requirements, own: CoreSettings) -> Requirements:
        """Give the requirements that are in force by what is declared for a query and granted to a policy."""
        if not own.measures:
            self.forget(query)
            return declared
        memory = self._memories.get(query)
        if memory is None or memory.granted is None:
            return declared
        return narrowed(declared, memory.granted)

    def told(self, record: QueryRecord, event: object, at: int, *, surplus: bool) -> None:
        """Take in an event that a query has taken in.

        With a `surplus` there are executors that nobody wants: tasks run on them, too, so a batch does not
        tell what it takes with the slots that its query was granted.
        """
        own = record.settings or self.settings
        if not own.measures or isinstance(event, ev.StageCompleted):
            return
        memory = self._memories.get(record.facts.query)
        if memory is None:
            memory = self._memories[record.facts.query] = QueryMemory()
            self._decided = 0  # what it is granted is said before executors are requested for it
        if record.known_share.slots > 0:
            memory.runs_with(at, record.known_share.slots, record.partitions)
        if record.rescales and record.rescale_cost_ms is not None:
            memory.paused_for(record.rescales[-1], record.rescale_cost_ms)
        batch = record.pace.latest
        if isinstance(event, ev.QueryProgress) and event.run == record.run and batch is not None:
            memory.batch(
                event, batch, at, alone=not surplus, total=record.known_share.total,
                interval_ms=record.facts.trigger_ms,
            )  # fmt: skip
        if isinstance(event, ev.QueryIdle) and event.run == record.run:
            memory.rested(at)
        if memory.granted is None or isinstance(
            event, ev.QueryProgress | ev.QueryIdle | SettingsChanged | BoundsChanged
        ):
            self.stale = True  # nothing else tells what a query needs

    def forget(self, query: str) -> None:
        """Let go of a query that is over, or is not measured any more."""
        self._memories.pop(query, None)

    def wanted(self, queries: Iterable[str]) -> PolicyWants:
        """Say what policies want in all; `queries` are those that live."""
        granted = [query in self._memories and self._memories[query].granted is not None for query in queries]
        return PolicyWants(executors=self._executors, of_all=bool(granted) and all(granted))

    @property
    def due(self) -> int | None:
        """When the policies are to be asked (epoch ms), None: when something happens."""
        soonest = self._decided + EVERY_MS
        if self.stale:
            return soonest
        times = [memory.until for memory in self._memories.values() if memory.until is not None]
        return max(soonest, min(times)) if times else None

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
        self.stale, self._decided = False, turn.now
        view = self.view(records, pool, supply, turn.now)
        changed = []
        executors = 0
        for name in sorted({query.settings.policy for query in view.queries.values()}):
            wish = POLICIES[name].decide(view)
            executors = max(executors, wish.executors or 0)
            for query, granted in grant(wish, view).items():
                if view.queries[query].settings.policy == name and self._grant(query, granted, view, turn):
                    changed.append(query)
        if not self.settings.advise_only and executors != self._executors:
            self._executors = executors
            supply.stale = True
        return tuple(changed)

    def view(
        self, records: Mapping[str, QueryRecord], pool: SlotPool, supply: Supply, at: int
    ) -> ClusterView:
        """Show the policies the application, with the queries that they are to decide about."""
        queries = {}
        for query, record in records.items():
            if (record.settings or self.settings).measures:
                memory = self._memories.setdefault(query, QueryMemory())
                queries[query] = query_figures(record, memory, self.settings)
        return cluster_view(at, self.settings, pool, supply, self._since, self._startups_ms, queries)

    def _grant(self, query: str, granted: Granted, view: ClusterView, turn: Turn) -> bool:
        """Take over what a query is granted; say whether that is something else than before."""
        memory, wish = self._memories[query], granted.wish
        window = view.queries[query].settings.scale_down_window_ms
        memory.wants(turn.now, wish.unsmoothed or wish.slots, window, wish.rows_per_ms)
        memory.until = wish.until
        before = memory.granted or view.queries[query].slots
        self._tell(query, memory, granted, before, turn)
        if self.settings.advise_only or granted.slots == memory.granted:
            return False
        if memory.granted is not None and granted.slots > memory.granted:
            memory.raised_at = turn.now
        memory.granted, memory.granted_at = granted.slots, turn.now
        return True

    def _tell(self, query: str, memory: QueryMemory, granted: Granted, before: int, turn: Turn) -> None:
        """Publish a decision, if it is another one than the last."""
        wish = granted.wish
        told = (wish.reason, granted.slots, granted.reason or "")
        if told == memory.told or turn.now < memory.told_at + _patience_ms(memory.told, told):
            return
        memory.told, memory.told_at = told, turn.now
        numbers: dict[str, Number] = {**wish.numbers, "slots": turn.slots, "wanted": wish.slots}
        said = reasons.message(wish.reason, **numbers, before=before, after=wish.slots)
        if granted.reason is not None:
            said += " " + reasons.message(granted.reason, **numbers, before=before, after=granted.slots)
        if self.settings.advise_only:
            said = fill(reasons.ADVICE, message=said)
        turn.publish(
            wish.reason, said, query=query, before=before, after=granted.slots, numbers=numbers,
            until=wish.until,
        )  # fmt: skip

    def validate(self) -> None:
        """Check what is remembered. Raises AssertionError."""
        for memory in self._memories.values():
            memory.validate()
        assert len(self._startups_ms) <= _STARTUPS
