"""Scenes for tests: a scheduler, a clock that the test moves, and events with defaults."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from attrs import define, evolve, field

from spark_elastic.core import events as ev
from spark_elastic.core.actions import (
    Action,
    CancelTimer,
    Decision,
    PrepareMove,
    Report,
    Rescale,
    SetTimer,
    ordered_for,
)
from spark_elastic.core.bounds.declared import WantedBounds
from spark_elastic.core.events import SourceRead
from spark_elastic.core.query_view import QueryView
from spark_elastic.core.scheduler import Scheduler
from spark_elastic.core.settings import CoreSettings

A = TypeVar("A", bound=Action)

STATEFUL = ev.QueryFacts(
    query="counts",
    name="counts",
    stateful=True,
    trigger="processing_time",
    trigger_ms=500,
    session_partitions=200,
    provider_chosen=False,
    provider="rocksdb",
    checkpoint_format=2,
    in_place=False,
)
"""A small windowed count with a new checkpoint."""

PREPARED = evolve(STATEFUL, prepares_moves=True)
"""The same count, whose state can be copied beside its micro-batches."""

TASK_FAILED = ("org.apache.spark.SparkException", "java.lang.IllegalStateException")
"""The causes of a failure that lies in the micro-batch alone."""

STATELESS = evolve(
    STATEFUL,
    query="enrich",
    name="enrich",
    stateful=False,
    in_place=True,
    provider="hdfs",
    checkpoint_format=1,
)
"""An enrichment whose number of partitions can change between two micro-batches."""

OLD = evolve(STATEFUL, checkpoint_partitions=200)
"""The windowed count with the checkpoint of an earlier run under plain Spark."""


def snapshot(
    executors: Iterable[ev.ExecutorInfo] = (), queries: Iterable[ev.QueryInfo] = (), **conf: str
) -> dict[str, Any]:
    return {
        "application": "app-1",
        "application_name": "test",
        "spark_version": "4.2.0",
        "conf": {key.replace("_", "."): value for key, value in conf.items()},
        "executors": tuple(executors),
        "queries": tuple(queries),
    }


@define
class Scene:
    """A run of one scheduler. Every method that sends an event returns the resulting actions."""

    settings: CoreSettings = field(factory=CoreSettings)
    now: int = 1_000_000
    scheduler: Scheduler = field(init=False)
    log: list[tuple[ev.Event, tuple[Action, ...]]] = field(factory=list)
    timers: dict[str, SetTimer] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        self.scheduler = Scheduler(self.settings)

    def send(self, kind: type[ev.Event], **fields: Any) -> tuple[Action, ...]:
        event = kind(**{"id": f"s{len(self.log) + 1}", "at": self.now, **fields})
        actions = self.scheduler.handle(event)
        self.log.append((event, actions))
        for action in actions:
            match action:
                case SetTimer(timer=timer):
                    self.timers[timer] = action
                case CancelTimer(timer=timer):
                    self.timers.pop(timer, None)
        return actions

    # The cluster

    def start(self, *executors: int, queries: Iterable[ev.QueryInfo] = (), **conf: str) -> tuple[Action, ...]:
        """Show a snapshot with one executor for each number of cores."""
        infos = [
            ev.ExecutorInfo(executor=str(number), host="h", cores=cores)
            for number, cores in enumerate(executors)
        ]
        return self.send(ev.Snapshot, **snapshot(infos, queries, **conf))

    def executor(self, executor: str, cores: int = 1) -> tuple[Action, ...]:
        return self.send(ev.ExecutorAdded, executor=executor, host="h", cores=cores)

    def lose(self, executor: str) -> tuple[Action, ...]:
        return self.send(ev.ExecutorRemoved, executor=executor, reason="worker lost")

    # A query

    def submit(self, facts: ev.QueryFacts = STATEFUL, run: str = "r1", **change: Any) -> tuple[Action, ...]:
        return self.send(ev.QuerySubmitted, facts=evolve(facts, **change), run=run)

    def started(self, partitions: int, query: str = "counts", run: str = "r1") -> tuple[Action, ...]:
        """Let a query run: first the outcome of its start order, then the start event."""
        order = self.last_order("StartQuery")
        actions: tuple[Action, ...] = ()
        if order is not None:
            actions = self.done(order, took_ms=200)
        return actions + self.send(ev.QueryStarted, query=query, run=run, partitions=partitions)

    def rescaled(self, took_ms: int = 1_000, **more: Any) -> tuple[Action, ...]:
        """Carry out the last ordered rescale, which takes `took_ms`."""
        order = self.last_order("Rescale")
        assert order is not None
        self.now += took_ms
        return self.done(order, took_ms, **more)

    def copied(self, took_ms: int = 4_000) -> tuple[Action, ...]:
        """Complete the last ordered copy of the state, which took `took_ms`."""
        order = self.last_order("PrepareMove")
        assert order is not None
        return self.done(order, took_ms)

    def done(self, order: Action, took_ms: int = 1, **more: Any) -> tuple[Action, ...]:
        return self.send(ev.ActionDone, action=order.id, query=ordered_for(order), took_ms=took_ms, **more)

    def fail(self, order: Action, error: str = "no space left") -> tuple[Action, ...]:
        return self.send(ev.ActionFailed, action=order.id, query=ordered_for(order), error=error)

    def batch(
        self,
        duration_ms: int,
        partitions: int,
        query: str = "counts",
        run: str = "r1",
        rows: int = 1000,
        sources: tuple[SourceRead, ...] = (),
    ) -> tuple[Action, ...]:
        return self.send(
            ev.QueryProgress,
            query=query,
            run=run,
            batch=len(self.log),
            started=self.now - duration_ms,
            duration_ms=duration_ms,
            input_rows=rows,
            partitions=partitions,
            sources=sources,
        )

    def batches(self, *durations_ms: int, partitions: int, query: str = "counts") -> tuple[Action, ...]:
        actions: tuple[Action, ...] = ()
        for duration_ms in durations_ms:
            self.now += 500
            actions += self.batch(duration_ms, partitions, query)
        return actions

    def terminated(
        self, query: str = "counts", error: str | None = None, run: str | None = None
    ) -> tuple[Action, ...]:
        """End a query, by default its known run."""
        if run is None:
            run = self.query(query).run if query in self.scheduler.queries else "r1"
        return self.send(ev.QueryTerminated, query=query, run=run, error=error)

    def run_fails(
        self, error: str = "disk full", query: str = "counts", offsets: str = "[7]", **fields: Any
    ) -> tuple[Action, ...]:
        failure = ev.Failure(error=error, offsets=offsets, **{"causes": TASK_FAILED, **fields})
        return self.send(ev.QueryFailed, query=query, run="r1", failure=failure)

    def running(self, partitions: int, facts: ev.QueryFacts = STATEFUL, **change: Any) -> None:
        """Submit a query and see it running."""
        self.submit(facts, **change)
        self.started(partitions, facts.query)

    # Time

    def advance(self, ms: int) -> tuple[Action, ...]:
        """Let time pass and timers fire, each at its time."""
        end = self.now + ms
        actions: tuple[Action, ...] = ()
        while due := sorted((t.at, name) for name, t in self.timers.items() if t.at <= end):
            at, name = due[0]
            self.now = max(self.now, at)
            actions += self.send(ev.TimerFired, timer=name, query=self.timers.pop(name).query)
        self.now = end
        return actions

    def until_rescale(self) -> tuple[Action, ...]:
        """Let timers fire, each at its time, until a rescale is ordered, or the copy before it."""
        while self.timers:
            actions = self.advance(min(timer.at for timer in self.timers.values()) - self.now)
            if any(isinstance(action, Rescale | PrepareMove) for action in actions):
                return actions
        raise AssertionError("nothing is rescaled, and nothing is waited for")

    # Inspection

    def query(self, query: str = "counts") -> QueryView:
        return self.scheduler.queries[query]

    @property
    def actions(self) -> list[Action]:
        return [action for _, actions in self.log for action in actions]

    def last_order(self, kind: str) -> Action | None:
        """Return the last order of a kind that has no outcome yet, if any."""
        outcomes = {
            event.action for event, _ in self.log if isinstance(event, ev.ActionDone | ev.ActionFailed)
        }
        for action in reversed(self.actions):
            if type(action).__name__ == kind and action.id not in outcomes:
                return action
        return None

    def check(self) -> None:
        """Check all invariants, and that the same events lead to the same actions again."""
        self.scheduler.validate()
        again = Scheduler(self.settings)
        for event, actions in self.log:
            assert again.handle(event) == actions
        timers = {action.timer for action in self.actions if isinstance(action, SetTimer)}
        assert set(self.timers) <= timers
        ids = [action.id for action in self.actions]
        assert len(set(ids)) == len(ids)


def decisions(actions: Sequence[Action]) -> list[Decision]:
    return [action.decision for action in actions if isinstance(action, Report)]


def reasons(actions: Sequence[Action]) -> list[str]:
    return [decision.reason for decision in decisions(actions)]


def orders(actions: Sequence[Action]) -> list[Action]:
    """Return the actions without reports and timers."""
    return [action for action in actions if not isinstance(action, Report | SetTimer | CancelTimer)]


def only(actions: Sequence[Action], kind: type[A]) -> A:
    """Return the one action of a kind."""
    (found,) = [action for action in actions if isinstance(action, kind)]
    return found


def matches(action: Action, kind: type[Action], **fields: Any) -> bool:
    """Compare only the named fields."""
    return type(action) is kind and all(getattr(action, name) == value for name, value in fields.items())


Stage = Callable[..., Scene]
"""Makes a scene with settings of its own."""


def adaptive(stage: Stage, upper: int = 4, lower: int = 1, **settings: Any) -> Scene:
    """Make an adaptive application whose query "counts" has bounds, and which starts without a wait."""
    bounds = {"counts": WantedBounds(lower=lower, upper=upper)}
    return stage(mode="adaptive", bounds=bounds, submission_stabilization_ms=0, **settings)
