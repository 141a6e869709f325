"""What the policy is told of batch stages: those of jobs that belong to no streaming query."""

from __future__ import annotations

from attrs import frozen

from spark_elastic.core.events import Event


@frozen(kw_only=True)
class BatchStage:
    """Describe one stage that has been submitted and is not over.

    Of its `tasks`, `done` are over and took `run_ms` together; `running` run. The first began at `launched`
    (epoch ms), None: none has. `bytes` are what the shuffles before it have written for it, None if it reads
    anything else; of these the tasks that are done have read `read_bytes`. They have written `written_bytes`
    for stages after it.
    """

    stage: int
    tasks: int
    done: int = 0
    running: int = 0
    run_ms: int = 0
    launched: int | None = None
    bytes: int | None = None
    read_bytes: int = 0
    written_bytes: int = 0

    @property
    def left(self) -> int:
        """The tasks that are not over, running ones among them."""
        return max(0, self.tasks - self.done)

    @property
    def waiting(self) -> int:
        """The tasks that have not begun."""
        return max(0, self.left - self.running)


@frozen(kw_only=True)
class BatchStages(Event):
    """All batch stages of now, at most once a second; none when the last one is over.

    `over` counts those that have ended since the last time; one that came and went in between is told of by
    nothing else. `idle` are the executors on which no task of these stages runs; without a stage they are not
    named.
    """

    stages: tuple[BatchStage, ...] = ()
    idle: tuple[str, ...] = ()
    over: int = 0
