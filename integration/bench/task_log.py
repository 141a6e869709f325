"""Where the tasks of micro-batches ran, from Spark's own event log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import attrs

from integration.bench.growing_file import GrowingFile


def event_log_conf(folder: Path) -> dict[str, str]:
    """Return the settings that make Spark write its event log below `folder`, to one plain file."""
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }


@attrs.frozen(kw_only=True)
class _Task:
    """One task of a micro-batch; `launched` in epoch ms."""

    executor: str
    launched: int


class TaskLog:
    """The tasks of micro-batches, as far as they are written."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[Path, GrowingFile] = {}
        self._stages: set[int] = set()
        self._tasks: list[_Task] = []

    def first_on(self, executor: str, moment: int) -> int | None:
        """Return when the first task that was launched on an executor after `moment` began (epoch ms)."""
        self._read()
        launches = (t.launched for t in self._tasks if t.executor == executor and t.launched >= moment)
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
        # What the plugin does between two micro-batches has the properties of the former, and its own name.
        ours = properties.get("spark.job.description", "").startswith("spark-elastic:")
        if "streaming.sql.batchId" in properties and not ours:
            self._stages.update(event["Stage IDs"])

    def _task(self, event: dict[str, Any]) -> None:
        info = event["Task Info"]
        if event["Stage ID"] in self._stages:
            self._tasks.append(_Task(executor=info["Executor ID"], launched=info["Launch Time"]))
