"""Spark's dynamic allocation: executors for waiting tasks, and none that are idle.

Source: Spark's ``ExecutorAllocationManager`` and ``ExecutorMonitor`` (4.2), with their options. Here a
micro-batch counts as one stage, and tasks run on the oldest executors first. This favours the rule, as the
newer executors become idle sooner.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

from attrs import define, field
from attrs.validators import and_, ge, gt, le

from spark_elastic.core.policies.policy import Wish
from spark_elastic.core.policies.view import ClusterView, QueryMetrics
from spark_elastic_lab.simulator.rivals.rival import REACTIVE, TaskView


@define
class Ramp:
    """Grows the target while tasks wait: by 1, 2, 4 and so on at each timeout (s).

    `target` is the requested number of executors.
    """

    target: int
    backlog_s: float = 1.0
    sustained_s: float = 1.0
    add: int = 1
    _due: float | None = None

    def step(self, now: float, needed: int, there: int, least: int, most: int, *, waits: bool) -> int:
        """Update the target at a moment (s), given the executors needed and present, and waiting tasks."""
        if not waits:
            self._due, self.add = None, 1
        elif self._due is None:
            self._due = now + self.backlog_s
        if needed < self.target:
            self.target, self.add = max(needed, least), 1
        elif self._due is not None and now >= self._due:
            before = self.target
            self.target = max(least, min(most, needed, max(before, there) + self.add))
            self.add = self.add * 2 if self.target - before == self.add else 1
            self._due += self.sustained_s
        return self.target


def needed_executors(tasks: int, ratio: float, slots: int) -> int:
    """Return the executors that this number of waiting or running tasks needs."""
    return math.ceil(tasks * ratio / slots)


@define(kw_only=True)
class DynamicAllocation:
    """``spark.dynamicAllocation.*`` with the options as fields, from `least` to `most` executors."""

    settings: ClassVar[Mapping[str, str]] = REACTIVE
    interval_s: ClassVar[float] = 1.0

    most: int = field(validator=ge(1))
    least: int = field(default=1, validator=ge(0))
    ratio: float = field(default=1.0, validator=and_(gt(0), le(1)))
    backlog_s: float = field(default=1.0, validator=gt(0))
    sustained_s: float = field(default=1.0, validator=gt(0))
    idle_s: float = field(default=60.0, validator=ge(0))
    _ramp: Ramp | None = field(default=None, init=False)
    _busy: dict[str, int] = field(factory=dict, init=False)

    def decide(self, view: ClusterView) -> Wish:
        """Return the target, but at least the executors that have not been idle for long enough."""
        assert isinstance(view, TaskView)
        there = len(view.executors)
        ramp = self._ramp = self._ramp or Ramp(max(self.least, there), self.backlog_s, self.sustained_s)
        slots = view.usual_slots
        tasks = sum(batch.left for batch in view.running)
        waits = any(batch.left > batch.slots for batch in view.running)
        needed = needed_executors(tasks, self.ratio, slots)
        target = ramp.step(view.at / 1_000, needed, there, self.least, self.most, waits=waits)
        idle = self._idle(view)
        return Wish(executors=max(target, self.least, there - idle))

    def _idle(self, view: TaskView) -> int:
        """Count the executors that have been idle for long enough."""
        reach = sum(min(batch.left, math.ceil(batch.slots)) for batch in view.running)
        ended = [
            (sample.started + sample.duration_ms, max(sample.partitions, sample.source_tasks or 0))
            for query in view.queries.values()
            for sample in query.samples[-1:]
        ]
        idle = 0
        for place, executor in enumerate(view.executors):
            since = max([executor.since, *(end for end, tasks in ended if tasks > place)])
            if place < reach:
                since = view.at
            busy = self._busy[executor.executor] = max(self._busy.get(executor.executor, 0), since)
            idle += view.at - busy >= self.idle_s * 1_000
        return idle


# Dynamic allocation for structured streaming, as SPARK-24815 proposes it.
# Source: the proposal's text and its pull request to Spark (#42352), which was not merged. Waiting tasks make
# the target grow as in dynamic allocation, but only if a micro-batch uses up its trigger interval. Executors
# that are idle for a part of the interval are released, a share of all in one round. The names of its options
# and their defaults are not public, so these are ours.


@define(kw_only=True)
class StreamingAllocation:
    """Grows if tasks wait after the share `up` of an interval, shrinks after a batch shorter than `down`.

    It releases at most the share `release` of the executors in one round, which lasts one interval; it uses
    `least` to `most` executors.
    """

    settings: ClassVar[Mapping[str, str]] = REACTIVE
    interval_s: ClassVar[float] = 1.0

    most: int = field(validator=ge(1))
    least: int = field(default=1, validator=ge(0))
    up: float = field(default=0.9, validator=gt(0))
    down: float = field(default=0.5, validator=ge(0))
    release: float = field(default=0.2, validator=and_(gt(0), le(1)))
    _target: int | None = field(default=None, init=False)
    _add: int = field(default=1, init=False)
    _due: int = field(default=0, init=False)
    _round: int = field(default=0, init=False)

    def decide(self, view: ClusterView) -> Wish:
        """Return the target."""
        assert isinstance(view, TaskView)
        there = len(view.executors)
        target = max(self.least, there) if self._target is None else self._target
        interval = max((_interval_ms(query) for query in view.queries.values()), default=10_000)
        late = [
            batch
            for batch in view.running
            if batch.left > batch.slots
            and view.at - batch.begun >= self.up * _interval_ms(view.queries[batch.query])
        ]
        if late:
            if view.at >= self._due:
                needed = needed_executors(sum(batch.tasks for batch in late), 1.0, view.usual_slots)
                wanted = min(self.most, max(target, min(needed, max(target, there) + self._add)))
                self._add = self._add * 2 if wanted - target == self._add else 1
                target, self._due = wanted, view.at + interval
                self._round = view.at
        else:
            self._add = 1
            if view.at - self._round >= interval and self._has_room(view):
                target = max(self.least, target - max(1, int(there * self.release)))
                self._round = view.at
        self._target = target
        return Wish(executors=target)

    def _has_room(self, view: TaskView) -> bool:
        """Return whether the last micro-batch of each query left its executors idle for long enough."""
        queries = view.queries.values()
        return bool(queries) and all(
            query.idle
            or (query.latest is not None and query.latest.duration_ms < self.down * _interval_ms(query))
            for query in queries
        )


def _interval_ms(query: QueryMetrics) -> int:
    return query.facts.trigger_ms or 10_000
