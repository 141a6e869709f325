"""A cluster in simulated time: executors take a while to start, and micro-batches follow a line.

It answers the scheduler's orders as Spark would, and counts the results.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, evolve, field

from spark_elastic.core import actions as ac
from spark_elastic.core import events as ev
from spark_elastic.core.events import StageCompleted, StageWork
from spark_elastic.core.settings import CoreSettings
from tests.unit.core.builder import STATELESS, Scene

SETTINGS = CoreSettings(mode="adaptive", policy=("autoscale",), target_load=0.75, slot_idle_ms=10_000)
Load = Callable[[float], float]
"""Rows per second at a second of the run."""


@define
class Source:
    """A query and its source: `read` is the position up to which it has read, in rows of `offered`.

    A micro-batch takes ``fixed_ms + row_ms · rows / slots``, and reads `limit` rows at most; `longest` is the
    duration of the longest one, in ms. `work` is reported for its tasks; if None, only the shuffle is.
    """

    facts: ev.QueryFacts
    load: Load
    fixed_ms: float = 100.0
    row_ms: float = 1.0
    limit: int | None = None
    told_behind: bool = True
    work: StageWork | None = None
    offered: float = 0.0
    read: float = 0.0
    batch: int = 0
    due: int = 0
    ends: int | None = None
    rows: int = 0
    behind: int = 0
    started: int = 0
    held: int = 0
    longest: int = 0


@define
class World:
    """Runs a scene second by second; `seen` has (second, executors, granted slots of the first query).

    Without `told_plans`, micro-batches are reported only when they are committed.
    """

    settings: CoreSettings = SETTINGS
    startup_ms: int = 20_000
    cores: int = 1
    most: int = 64
    told_plans: bool = True
    scene: Scene = field(init=False)
    sources: dict[str, Source] = field(factory=dict)
    coming: list[int] = field(factory=list)
    target: int = 0
    named: int = 0
    seen: list[tuple[int, int, int]] = field(factory=list)
    began: int = 0

    def __attrs_post_init__(self) -> None:
        self.scene = Scene(self.settings)
        self.began = self.scene.now

    def start(self, executors: int) -> None:
        self.named = self.target = executors
        self.take(self.scene.start(*[self.cores] * executors, spark_executor_cores=str(self.cores)))

    def add(self, source: Source) -> Source:
        self.sources[source.facts.query] = source
        source.due = self.scene.now
        self.take(self.scene.submit(source.facts))
        return source

    def query(self, load: Load, interval_ms: int = 5_000, name: str = "q", **fields: object) -> Source:
        facts = evolve(STATELESS, query=name, name=name, trigger_ms=interval_ms)
        return self.add(Source(facts, load, **fields))  # type: ignore[arg-type]

    def take(self, actions: tuple[ac.Action, ...]) -> None:
        """Carry out orders at once, except for executors, which take their time to start."""
        for action in actions:
            match action:
                case ac.StartQuery(query=query, partitions=count):
                    view = self.scene.query(query)
                    self.take(self.scene.done(action))
                    found = count or view.facts.checkpoint_partitions or view.share.slots
                    started = {"query": query, "run": view.run, "partitions": found}
                    self.take(self.scene.send(ev.QueryStarted, **started))
                case ac.Rescale(query=query):
                    if self.scene.query(query).facts.stateful:
                        self.sources[query].held += 2_000
                    self.take(self.scene.done(action, took_ms=2_000))
                case ac.LimitRows(query=query, sources=sources):
                    self.sources[query].limit = sources[0].rows if sources else None
                    self.take(self.scene.done(action))
                case ac.RequestExecutors(total=total):
                    self.target = total
                    del self.coming[max(0, total - len(self.scene.scheduler.slots.executors)) :]
                    self.take(self.scene.done(action))
                case ac.KillExecutors(executors=gone) | ac.DecommissionExecutors(executors=gone):
                    self.take(self.scene.done(action))
                    for executor in gone:
                        self.take(self.scene.lose(executor))

    def run(self, seconds: int) -> None:
        """Let time pass."""
        for _ in range(seconds):
            self.take(self.scene.advance(1_000))
            for source in self.sources.values():
                source.offered += source.load((self.scene.now - self.began) / 1_000)
                self._batches(source)
            here = len(self.scene.scheduler.slots.executors)
            while here + len(self.coming) < min(self.target, self.most):
                self.coming.append(self.scene.now + self.startup_ms)
            for at in [at for at in self.coming if at <= self.scene.now]:
                self.coming.remove(at)
                self.named += 1
                self.take(self.scene.executor(f"x{self.named}", self.cores))
            first = next(iter(self.scene.scheduler.queries.values()), None)
            granted = 0 if first is None else first.granted_slots or 0
            self.seen.append(((self.scene.now - self.began) // 1_000, self.executors, granted))

    @property
    def executors(self) -> int:
        return len(self.scene.scheduler.slots.executors)

    def said(self) -> list[str]:
        return [action.decision.message for action in self.scene.actions if isinstance(action, ac.Report)]

    def reasons(self) -> list[str]:
        found = [action.decision.reason for action in self.scene.actions if isinstance(action, ac.Report)]
        return [reason for reason in found if reason.startswith(("autoscale", "executors", "wish"))]

    def _batches(self, source: Source) -> None:
        view = self.scene.query(source.facts.query)
        now = self.scene.now
        if view.state != "Executing" or view.share.slots < 1:
            return
        if source.ends is not None and now >= source.ends:
            self._commit(source)
        if source.ends is None and now >= source.due:
            waiting = int(source.offered - source.read)
            source.rows = waiting if source.limit is None else min(waiting, source.limit)
            source.read += source.rows
            # the backlog as a source knows it when the micro-batch is planned
            source.behind = waiting - source.rows
            source.started = now
            slots = min(view.partitions or 1, view.share.slots)
            took = source.fixed_ms + source.row_ms * source.rows / slots + source.held
            source.held = 0
            source.ends = now + round(took)
            source.due = now + max(source.facts.trigger_ms, 1)
            if source.rows and self.told_plans:
                plan = {"query": source.facts.query, "run": view.run, "batch": source.batch + 1}
                behind = source.behind if source.told_behind else None
                self.take(
                    self.scene.send(ev.BatchPlanned, **plan, input_rows=source.rows, records_behind=behind)
                )

    def _commit(self, source: Source) -> None:
        assert source.ends is not None
        view = self.scene.query(source.facts.query)
        took, source.ends = source.ends - source.started, None
        source.longest = max(source.longest, took)
        source.batch += 1
        if source.batch == 1 or source.work:  # shows that the query has a shuffle
            stage = {"tasks": view.partitions or 1, "duration_ms": took, "work": source.work}
            self.take(self.scene.send(StageCompleted, query=source.facts.query, batch=source.batch, **stage))
        self.take(
            self.scene.send(
                ev.QueryProgress, query=source.facts.query, run=view.run, batch=source.batch,
                started=source.started, duration_ms=took, input_rows=source.rows,
                partitions=view.partitions or 1, records_behind=source.behind if source.told_behind else None,
            )
        )  # fmt: skip
