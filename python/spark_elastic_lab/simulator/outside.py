"""Scaling from outside: shows a rival the current state and applies its decisions."""

from __future__ import annotations

from collections import deque
from typing import Any

from attrs import define, field

from spark_elastic.core import events as ev
from spark_elastic.core.policies.policy import Wish
from spark_elastic.core.policies.view import ExecutorMetrics, QueryMetrics, Sample
from spark_elastic.core.query_view import QueryView
from spark_elastic_lab.simulator.driver import EPOCH_MS, Driver
from spark_elastic_lab.simulator.rivals.rival import Rival, RunningBatch, TaskView

_KEPT_MS = 1_200_000


@define
class Outside:
    """A rival next to a simulated driver."""

    rival: Rival
    driver: Driver
    _samples: dict[str, deque[Sample]] = field(factory=dict)
    _began: dict[str, int] = field(factory=dict)
    _metrics: dict[str, tuple[tuple[object, ...], QueryMetrics]] = field(factory=dict)
    _since: dict[str, int] = field(factory=dict)

    def begin(self) -> None:
        """Start looking, once every interval."""
        self.driver.listeners.append(self._heard)
        self.driver.clock.at(0, self._look)

    def _heard(self, event: ev.Event) -> None:
        """Process an event."""
        match event:
            case ev.ExecutorAdded(executor=executor, at=at):
                self._since[executor] = at
            case ev.QueryProgress(query=query):
                samples = self._samples.setdefault(query, deque())
                samples.append(self._sample(event))
                while samples[0].at < event.at - _KEPT_MS:
                    samples.popleft()

    def view(self) -> TaskView:
        """Return the current state."""
        driver, cores = self.driver, self.driver.scenario.cluster.cores
        there = driver.cluster.staying
        executors = tuple(
            ExecutorMetrics(executor=one, slots=cores, since=self._since.get(one, EPOCH_MS)) for one in there
        )
        now = driver.clock.now
        return TaskView(
            at=EPOCH_MS + now,
            mode=driver.scheduler.settings.mode,
            slots=cores * len(there),
            usual_slots=cores,
            executors=executors,
            requested=driver.cluster.target,
            startups_ms=(round(driver.scenario.cluster.startup_s * 1_000),),
            queries={query: self._query(query) for query in driver.scheduler.queries},
            running=tuple(self._running(query) for query in driver.slots.running),
            uncommitted={name: query.source.uncommitted(now) for name, query in driver.queries.items()},
        )

    def _look(self) -> None:
        self._apply(self.rival.decide(self.view()))
        self.driver.clock.after(self.rival.interval_s * 1_000, self._look)

    def _apply(self, wish: Wish) -> None:
        cluster = self.driver.cluster
        if wish.executors is not None:
            surplus = max(0, cluster.usable - wish.executors)
            if wish.executors != cluster.target and cluster.request(wish.executors) is not None:
                self.driver.notes.refused += 1
                return
            there, spec = cluster.staying, self.driver.scenario.cluster
            cluster.release(tuple(there[len(there) - surplus :]), at_once=not spec.decommissions)
        for query, wanted in wish.queries.items():
            if self.driver.scheduler.queries[query].requirements.upper != wanted.slots:
                bounds = {"shuffle": (1, wanted.slots)}
                self.driver.tell(ev.RequirementsRequested, query=query, bounds=bounds, by="a rival")

    def _query(self, query: str) -> QueryMetrics:
        """Return the metrics of a query; reuse those of the last look if nothing has changed."""
        samples = self._samples.get(query, ())
        shown = self.driver.queries[query]
        state = (samples[-1].at if samples else None, self.driver.scheduler.divisions, shown.phase)
        kept = self._metrics.get(query)
        if kept is None or kept[0] != state:
            view = self.driver.scheduler.queries[query]
            kept = self._metrics[query] = (state, self._seen(view, shown.phase == "moving", tuple(samples)))
        return kept[1]

    def _seen(self, view: QueryView, moving: bool, samples: tuple[Sample, ...]) -> QueryMetrics:
        latest = view.last_progress
        return QueryMetrics(
            query=view.facts.query,
            facts=view.facts,
            settings=view.settings,
            requirements=view.requirements,
            slots=view.share.slots,
            partitions=view.partitions,
            held=view.held,
            idle=view.pace.idle,
            moving=moving,
            samples=samples,
            state_bytes=0 if latest is None else latest.state_bytes,
        )

    def _running(self, query: str) -> RunningBatch:
        if query in self.driver.batch.running:
            tasks, left, slots = self.driver.batch.progress(query)
            began = EPOCH_MS + self.driver.batch.running[query].began
            return RunningBatch(query=query, begun=began, tasks=tasks, left=left, slots=slots)
        batch, spec = self.driver.slots.running[query], self.driver.queries[query].spec
        tasks = spec.source.partitions + (self.driver.queries[query].planned if spec.cost.has_shuffle else 0)
        done = batch.done_by(self.driver.clock.now)
        begun = EPOCH_MS + self.driver.queries[query].began
        return RunningBatch(
            query=query, begun=begun, tasks=tasks, left=-int(-tasks * (1 - done) // 1), slots=batch.slots
        )

    def _sample(self, event: ev.QueryProgress) -> Sample:
        before = self._began.get(event.query)
        self._began[event.query] = event.started
        share = self.driver.scheduler.queries[event.query].share
        fields: dict[str, Any] = {
            "duration_ms": event.duration_ms,
            "gap_ms": None if before is None else event.started - before,
            "input_rows": event.input_rows,
            "partitions": event.partitions,
            "slots": share.slots,
        }
        return Sample(
            **fields,
            at=event.at,
            started=event.started,
            behind=event.records_behind,
            offsets_behind=event.offsets_behind,
            source_tasks=event.source_tasks or None,
        )
