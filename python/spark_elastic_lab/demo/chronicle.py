"""The past of an application as its journal records it, in the form the scenario and the checks need."""

from __future__ import annotations

from collections import deque

from attrs import define, field, frozen

from spark_elastic.core.actions import (
    Action,
    Decision,
    DecommissionExecutors,
    KillExecutors,
    Report,
    RequestExecutors,
)
from spark_elastic.core.cluster.slots import SlotPool, TaskSize
from spark_elastic.core.events import (
    Event,
    ExecutorAdded,
    ExecutorDecommissioning,
    ExecutorRemoved,
    QueryEvent,
    QueryFacts,
    QueryProgress,
    QuerySubmitted,
    QueryTerminated,
    Snapshot,
)
from spark_elastic.core.reasons.policies import POLICY_REASONS
from spark_elastic.runtime.entries import ActionsEntry, Entry, EventEntry

# Enough for an hour of half-second triggers; with --keep, a demonstration may run for days.
_BATCHES_KEPT = 7200


@frozen(kw_only=True)
class Batch:
    """One committed micro-batch; times in epoch ms."""

    number: int
    started: int
    ended: int
    partitions: int
    rows: int


@frozen(kw_only=True)
class ExecutorChange:
    """An executor was added, removed or began decommissioning; `at` in epoch ms."""

    kind: str
    executor: str
    at: int


@frozen(kw_only=True)
class Ordered:
    """A request for `total` executors, or the release of these `executors`, for a `reason`; `at` in epoch ms.

    `why` is the reason for which a policy last changed the slots of a query, "" if none has.
    """

    at: int
    total: int | None = None
    executors: tuple[str, ...] = ()
    reason: str
    why: str


@define
class QueryChronicle:
    """The past of one query.

    `follows_slots`: its partition count can change while it runs. `reasons`: the reasons of all decisions
    about it.
    """

    query: str
    name: str
    stateful: bool
    trigger_ms: int
    follows_slots: bool = True
    most_behind: int | None = None
    rescales: int = 0
    error: str | None = None
    reasons: set[str] = field(factory=set)
    batches: deque[Batch] = field(factory=lambda: deque(maxlen=_BATCHES_KEPT))

    def progress(self, event: QueryProgress) -> None:
        """Record a committed micro-batch."""
        if event.offsets_behind is not None:
            self.most_behind = max(self.most_behind or 0, event.offsets_behind.max)
        self.batches.append(
            Batch(
                number=event.batch,
                started=event.started,
                ended=event.started + event.duration_ms,
                partitions=event.partitions,
                rows=event.input_rows,
            )
        )

    @property
    def is_in_time(self) -> bool:
        """Whether the last micro-batch took no longer than the trigger interval."""
        return bool(self.batches) and self.batches[-1].ended - self.batches[-1].started <= self.trigger_ms

    def in_force_since(self, partitions: int | None, after: int) -> int | None:
        """Return the start of the first batch with `partitions` (None: any number) at or after `after`.

        Return None if there is none.
        """
        return next(
            (b.started for b in self.batches if b.started >= after and partitions in (None, b.partitions)),
            None,
        )


@define
class Chronicle:
    """All queries and executors of one application, built from the entries of its journal one by one."""

    application: str = ""
    spark_version: str = ""
    slots: SlotPool = field(factory=SlotPool)
    queries: dict[str, QueryChronicle] = field(factory=dict)
    changes: list[ExecutorChange] = field(factory=list)
    ordered: list[Ordered] = field(factory=list)
    decided: int = 0
    _last: Decision | None = None
    _why: str = ""

    def read(self, entry: Entry) -> None:
        """Process one entry of a journal."""
        match entry:
            case EventEntry(event=event):
                self.follow(event)
            case ActionsEntry(actions=actions):
                for action in actions:
                    self.order(action)

    def follow(self, event: Event) -> None:
        """Process an event; a second snapshot, from a restarted policy process, continues from the first."""
        if isinstance(event, Snapshot):
            self._take_over(event)
        self.slots.apply(event)
        self._follow_executors(event)
        self._follow_queries(event)

    def order(self, action: Action) -> None:
        """Process an action of the policy process."""
        match action:
            case Report(decision=decision):
                self._decided(decision)
            case RequestExecutors(total=total):
                self._order_executors(total=total)
            case DecommissionExecutors(executors=executors) | KillExecutors(executors=executors):
                self._order_executors(executors=executors)

    def _decided(self, decision: Decision) -> None:
        self.decided += 1
        self._last = decision
        query = self.queries.get(decision.query or "")
        if query is None:
            return
        query.reasons.add(decision.reason)
        query.rescales += decision.reason in ("rescaled", "rescaled_prepared", "rescaled_unheard")
        if decision.reason in POLICY_REASONS and decision.before != decision.after:
            self._why = decision.reason

    def _order_executors(self, total: int | None = None, executors: tuple[str, ...] = ()) -> None:
        """Record an order together with the decision before it, which holds its reason."""
        if self._last is not None:
            said = self._last
            self.ordered.append(
                Ordered(at=said.at, total=total, executors=executors, reason=said.reason, why=self._why)
            )

    def _take_over(self, event: Snapshot) -> None:
        self.application = event.application_name
        self.spark_version = event.spark_version
        known = self.slots.executors
        for executor in event.executors:
            if executor.executor not in known:
                self.changes.append(ExecutorChange(kind="added", executor=executor.executor, at=event.at))
        self.slots.replace(event.executors, TaskSize.of(event.conf))
        for info in event.queries:
            self._adopt(info.facts)

    def _adopt(self, facts: QueryFacts) -> None:
        if facts.query not in self.queries:
            self.queries[facts.query] = QueryChronicle(
                facts.query,
                facts.name or facts.query[:8],
                facts.stateful,
                facts.trigger_ms,
                follows_slots=facts.moves_state if facts.stateful else facts.in_place,
            )

    def _follow_executors(self, event: Event) -> None:
        match event:
            case ExecutorAdded(executor=executor, at=at):
                self.changes.append(ExecutorChange(kind="added", executor=executor, at=at))
            case ExecutorRemoved(executor=executor, at=at):
                self.changes.append(ExecutorChange(kind="removed", executor=executor, at=at))
            case ExecutorDecommissioning(executor=executor, at=at):
                self.changes.append(ExecutorChange(kind="decommissioning", executor=executor, at=at))

    def _follow_queries(self, event: Event) -> None:
        if isinstance(event, QuerySubmitted):
            self._adopt(event.facts)
        if not isinstance(event, QueryEvent) or event.query not in self.queries:
            return
        query = self.queries[event.query]
        match event:
            case QueryProgress():
                query.progress(event)
            case QueryTerminated(error=error):
                query.error = error
