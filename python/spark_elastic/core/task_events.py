"""What the policy is told of the stages and tasks of micro-batches."""

from __future__ import annotations

from attrs import frozen

from spark_elastic.core.events import Event
from spark_elastic.core.stage_work import StageWork


@frozen(kw_only=True)
class TaskEvent(Event):
    """What the tasks of a query's micro-batches have told."""

    query: str


@frozen(kw_only=True)
class StageCompleted(TaskEvent):
    """A stage of a micro-batch that reads a shuffle is done: so many tasks were over in `duration_ms`.

    `work` is what they took, None if that is not known. Stages of one micro-batch that have as many tasks may
    come as one, with their durations and their work added up.
    """

    batch: int
    tasks: int
    duration_ms: int
    work: StageWork | None = None


@frozen(kw_only=True)
class ExecutorUsed(TaskEvent):
    """The first task of a query's micro-batches on an executor that has joined was `launched` (epoch ms).

    `warm_up_ms` is what the executor's warm-up took before that, None: it had none, or it was not over. Of
    several such executors of a query, the sender may tell of the last one only.
    """

    executor: str
    launched: int
    warm_up_ms: int | None = None
