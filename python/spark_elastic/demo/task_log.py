"""Where the tasks of micro-batches ran, from Spark's own event log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Protocol

import attrs

from spark_elastic.live.growing_file import GrowingFile

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
