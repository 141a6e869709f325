"""A scenario from a decision journal: what came in, what micro-batches cost, which executors there were.

The load is what the micro-batches have read, and what they left, from one to the next. The costs are fitted
to them, all micro-batches of a query together; while others ran as well, a micro-batch had its part of the
slots. What a journal does not tell has its default.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median

from attrs import define, evolve, field

from spark_elastic.core import actions as ac
from spark_elastic.core import events as ev
from spark_elastic.core.cluster.task_size import TaskSize
from spark_elastic.core.policies.autoscale.model import fit
from spark_elastic.core.policies.view import Sample
from spark_elastic.runtime.entries import ActionsEntry, Entry, EventEntry, Header
from spark_elastic.simulator.batch_cost import BatchCost
from spark_elastic.simulator.cluster import ClusterSpec
from spark_elastic.simulator.loads.load import Load
from spark_elastic.simulator.query import QuerySpec
from spark_elastic.simulator.scenario import Scenario
from spark_elastic.simulator.source import SourceSpec

_LEAST_MS = 60_000
_MOST_JITTER = 1.0


class NothingRecordedError(ValueError):
    """A journal from which no scenario can be made; the text says what is missing."""


@define
class _Query:
    """What was heard of one query: its micro-batches, and what its rescales took (ms)."""

    facts: ev.QueryFacts
    samples: list[Sample] = field(factory=list)
    pauses_ms: list[int] = field(factory=list)
    state_bytes: int = 0
    run: str = ""


@define
class _Heard:
    """What was heard of an application."""

    queries: dict[str, _Query] = field(factory=dict)
    cores: Counter[int] = field(factory=Counter)
    task: TaskSize = field(factory=TaskSize)
    executors: dict[str, int] = field(factory=dict)
    first: dict[str, int] | None = None
    most: int = 1
    settings: dict[str, str] = field(factory=dict)
    begin: int | None = None
    end: int = 0
    rescales: dict[str, str] = field(factory=dict)
    asked: int | None = None
    startups_ms: list[int] = field(factory=list)

    def entry(self, entry: Entry) -> None:
        match entry:
            case Header(settings=settings):
                self.settings = dict(settings)
            case EventEntry(event=event):
                self.begin = event.at if self.begin is None else self.begin
                self.end = max(self.end, event.at)
                self.event(event)
            case ActionsEntry(actions=actions):
                for action in actions:
                    self.action(action)

    def event(self, event: ev.Event) -> None:
        match event:
            case ev.Snapshot():
                self.task = TaskSize.of(event.conf)
                self.executors = {one.executor: one.cores for one in event.executors}
                self.cores.update(self.executors.values())
                self.first = self.first or dict(self.executors)
                for info in event.queries:
                    self.queries.setdefault(info.facts.query, _Query(info.facts))
            case ev.ExecutorAdded():
                self.executors[event.executor] = event.cores
                self.cores[event.cores] += 1
                if self.asked is not None:
                    self.startups_ms.append(event.at - self.asked)
            case ev.ExecutorRemoved():
                self.executors.pop(event.executor, None)
            case ev.QuerySubmitted(facts=facts):
                self.queries.setdefault(facts.query, _Query(facts))
            case ev.QueryProgress(query=query) if query in self.queries:
                self.progress(self.queries[query], event)
            case ev.ActionDone(action=action, took_ms=took) if self.rescales.get(action) in self.queries:
                self.queries[self.rescales[action]].pauses_ms.append(took)
        self.most = max(self.most, len(self.executors))

    def action(self, action: ac.Action) -> None:
        match action:
            case ac.Rescale(id=id, query=query):
                self.rescales[id] = query
            case ac.RequestExecutors(total=total):
                self.asked = self.end if total > len(self.executors) else None

    def progress(self, query: _Query, event: ev.QueryProgress) -> None:
        before = query.samples[-1] if query.samples and query.run == event.run else None
        query.run, query.state_bytes = event.run, event.state_bytes
        tasks = max((source.tasks or 0 for source in event.sources), default=0)
        # Without state the tasks that read are those that work.
        partitions = event.partitions if query.facts.stateful else tasks or event.partitions
        query.samples.append(
            Sample(
                at=event.at,
                started=event.started,
                duration_ms=event.duration_ms,
                gap_ms=None if before is None else event.started - before.started,
                input_rows=event.input_rows,
                partitions=partitions,
                slots=sum(self.task.slots(cores) for cores in self.executors.values()),
                batches=1 + event.merged,
                behind=event.records_behind,
                source_tasks=tasks or None,
            )
        )


def scenario_of(entries: Iterable[Entry], seed: int = 1) -> Scenario:
    """Make a scenario of the entries of a journal; it has the settings of its last run.

    Raises NothingRecordedError without a micro-batch, or for less than a minute.
    """
    heard = _Heard()
    for entry in entries:
        heard.entry(entry)
    begin = heard.begin or 0
    read = [query for query in heard.queries.values() if fit(query.samples) is not None]
    if not read:
        raise NothingRecordedError("the journal has no micro-batch with rows: name one of a run with some")
    if heard.end - begin < _LEAST_MS:
        raise NothingRecordedError("the journal is shorter than a minute: name a longer one")
    cores = heard.cores.most_common(1)[0][0] if heard.cores else 1
    initial = len(heard.first or {})
    return Scenario(
        queries=tuple(
            _spec(query, [other.samples for other in read if other is not query], begin, heard.end)
            for query in read
        ),
        cluster=ClusterSpec(
            # A simulated executor has a slot for each core.
            cores=max(1, heard.task.slots(cores)),
            initial=initial,
            quota=max(64, heard.most),
            startup_s=median(heard.startups_ms) / 1_000 if heard.startups_ms else ClusterSpec().startup_s,
        ),
        settings=heard.settings,
        hours=(heard.end - begin) / 3_600_000,
        seed=seed,
    )


def _spec(query: _Query, others: Sequence[Sequence[Sample]], begin: int, end: int) -> QuerySpec:
    facts, samples = query.facts, query.samples
    fitted = fit(_with_own_slots(samples, others))
    assert fitted is not None
    row_us = fitted.row_ms * 1_000
    tasks = max((sample.source_tasks or 0 for sample in samples), default=0)
    return QuerySpec(
        name=facts.name or facts.query,
        load=load_of_samples(samples, begin, end),
        trigger_s=facts.trigger_ms / 1_000,
        stateful=facts.stateful,
        partitions=facts.checkpoint_partitions or facts.session_partitions,
        state_mb=query.state_bytes / 1e6,
        source=SourceSpec(**({"partitions": tasks} if tasks else {})),
        cost=BatchCost(
            fixed_ms=fitted.fixed_ms,
            task_ms=0,
            read_us=0 if facts.stateful else row_us,
            work_us=row_us if facts.stateful else 0,
            jitter=min(_MOST_JITTER, fitted.error),
        ),
        **({"move_s": median(query.pauses_ms) / 1_000} if facts.stateful and query.pauses_ms else {}),
    )


def _with_own_slots(samples: Iterable[Sample], others: Sequence[Sequence[Sample]]) -> list[Sample]:
    """Return micro-batches with the slots that those of other queries have left them."""
    started = [[sample.started for sample in other] for other in others]
    found = []
    for sample in samples:
        end, shared = sample.started + sample.duration_ms, 0
        for other, begins in zip(others, started, strict=True):
            first = max(0, bisect_right(begins, sample.started) - 1)
            for near in other[first : bisect_left(begins, end)]:
                ends = min(end, near.started + near.duration_ms)
                shared += max(0, ends - max(sample.started, near.started))
        slots = sample.slots / (1 + shared / max(1, sample.duration_ms))
        found.append(evolve(sample, slots=max(1, round(slots))))
    return found


def load_of_samples(samples: Iterable[Sample], begin: int, end: int) -> Load:
    """Return what has come in, second by second, between two moments (epoch ms).

    The rows of a micro-batch, and by how many more it left, have come since the one before it began; those of
    the first within a second.
    """
    seconds = max(1, -(-(end - begin) // 1_000))
    rates = [0.0] * seconds
    since, behind = None, 0
    for sample in samples:
        left = sample.behind or 0
        rows = max(0, sample.input_rows + left - behind)
        until = (sample.started - begin) / 1_000
        if sample.gap_ms is None or since is None:
            since = until - 1
        _spread(rates, rows, max(0.0, since), min(float(seconds), max(until, 1e-3)))
        since, behind = until, left
    return Load(rates)


def _spread(rates: list[float], rows: int, since: float, until: float) -> None:
    """Add rows to the seconds from a moment to a later one, evenly."""
    if until <= since:
        since, until = max(0.0, until - 1e-3), until
    rate = rows / (until - since)
    for second in range(int(since), min(len(rates), -int(-until // 1))):
        rates[second] += rate * (min(until, second + 1) - max(since, second))
