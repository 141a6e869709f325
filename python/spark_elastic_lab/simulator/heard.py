"""What a journal tells of a run: executors, queries, their micro-batches and rescales."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping

from attrs import define, field, frozen

from spark_elastic.core import actions as ac
from spark_elastic.core import events as ev
from spark_elastic.core.cluster.slots import TaskSize
from spark_elastic.core.events import StageCompleted
from spark_elastic.core.policies.view import Sample
from spark_elastic.runtime.entries import ActionsEntry, Entry, EventEntry, Header
from spark_elastic_lab.simulator.record import QueryNotes, Rescaled, Steps

# What a run was like beside its load: what a simulation as set repeats, so that it goes as it went.
# Policies other than the one that was set begin at once, on another cluster and by chance instead.


Said = ev.PolicyFileChanged | ev.RequirementsRequested | ev.RequirementsDropped
"""What people say of bounds while queries run."""


@frozen(kw_only=True)
class AsRecorded:
    """What was so in a run, and who said what of bounds at which moment (ms since the begin).

    `spark` are Spark's own settings, `queries` are by the names that they have in the scenario.
    """

    said: tuple[tuple[int, Said], ...] = ()
    spark: Mapping[str, str] = field(factory=dict)
    queries: Mapping[str, RecordedQuery] = field(factory=dict)


@frozen(kw_only=True)
class RecordedQuery:
    """What one query was like, and its life: from when it was submitted to its end, None: it had none.

    From the order to start it took `start_ms` until it ran, None: not known. All moments are ms since the
    begin. `pace` is by how much its micro-batches were slower than their cost says, by when they began, the
    first one first. Its triggers are due `ahead_ms` before whole intervals.
    """

    facts: ev.QueryFacts
    begins: int = 0
    ends: int | None = None
    start_ms: int | None = None
    ahead_ms: int = 0
    pace: tuple[tuple[int, float], ...] = ()

    def factor(self, now: int) -> float:
        """Return by how much a micro-batch is slower that begins now: as the one that began next to that."""
        place = bisect_right(self.pace, now, key=lambda one: one[0])
        near = self.pace[max(0, place - 1) : place + 1]
        return min(near, key=lambda one: abs(one[0] - now))[1] if near else 1.0


@define
class HeardQuery:
    """What was heard of one query: its micro-batches, its rescales, what these took (ms).

    It `begins` when it is submitted for the first time and `ends` when it has ended for good, None: it has
    not (ms since the begin). Its first start took `start_ms` from the order on. Whether it `shuffles` tells
    where its work is done: after a shuffle, or where its source is read.
    """

    facts: ev.QueryFacts
    samples: list[Sample] = field(factory=list)
    notes: QueryNotes = field(factory=QueryNotes)
    pauses_ms: list[int] = field(factory=list)
    state_bytes: int = 0
    shuffles: bool = False
    run: str = ""
    begins: int = 0
    ends: int | None = None
    start_ms: int | None = None

    @property
    def name(self) -> str:
        """Its name, or its id without one."""
        return self.facts.name or self.facts.query


@define
class Heard:
    """What was heard of an application, from `begin` to `end` (epoch ms); steps are ms since the begin.

    `cores` counts the executors that had so many, `initial` those that were there at the begin, `startups_ms`
    are the times from a request to each executor that came of it; executors were `lost` at these ms since the
    begin. From `scaled` on (ms since the begin) the application has asked for executors or given some back.
    `settings` are those of the last run, `spark` those of Spark itself, `said` what policy file and requests
    have said of bounds, and when. Where nobody asks for executors, `initial` are those that were there when
    the first micro-batch began.
    """

    queries: dict[str, HeardQuery] = field(factory=dict)
    cores: Counter[int] = field(factory=Counter)
    task: TaskSize = field(factory=TaskSize)
    settings: dict[str, str] = field(factory=dict)
    begin: int = 0
    end: int = 0
    initial: int = 0
    there: Steps = field(factory=Steps)
    wanted: Steps = field(factory=Steps)
    startups_ms: list[int] = field(factory=list)
    lost: list[int] = field(factory=list)
    scaled: float = math.inf
    spark: dict[str, str] = field(factory=dict)
    said: list[tuple[int, Said]] = field(factory=list)
    _executors: dict[str, int] = field(factory=dict)
    # Those that are decommissioned take no more tasks.
    _leaving: set[str] = field(factory=set)
    _rescales: dict[str, ac.Rescale] = field(factory=dict)
    # When starts were ordered that are not over (ms since the begin).
    _starts: dict[str, int] = field(factory=dict)
    # When the executors that take tasks became others (epoch ms).
    _changed: int = 0
    _given_back: set[str] = field(factory=set)
    _asked: int | None = None
    _begun: bool = False

    def entry(self, entry: Entry) -> None:
        """Take in one entry of the journal."""
        match entry:
            case Header(settings=settings):
                self.settings = dict(settings)
            case EventEntry(event=event):
                self._event(event)
            case ActionsEntry(actions=actions):
                for action in actions:
                    self._action(action)

    @property
    def now(self) -> int:
        """The time since the begin (ms)."""
        return self.end - self.begin

    @property
    def _staying(self) -> list[int]:
        """The cores of the executors that take tasks."""
        return [cores for executor, cores in self._executors.items() if executor not in self._leaving]

    def _event(self, event: ev.Event) -> None:
        first, self._begun = not self._begun, True
        if first:
            self.begin = event.at
        self.end = max(self.end, event.at)
        before = self._staying
        match event:
            case ev.Snapshot():
                self.task, self.spark = TaskSize.of(event.conf), dict(event.conf)
                self._executors = {one.executor: one.cores for one in event.executors}
                self.cores.update(self._executors.values())
                for info in event.queries:
                    self._query(info.facts, info.partitions)
            case ev.ExecutorAdded():
                self._executors[event.executor] = event.cores
                self.cores[event.cores] += 1
                if self._asked is not None:
                    self.startups_ms.append(event.at - self._asked)
            case ev.ExecutorDecommissioning(executor=executor):
                self._leaving.add(executor)
            case ev.ExecutorRemoved(executor=executor):
                self._leaving.discard(executor)
                if self._executors.pop(executor, None) is not None and executor not in self._given_back:
                    self.lost.append(self.now)
            case ev.PolicyFileChanged() | ev.RequirementsRequested() | ev.RequirementsDropped():
                self.said.append((self.now, event))
            case ev.QuerySubmitted(facts=facts):
                self._query(facts, None)
                self.queries[facts.query].ends = None
            case ev.QueryTerminated(query=query) if query in self.queries:
                self.queries[query].ends = self.now
            case ev.QueryStarted(query=query, partitions=partitions) if query in self.queries:
                self.queries[query].notes.partitions.note(self.now, partitions)
                ordered = self._starts.pop(query, None)
                if ordered is not None and self.queries[query].start_ms is None:
                    self.queries[query].start_ms = self.now - ordered
            case ev.QueryProgress(query=query) if query in self.queries:
                if not self.wanted.times and not any(heard.samples for heard in self.queries.values()):
                    self.initial = self.there.at(event.started - self.begin)
                self._progress(self.queries[query], event)
            case StageCompleted(query=query) if query in self.queries:
                self.queries[query].shuffles = True
            case ev.ActionDone(action=action, took_ms=took_ms) if action in self._rescales:
                self._rescaled(self._rescales.pop(action), took_ms)
        if first:
            self.initial = len(self._staying)
        if self._staying != before:
            self._changed = event.at
        self.there.note(self.now, len(self._staying))

    def _action(self, action: ac.Action) -> None:
        match action:
            case ac.Rescale(id=id):
                self._rescales[id] = action
            case ac.StartQuery(query=query):
                self._starts[query] = self.now
            case ac.RequestExecutors(total=total):
                self.wanted.note(self.now, total)
                self._asked = self.end if total > len(self._executors) else None
                self.scaled = min(self.scaled, self.now)
            case ac.KillExecutors(executors=executors) | ac.DecommissionExecutors(executors=executors):
                self._given_back.update(executors)
                self.scaled = min(self.scaled, self.now)

    def _query(self, facts: ev.QueryFacts, partitions: int | None) -> None:
        begun = HeardQuery(facts, shuffles=facts.stateful, begins=self.now)
        query = self.queries.setdefault(facts.query, begun)
        if partitions is not None:
            query.notes.partitions.note(self.now, partitions)

    def _rescaled(self, order: ac.Rescale, took_ms: int) -> None:
        query = self.queries.get(order.query)
        if query is None:
            return
        steps = query.notes.partitions
        before = steps.at(self.now)
        if before != order.partitions:
            steps.note(self.now, order.partitions)
            query.notes.rescales.append(Rescaled(self.now, before, order.partitions, took_ms))
            query.pauses_ms.append(took_ms)

    def _progress(self, query: HeardQuery, event: ev.QueryProgress) -> None:
        before = query.samples[-1] if query.samples and query.run == event.run else None
        query.run, query.state_bytes = event.run, event.state_bytes
        tasks = event.source_tasks or None
        query.samples.append(
            Sample(
                at=event.at,
                started=event.started,
                duration_ms=event.duration_ms,
                gap_ms=None if before is None else event.started - before.started,
                input_rows=event.input_rows,
                partitions=event.partitions if query.shuffles else tasks or event.partitions,
                slots=sum(self.task.slots(cores) for cores in self._staying),
                batches=1 + event.merged,
                behind=event.records_behind,
                source_tasks=tasks,
                fullest=event.fullest,
                steady=self._changed <= event.started,
            )
        )
