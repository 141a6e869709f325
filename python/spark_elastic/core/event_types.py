"""All kinds of events: those that can be written down and read back."""

from __future__ import annotations

from spark_elastic.core import events as ev
from spark_elastic.core.batch_events import BatchStages
from spark_elastic.core.policies.ask import PolicyAnswered
from spark_elastic.core.task_events import ExecutorsUsed, StageCompleted

EVENT_TYPES: tuple[type[ev.Event], ...] = (
    ev.Snapshot,
    ev.ExecutorAdded,
    ev.ExecutorRemoved,
    ev.ExecutorExcluded,
    ev.ExecutorUnexcluded,
    ev.ExecutorDecommissioning,
    ev.ExecutorUsage,
    ev.QuerySubmitted,
    ev.QueryStarted,
    ev.QueryProgress,
    ev.QueryIdle,
    ev.QueryFailed,
    ev.QueryTerminated,
    StageCompleted,
    ExecutorsUsed,
    BatchStages,
    ev.ActionDone,
    ev.ActionFailed,
    ev.SavepointTaken,
    ev.SavepointRequested,
    ev.CancelRequested,
    ev.RequirementsRequested,
    ev.RequirementsDropped,
    ev.PolicyFileChanged,
    ev.PolicyFileRefused,
    ev.TimerFired,
    PolicyAnswered,
)
