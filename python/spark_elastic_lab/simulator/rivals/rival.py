"""The interface of a rival, and the view it gets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Protocol

from attrs import field, frozen

from spark_elastic.core.policies.policy import Policy
from spark_elastic.core.policies.view import ClusterView, QueryMetrics, Sample


@frozen(kw_only=True)
class RunningBatch:
    """A running micro-batch on `slots`; it has `begun` (epoch ms), and `left` of `tasks` are not done.

    It can also be a batch stage, under its own name.
    """

    query: str
    begun: int
    tasks: int
    left: int
    slots: float


@frozen(kw_only=True)
class TaskView(ClusterView):
    """A view for rivals that also look at Spark's task scheduler or at the source's broker.

    `uncommitted` are the rows, by query, that have arrived and are not committed.
    """

    running: tuple[RunningBatch, ...] = ()
    uncommitted: Mapping[str, int] = field(factory=dict)


def window(query: QueryMetrics, begin: float) -> tuple[Sample, ...]:
    """Return the micro-batches that started after a moment (epoch ms), but at least the last two.

    A micro-batch that is longer than a rule's window must not leave the rule without data.
    """
    recent = sum(sample.started >= begin for sample in query.samples)
    return query.samples[-max(2, recent) :]


class Rival(Policy, Protocol):
    """A policy outside the scheduler, which decides every `interval_s` (s) and may keep state.

    A wish for `executors` sets their number, in reactive mode; a wish for queries sets their upper bounds, in
    adaptive mode. `settings` selects the mode, and may set more. The reasons of its wishes are not shown.
    """

    settings: ClassVar[Mapping[str, str]]

    @property
    def interval_s(self) -> float:
        """The time between decisions (s)."""
        ...


REACTIVE: Mapping[str, str] = {"spark.elastic.schedulerMode": "reactive"}
"""Settings of rivals that set the number of executors."""

ADAPTIVE: Mapping[str, str] = {"spark.elastic.schedulerMode": "adaptive"}
"""Settings of rivals that set the slots of queries."""
