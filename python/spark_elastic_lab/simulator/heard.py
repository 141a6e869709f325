"""The contents of a run's journal: executors, queries, their micro-batches and rescales."""

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

# ---- The properties of a run other than its load. A simulation with the policy as set repeats them, to
# reproduce the run. With any other policy, queries start at once and with random jitter; of these properties,
# our own policies then have what the policy file said, and reactive mode the executors.


Said = ev.PolicyFileChanged | ev.RequirementsRequested | ev.RequirementsDropped
"""The changes of bounds that users make while queries run."""


@frozen(kw_only=True)
class AsRecorded:
    """The properties of a run, and its changes of bounds, each with its moment (ms since the start).

    `executors` are the numbers of executors that accepted tasks, each from its moment (ms since the start);
    it is empty if they are unknown. `spark` holds Spark's own settings; `queries` uses the names in the
    scenario.
    """

    said: tuple[tuple[int, Said], ...] = ()
    executors: tuple[tuple[int, int], ...] = ()
    spark: Mapping[str, str] = field(factory=dict)
    queries: Mapping[str, RecordedQuery] = field(factory=dict)


@frozen(kw_only=True)
class RecordedQuery:
    """The properties of one query and its life, from its submission to its end, None if it has not ended.

    From the order to start, it took `start_ms` until it ran, None if unknown. All moments are ms since the
    start. `pace` holds the start of each micro-batch and the ratio of its duration to its cost, in order. Its
    triggers fire `ahead_ms` before whole intervals.
    """

    facts: ev.QueryFacts
    begins: int = 0
    ends: int | None = None
    start_ms: int | None = None
    ahead_ms: int = 0
    pace: tuple[tuple[int, float], ...] = ()

    def factor(self, now: int) -> float:
        """Return the ratio for a micro-batch that starts now, from the recorded one that started nearest."""
        place = bisect_right(self.pace, now, key=lambda one: one[0])
        near = self.pace[max(0, place - 1) : place + 1]
        return min(near, key=lambda one: abs(one[0] - now))[1] if near else 1.0


@define
class HeardQuery:
    """The journal's record of one query: its micro-batches, its rescales, their pauses and copies (ms).

    It `begins` with its first submission and `ends` when it has ended permanently, None if it has not (ms
    since the start). Its first start took `start_ms` from the order. With `shuffles`, its work is done after
    a shuffle, otherwise where its source is read.
    """

    facts: ev.QueryFacts
    samples: list[Sample] = field(factory=list)
    notes: QueryNotes = field(factory=QueryNotes)
    pauses_ms: list[int] = field(factory=list)
    copies_ms: list[int] = field(factory=list)
    state_bytes: int = 0
    shuffles: bool = False
    run: str = ""
    begins: int = 0
    ends: int | None = None
    start_ms: int | None = None

    @property
    def name(self) -> str:
        """Its name, or its id if it has none."""
        return self.facts.name or self.facts.query


@define
class Heard:
    """The journal's record of an application, from `begin` to `end` (epoch ms); steps are ms since the start.

    `cores` counts executors by their number of cores, `initial` those at the start. `startups_ms` are the
    times from a request to each resulting executor; executors were `lost` at these ms since the start.
    `scaled` is the first time (ms since the start) that the application requested or released executors.
    `settings` are those of the last run, `spark` those of Spark itself. `said` are the changes of bounds from
    the policy file and from requests, with their times. If no executors are requested, `initial` counts those
    present when the first micro-batch started.
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
    # Decommissioned executors accept no more tasks.
    _leaving: set[str] = field(factory=set)
    _rescales: dict[str, ac.Rescale] = field(factory=dict)
    _copies: dict[str, HeardQuery] = field(factory=dict)
    # The times of ordered starts that are not complete (ms since the start).
    _starts: dict[str, int] = field(factory=dict)
    # The time at which the executors that accept tasks last changed (epoch ms).
    _changed: int = 0
    _given_back: set[str] = field(factory=set)
    _asked: int | None = None
    _begun: bool = False

    def entry(self, entry: Entry) -> None:
        """Process one entry of the journal."""
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
        """The time since the start (ms)."""
        return self.end - self.begin

    @property
    def _staying(self) -> list[int]:
        """The cores of the executors that accept tasks."""
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
            case ev.ActionDone(action=action, took_ms=took_ms) if action in self._copies:
                self._copies.pop(action).copies_ms.append(took_ms)
        if first:
            self.initial = len(self._staying)
        if self._staying != before:
            self._changed = event.at
        self.there.note(self.now, len(self._staying))

    def _action(self, action: ac.Action) -> None:
        match action:
            case ac.Rescale(id=id):
                self._rescales[id] = action
            case ac.PrepareMove(id=id, query=query, partitions=partitions) if query in self.queries:
                if partitions != self.queries[query].notes.partitions.at(self.now):
                    self._copies[id] = self.queries[query]
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
