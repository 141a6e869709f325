"""What a run took: executor-seconds from its event log, and the sums of its stages from sparkMeasure.

sparkMeasure's flight recorder is a listener in the driver. Without its jar, the same sums come from the
event log, where Spark writes the counters that the recorder reads.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from attrs import frozen

from spark_elastic.installation import Spark
from spark_elastic.spark_conf import DRIVER_CLASS_PATH, with_entry
from spark_elastic_lab.advice.told import Told
from spark_elastic_lab.demo.task_log import event_log_conf
from spark_elastic_tools.event_logs.files import LogError, find_logs
from spark_elastic_tools.java import NoJavaError
from spark_elastic_tools.maven import FetchError, NotPublishedError, fetch

Cost = Mapping[str, float]
"""The values of a run by the names of METRICS: seconds, bytes and counts."""

_RECORDER = "ch.cern.sparkmeasure.FlightRecorderStageMetrics"
_LISTENERS = "spark.extraListeners"
_RELEASE = "0.24"
"""The release with jars for both Scalas, where the installed package's own has none for this one."""
_STAGE = "SparkListenerStageCompleted"
_EVENTS, _RECORDED = "events", "stages.json"


_COUNTER = "internal.metrics."
_TASKS = "Number of Tasks"


@frozen
class Metric:
    """A number of a run: its `name` in JSON, its `title`, and its unit: s, B or nothing.

    `recorded` is sparkMeasure's name, None if it comes from elsewhere; its times are ms. `counters` are those
    of a stage in an event log, whose sum has `divisor` in a unit.
    """

    name: str
    title: str
    unit: str = ""
    recorded: str | None = None
    counters: tuple[str, ...] = ()
    divisor: int = 1


def _time(name: str, title: str, recorded: str, divisor: int = 1_000) -> Metric:
    return Metric(name, title, "s", recorded, (f"{_COUNTER}{recorded}",), divisor)


def _bytes(name: str, title: str, recorded: str, *counters: str) -> Metric:
    return Metric(name, title, "B", recorded, tuple(f"{_COUNTER}{counter}" for counter in counters))


WALL = "wallSeconds"
EXECUTORS = "executorSeconds"
_READ = ("shuffle.read.remoteBytesRead", "shuffle.read.localBytesRead")
METRICS = (
    Metric(WALL, "wall time", "s"),
    Metric(EXECUTORS, "executor time", "s"),
    Metric("tasks", "tasks", "", "numTasks", (_TASKS,)),
    _time("taskSeconds", "task time", "executorRunTime"),
    _time("cpuSeconds", "CPU time", "executorCpuTime", 1_000_000_000),
    _time("gcSeconds", "GC time", "jvmGCTime"),
    _bytes("bytesRead", "read", "bytesRead", "input.bytesRead"),
    _bytes("bytesWritten", "written", "bytesWritten", "output.bytesWritten"),
    _bytes("shuffleBytesRead", "shuffle read", "shuffleTotalBytesRead", *_READ),
    _bytes("shuffleBytesWritten", "shuffle written", "shuffleBytesWritten", "shuffle.write.bytesWritten"),
    _bytes("memoryBytesSpilled", "spilled memory", "memoryBytesSpilled", "memoryBytesSpilled"),
    _bytes("diskBytesSpilled", "spilled to disk", "diskBytesSpilled", "diskBytesSpilled"),
)


class CostError(Exception):
    """A run cannot be measured; the message says why and what to do."""


# ---- sparkMeasure's jar.


def measure_jar(spark: Spark | None) -> Path:
    """Return sparkMeasure's jar for a Spark, from Maven Central.

    It is that of the installed Python package, the extra `measure`, or an older one if that has none for this
    Scala. Raises CostError, in one line, if it cannot be had.
    """
    try:
        installed = ".".join(metadata.version("sparkmeasure").split(".")[:2])
    except metadata.PackageNotFoundError:
        raise CostError(
            "the package sparkmeasure is not installed: type pip install 'spark-elastic[measure]', or name "
            "its jar with --measure-jar"
        ) from None
    if spark is None or spark.scala is None:
        raise CostError("the Scala version of this Spark is unknown: name a jar with --measure-jar")
    for release in dict.fromkeys((installed, _RELEASE)):
        try:
            (jar,) = fetch(f"ch.cern.sparkmeasure:spark-measure_{spark.scala}:{release}", transitive=False)
        except NotPublishedError:
            continue
        except (FetchError, NoJavaError) as error:
            raise CostError(f"{str(error).splitlines()[0]}: name its jar with --measure-jar") from error
        return jar
    raise CostError(
        f"Maven has no sparkMeasure {installed} or {_RELEASE} for Scala {spark.scala}: name its jar with "
        "--measure-jar"
    )


