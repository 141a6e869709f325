"""Dynamic allocation for structured streaming, as SPARK-24815 proposes it.

Source: the proposal's text and its pull request to Spark (#42352), which was not merged. Tasks that wait make
the target grow as in dynamic allocation, but only where a micro-batch uses up its trigger interval; executors
that are idle for a part of it are given back, a share of all in one round. The names of its options
and their defaults are not public, so these are ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from attrs import define, field
from attrs.validators import and_, ge, gt, le

from spark_elastic.core.policies.policy import Wish
from spark_elastic.core.policies.view import ClusterView, QueryMetrics
from spark_elastic.simulator.rivals.dynamic_allocation import needed_executors
from spark_elastic.simulator.rivals.rival import REACTIVE, TaskView


@define(kw_only=True)
class StreamingAllocation:
    """Grows where tasks wait after the share `up` of an interval, shrinks after a batch of less than `down`.

    At most the share `release` of the executors is given back in one round, which lasts one interval; from
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
        """Say whether the last micro-batch of each query has left its executors idle for long enough."""
        queries = view.queries.values()
        return bool(queries) and all(
            query.idle
            or (query.latest is not None and query.latest.duration_ms < self.down * _interval_ms(query))
            for query in queries
        )


def _interval_ms(query: QueryMetrics) -> int:
    return query.facts.trigger_ms or 10_000
