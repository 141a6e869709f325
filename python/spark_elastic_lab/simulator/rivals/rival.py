"""What a rival is, and what it sees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Protocol

from attrs import field, frozen

from spark_elastic.core.policies.policy import Policy
from spark_elastic.core.policies.view import ClusterView, QueryMetrics, Sample


@frozen(kw_only=True)
class RunningBatch:
    """A micro-batch that runs on `slots`; it has `begun` (epoch ms), and `left` of `tasks` are not done.

    Or a batch stage, by a name of its own.
    """

    query: str
    begun: int
    tasks: int
    left: int
    slots: float


@frozen(kw_only=True)
class TaskView(ClusterView):
    """What those see besides who look at Spark's task scheduler, or at the source's broker.

    `uncommitted` are the rows, by query, that have come and are not through.
    """

    running: tuple[RunningBatch, ...] = ()
    uncommitted: Mapping[str, int] = field(factory=dict)


def window(query: QueryMetrics, begin: float) -> tuple[Sample, ...]:
    """Return the micro-batches that began after a moment (epoch ms), two at least if there are.

    One that takes longer than the window of a rule is not to leave it blind.
    """
    recent = sum(sample.started >= begin for sample in query.samples)
    return query.samples[-max(2, recent) :]


class Rival(Policy, Protocol):
    """A policy from outside, which looks each `interval_s` (s) and may remember what it has seen.

    A wish for `executors` sets how many there are, in reactive mode; one for queries sets their upper bounds,
    in adaptive mode: `settings` says which (and may say more). Nobody shows the reasons of its wishes.
    """

    settings: ClassVar[Mapping[str, str]]

    @property
    def interval_s(self) -> float:
        """How often it looks (s)."""
        ...


REACTIVE: Mapping[str, str] = {"spark.elastic.schedulerMode": "reactive"}
"""Settings of those who say how many executors there are."""

ADAPTIVE: Mapping[str, str] = {"spark.elastic.schedulerMode": "adaptive"}
"""Settings of those who say how many slots a query has."""
