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
class NewExecutor:
    """Describe an executor that has `joined`, and on which a query's first task was `launched` (epoch ms).

    `warm_up_ms` is what its warm-up took, None: it had none by then that was over and had succeeded.
    """

    executor: str
    joined: int
    launched: int
    warm_up_ms: int | None = None


@frozen(kw_only=True)
class ExecutorsUsed(TaskEvent):
    """Executors that have joined have begun with micro-batches of a query."""

    executors: tuple[NewExecutor, ...]