def check_jar(jar: Path, spark: Spark | None) -> None:
    """Raise CostError if the name of sparkMeasure's jar has another Scala: Spark would not start with it."""
    named = re.match(r"spark-measure_([\d.]+)-", jar.name)
    if named is not None and spark is not None and spark.scala not in (None, named[1]):
        raise CostError(
            f"{jar.name} is for Scala {named[1]}, but {spark} is not: name the jar "
            f"spark-measure_{spark.scala}-….jar"
        )


# ---- What a run is measured with.


def measuring_settings(
    conf: Mapping[str, str], settings: Mapping[str, str], folder: Path, jar: Path | None
) -> dict[str, str]:
    """Return a side's `settings` with those that write its costs into `folder`, which is created."""
    events = folder / _EVENTS
    events.mkdir(parents=True)
    result = {**settings, **event_log_conf(events)}
    if jar is not None:
        there = {**conf, **settings}
        result[_LISTENERS] = with_entry(there.get(_LISTENERS, ""), _RECORDER, ",")
        result[DRIVER_CLASS_PATH] = with_entry(there.get(DRIVER_CLASS_PATH, ""), str(jar), os.pathsep)
        result["spark.sparkmeasure.outputFormat"] = "json"
        result["spark.sparkmeasure.outputFilename"] = str(folder / _RECORDED)
    return result


def read_cost(folder: Path, wall_s: float, *, recorded: bool) -> Cost:
    """Return what a run took, whose events and, if `recorded`, stages are in `folder`. Raises CostError."""
    told, counted = _events(folder / _EVENTS)
    stages = _recorded(folder / _RECORDED) if recorded else counted
    return {WALL: wall_s, EXECUTORS: told.executors.total(told.end) / 1_000, **stages}


def _events(folder: Path) -> tuple[Told, Cost]:
    try:
        logs = find_logs(folder)
    except LogError:
        raise CostError(
            "the command started no Spark application, or its own code sets spark.eventLog.enabled or "
            "spark.eventLog.dir: remove that there"
        ) from None
    if len(logs) > 1:
        raise CostError(f"the command ran {len(logs)} Spark applications: compare one at a time")
    told = Told(on_stage=lambda _: None)
    sums = {metric: 0 for metric in METRICS if metric.recorded is not None}
    try:
        for event in logs[0].events(Told.wants):
            told.read([event])
            if event["Event"] == _STAGE:
                _count(event["Stage Info"], sums)
    except (LogError, KeyError, TypeError, ValueError) as error:
        raise CostError(
            f"the event log cannot be read ({error}): was it written by Spark 3.5 to 4.3?"
        ) from error
    return told, {metric.name: total / metric.divisor for metric, total in sums.items()}


def _count(stage: Mapping[str, Any], sums: dict[Metric, int]) -> None:
    """Add the counters of a stage in an event log; Spark leaves out those that are 0."""
    there = {one["Name"]: one["Value"] for one in stage["Accumulables"] if "Value" in one}
    there[_TASKS] = stage[_TASKS]
    for metric in sums:
        sums[metric] += sum(int(there.get(counter, 0)) for counter in metric.counters)


def _recorded(file: Path) -> Cost:
    try:
        stages = json.loads(file.read_text(encoding="utf-8"))
        return {
            metric.name: sum(stage[metric.recorded] for stage in stages)
            / (1_000 if metric.unit == "s" else 1)
            for metric in METRICS
            if metric.recorded is not None
        }
    except FileNotFoundError:
        raise CostError(
            "sparkMeasure wrote nothing: is its jar for the Scala of this Spark? Name another one with "
            "--measure-jar"
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CostError(
            f"sparkMeasure's file cannot be read ({error!r}): name another --measure-jar"
        ) from error
