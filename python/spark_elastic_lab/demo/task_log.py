"""Where the tasks of micro-batches ran, from Spark's own event log."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import attrs

from spark_elastic_lab.demo.chronicle import Chronicle, ExecutorChange
from spark_elastic_lab.demo.steps import Deed, Outcome, Trend
from spark_elastic_tools.live import GrowingFile

#: The property that jobs of the plugin's have, as its `CurrentExecution.scala` has it.
_OURS = "spark.elastic.own"


def event_log_conf(folder: Path) -> dict[str, str]:
    """Return the settings that make Spark write its event log below `folder`, to one plain file."""
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

        It is a task of any query, or of the one with the id `query`.
        """
        ...


@attrs.frozen(kw_only=True)
class _Task:
    """One task of a micro-batch of a `query` (its id); `launched` in epoch ms."""

    query: str
    executor: str
    launched: int


class TaskLog:
    """The tasks of micro-batches, as far as they are written."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[Path, GrowingFile] = {}
        self._stages: dict[int, str] = {}
        self._tasks: list[_Task] = []

    def first_on(self, executor: str, moment: int, query: str | None = None) -> int | None:
        """Do as `Tasks.first_on` says."""
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
        # What the plugin does between two micro-batches has the properties of the former, and its own mark.
        if "streaming.sql.batchId" in properties and _OURS not in properties:
            self._stages |= dict.fromkeys(event["Stage IDs"], properties["sql.streaming.queryId"])

    def _task(self, event: dict[str, Any]) -> None:
        info = event["Task Info"]
        query = self._stages.get(event["Stage ID"])
        if query is not None:
            task = _Task(query=query, executor=info["Executor ID"], launched=info["Launch Time"])
            self._tasks.append(task)


# Whether executors have come or gone by themselves, as the load has it, and have stayed so for a while.


STEADY_MS = 20_000
"""So long nothing has come or gone: a few micro-batches, after which a policy has said what it means to."""


def executors_at(changes: Sequence[ExecutorChange], moment: int) -> frozenset[str]:
    """Return the executors that took tasks at `moment` (epoch ms)."""
    there: set[str] = set()
    for change in changes:
        if change.at <= moment:
            (there.add if change.kind == "added" else there.discard)(change.executor)
    return frozenset(there)


def follow(outcome: Outcome, trend: Trend, chronicle: Chronicle, tasks: Tasks, now: int) -> None:
    """Compare a step that leads to a trend with what the journal says up to `now` (epoch ms).

    More are in force for a query when a task of it has begun on the first one that came, fewer with the first
    micro-batch that has begun since one went. It has settled when every executor that came has had tasks,
    nothing has changed for a while, and each query's last micro-batch fits into its interval.
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
    """Count the executors from which the trend counts: at the start, the most that have ever been there."""
    if outcome.step.deed is not Deed.START:
        return len(executors_at(changes, outcome.acted))
    return max((len(executors_at(changes, change.at)) for change in changes), default=0)
