"""What a journal says about the world, in the form in which the views and checks read it."""

from __future__ import annotations

from collections import deque

from attrs import define, field, frozen

from spark_elastic.core.actions import Action, Decision, HoldQuery, Report, StopQuery
from spark_elastic.core.events import (
    Event,
    ExecutorAdded,
    ExecutorDecommissioning,
    ExecutorRemoved,
    OffsetsBehind,
    QueryEvent,
    QueryInfo,
    QueryProgress,
    QueryStarted,
    QueryStopped,
    QuerySubmitted,
    QueryTerminated,
    Snapshot,
)
from spark_elastic.core.slots import SlotPool
from spark_elastic.runtime.entries import ActionsEntry, Entry, EventEntry

# Enough for an hour of half-second triggers; a view may run for days.
_BATCHES_KEPT = 7200
_DECISIONS_KEPT = 200


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
    """An executor came, went, or takes no new tasks; `at` in epoch ms."""

    kind: str
    executor: str
    at: int


@define
class QueryBoard:
    """One query: its state in a word, its last figures and its past."""

    query: str
    name: str
    stateful: bool
    trigger_ms: int
    state: str = "submitted"
    partitions: int | None = None
    rows_per_second: float = 0.0
    batch_ms: int = 0
    offsets_behind: OffsetsBehind | None = None
    most_behind: int | None = None
    restarts: int = 0
    error: str | None = None
    decision: Decision | None = None
    batches: deque[Batch] = field(factory=lambda: deque(maxlen=_BATCHES_KEPT))

    def progress(self, event: QueryProgress) -> None:
        """Take over the figures of a committed micro-batch."""
        self.state = "running"
        self.partitions = event.partitions
        self.rows_per_second = event.input_rows_per_second
        self.batch_ms = event.duration_ms
        self.offsets_behind = event.offsets_behind
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

    def in_force_since(self, partitions: int, after: int) -> int | None:
        """Return when the first batch with `partitions` began, not before `after`; None if none did."""
        return next(
            (b.started for b in self.batches if b.started >= after and b.partitions == partitions), None
        )


@define
class Board:
    """All queries and executors of one application, following the entries of its journal one by one."""

    application: str = ""
    spark_version: str = ""
    slots: SlotPool = field(factory=SlotPool)
    queries: dict[str, QueryBoard] = field(factory=dict)
    changes: list[ExecutorChange] = field(factory=list)
    decisions: deque[Decision] = field(factory=lambda: deque(maxlen=_DECISIONS_KEPT))
    decided: int = 0

    def read(self, entry: Entry) -> None:
        """Follow one entry of a journal."""
        match entry:
            case EventEntry(event=event):
                self.follow(event)
            case ActionsEntry(actions=actions):
                for action in actions:
                    self.order(action)

    def follow(self, event: Event) -> None:
        """Follow an event; a second snapshot (of a restarted policy process) goes on from the first."""
        if isinstance(event, Snapshot):
            self._take_over(event)
        self.slots.apply(event)
        self._follow_executors(event)
        self._follow_queries(event)

    def order(self, action: Action) -> None:
        """Follow what the policy ordered."""
        match action:
            case Report(decision=decision):
                self.decided += 1
                self.decisions.append(decision)
                if decision.query in self.queries:
                    self.queries[decision.query].decision = decision
            case StopQuery(query=query) if query in self.queries:
                self.queries[query].state = "stopping"
            case HoldQuery(query=query) if query in self.queries:
                self.queries[query].state = "held"

    def _take_over(self, event: Snapshot) -> None:
        self.application = event.application_name
        self.spark_version = event.spark_version
        known = self.slots.executors
        for executor in event.executors:
            if executor.executor not in known:
                self.changes.append(ExecutorChange(kind="added", executor=executor.executor, at=event.at))
        self.slots.replace(event.executors, int(event.conf.get("spark.task.cpus", "1")))
        for info in event.queries:
            self._adopt(info)

    def _adopt(self, info: QueryInfo) -> None:
        board = self.queries.get(info.facts.query)
        if board is None:
            board = self.queries[info.facts.query] = QueryBoard(
                info.facts.query,
                info.facts.name or info.facts.query[:8],
                info.facts.stateful,
                info.facts.trigger_ms,
            )
        board.state = info.phase
        board.partitions = info.partitions

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
            self._adopt(QueryInfo(facts=event.facts, run=event.run, phase="held"))
        if not isinstance(event, QueryEvent | QueryStopped) or event.query not in self.queries:
            return
        board = self.queries[event.query]
        match event:
            case QueryProgress():
                board.progress(event)
            case QueryStarted(partitions=partitions):
                board.state = "running"
                board.partitions = partitions
            case QueryStopped():
                board.state = "restarting"
                board.restarts += 1
            case QueryTerminated(error=error):
                board.state = "failed" if error else "finished"
                board.error = error
