"""Where the tasks of micro-batches ran, from Spark's own event log."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import attrs

from spark_elastic_lab.demo.chronicle import Chronicle, ExecutorChange
from spark_elastic_lab.demo.steps import Deed, Outcome, Trend
from spark_elastic_tools.tail import GrowingFile

#: The property that marks the plugin's own jobs, as in its `CurrentExecution.scala`.
_OURS = "spark.elastic.own"


def event_log_conf(folder: Path) -> dict[str, str]:
    """Return the settings for an event log below `folder`, in one uncompressed file."""
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }


class Tasks(Protocol):
    """Where the tasks of micro-batches ran."""

    def first_on(self, executor: str, moment: int, query: str | None = None) -> int | None:
        """Return when the first task was launched on an executor at `moment` or later (epoch ms), or None.

        It may be a task of any query, or only of the one with the id `query`.
        """
        ...


@attrs.frozen(kw_only=True)
class _Task:
    """One task of a micro-batch of a `query` (its id); `launched` in epoch ms."""

    query: str
    executor: str
    launched: int


class TaskLog:
    """The tasks of micro-batches that the event log holds so far."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[Path, GrowingFile] = {}
        self._stages: dict[int, str] = {}
        self._tasks: list[_Task] = []

    def first_on(self, executor: str, moment: int, query: str | None = None) -> int | None:
        """Implement `Tasks.first_on`."""
        self._read()
        launches = (
            task.launched
            for task in self._tasks
            if task.executor == executor and task.launched >= moment and query in (None, task.query)
        )
        return min(launches, default=None)

    def _read(self) -> None:
        for path in self._folder.glob("*"):
            for line in self._files.setdefault(path, GrowingFile(path)).new_lines():
                if line.startswith('{"Event":"SparkListenerJobStart"'):
                    self._job(json.loads(line))
                elif line.startswith('{"Event":"SparkListenerTaskStart"'):
                    self._task(json.loads(line))

    def _job(self, event: dict[str, Any]) -> None:
        properties = event["Properties"]
        # The plugin's jobs between two micro-batches carry the properties of the first, and their own mark.
        if "streaming.sql.batchId" in properties and _OURS not in properties:
            self._stages |= dict.fromkeys(event["Stage IDs"], properties["sql.streaming.queryId"])

    def _task(self, event: dict[str, Any]) -> None:
        info = event["Task Info"]
        query = self._stages.get(event["Stage ID"])
        if query is not None:
            task = _Task(query=query, executor=info["Executor ID"], launched=info["Launch Time"])
            self._tasks.append(task)


# ---- Checks whether executors were added or removed automatically, as the load requires, and then stayed.


STEADY_MS = 20_000
"""Time (ms) without a change of executors: a few micro-batches, after which a policy has decided."""


def executors_at(changes: Sequence[ExecutorChange], moment: int) -> frozenset[str]:
    """Return the executors that accepted tasks at `moment` (epoch ms)."""
    there: set[str] = set()
    for change in changes:
        if change.at <= moment:
            (there.add if change.kind == "added" else there.discard)(change.executor)
    return frozenset(there)


def follow(outcome: Outcome, trend: Trend, chronicle: Chronicle, tasks: Tasks, now: int) -> None:
    """Compare a step that leads to a trend with the journal up to `now` (epoch ms).

    More executors are in force for a query once one of its tasks has started on the first new one; fewer,
    with the first micro-batch that started after one was removed. The step has settled when every new
    executor has had tasks, nothing has changed for a while, and each query's last micro-batch fits into its
    interval.
    """
    changes = [change for change in chronicle.changes if change.at <= now]
    outcome.before = _most_before(outcome, changes)
    there = executors_at(changes, now)
    outcome.after = len(there)
    kinds = ("added",) if trend is Trend.MORE else ("decommissioning", "removed")
    since = [change for change in changes if change.at > outcome.acted]
    first = next((change for change in since if change.kind in kinds), None)
    if first is None:
        return
    outcome.executor, outcome.executor_at = first.executor, first.at
    for query in chronicle.queries.values():
        if trend is Trend.MORE:
            moment = tasks.first_on(first.executor, first.at, query.query)
        else:
            moment = next((batch.started for batch in query.batches if batch.started >= first.at), None)
        if moment is not None:
            outcome.in_force.setdefault(query.name, moment)
    gone_right = outcome.after > outcome.before if trend is Trend.MORE else outcome.after < outcome.before
    used = all(tasks.first_on(one, 0) is not None for one in there)
    steady = now - since[-1].at >= STEADY_MS
    if gone_right and used and steady and all(query.is_in_time for query in chronicle.queries.values()):
        outcome.settled = now


def _most_before(outcome: Outcome, changes: Sequence[ExecutorChange]) -> int:
    """Return the executors that the trend is compared with; at the start, the most there have ever been."""
    if outcome.step.deed is not Deed.START:
        return len(executors_at(changes, outcome.acted))
    return max((len(executors_at(changes, change.at)) for change in changes), default=0)
