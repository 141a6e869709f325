"""A query of Nexmark on a Spark cluster, under a load that steps, while workers come and go."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from integration.bench.application import plugin_conf
from integration.bench.nexmark.figures import Reading, covered, figures, readings
from integration.bench.nexmark.load import (
    END_TIMEOUT_S,
    START_TIMEOUT_S,
    TRIGGER_MS,
    EventNumbers,
    Trial,
    follow,
)
from integration.bench.nexmark.schedule import Change
from integration.bench.nexmark.streams import compare
from integration.cluster.application import executors
from integration.cluster.lines import ONE_SLOT_EACH, autoscaled
from integration.orders import connected
from integration.streaming.driver import driver
from integration.streaming.launch import CHECKOUT
from spark_elastic_lab.advice.told import Told, moment
from spark_elastic_lab.demo.cluster import Cluster, Worker
from spark_elastic_lab.demo.processes import LoggedProcess, ProcessFailure
from spark_elastic_lab.demo.task_log import event_log_conf
from spark_elastic_lab.simulator.record import Steps
from spark_elastic_tools.event_logs.files import find_logs

VARIANTS = ("plain", "reactive", "autoscale")
# How long executors that are not needed are kept, the same for each variant that releases some.
_RELEASE_AFTER_S = 20
_APPLICATION = Path(__file__).with_name("app.py")


def run(folder: Path, query: str, variant: str, trial: Trial) -> dict[str, Any]:
    """Run a query with a variant, and return its figures and the comparison of its output with a batch.

    Raises ProcessFailure if the application fails or does not end.
    """
    folder.mkdir()
    with Cluster(folder / "cluster") as cluster:
        workers = [cluster.add_worker() for _ in range(trial.workers - 1)]
        application = _submitted(cluster, folder, query, variant, trial)
        with connected(application, folder / "socket", START_TIMEOUT_S) as orders:
            begin = int(time.time()) + 2
            load = trial.schedule.load
            with EventNumbers(folder=folder / "lines", load=load, begin=begin) as numbers:
                follow(trial.schedule, numbers, application, partial(_do, cluster, workers))
            try:
                orders.send("finish")
                watermark = orders.recv() if orders.poll(END_TIMEOUT_S) else None
            except (OSError, EOFError):
                raise ProcessFailure(f"{query} has failed\n{application.log_tail()}") from None
            if application.wait(START_TIMEOUT_S) != 0:
                raise ProcessFailure(f"{query} did not end well\n{application.log_tail()}")
    reports = [json.loads(line) for line in (folder / "progress").read_text("utf-8").splitlines()]
    read = _readings(folder / "checkpoint" / "sources", numbers.files, reports)
    there = _executors(folder / "events")
    durations = [report["durationMs"]["triggerExecution"] for report in _measured(reports, trial, begin)]
    with driver(folder / "check") as jvm, jvm.session({"spark.sql.shuffle.partitions": "4"}) as spark:
        rows = compare(spark, query, numbers.written, folder / "output", watermark)
    return figures(trial.schedule, begin * 1_000, read, durations, there) | {"output": rows}


def _submitted(cluster: Cluster, folder: Path, query: str, variant: str, trial: Trial) -> LoggedProcess:
    for name in ("lines", "events"):
        (folder / name).mkdir()
    places = [str(folder / name) for name in ("lines", "output", "checkpoint", "progress")]
    arguments = [query, *places, str(TRIGGER_MS), str(trial.wait_us), str(folder / "socket")]
    conf = {**ONE_SLOT_EACH, **event_log_conf(folder / "events"), **_conf(variant, folder, trial.workers)}
    env = {"PYTHONPATH": str(CHECKOUT)}  # for the code that the application shares with the bench
    return cluster.submit(_APPLICATION, arguments, conf=conf, env=env)


def _conf(variant: str, folder: Path, workers: int) -> dict[str, str]:
    """Return a variant's settings. Plain Spark gets the number of partitions that is best for all workers."""
    if variant == "plain":
        release = f"{_RELEASE_AFTER_S}s"
        return {
            "spark.sql.shuffle.partitions": str(workers),
            "spark.dynamicAllocation.enabled": "true",
            "spark.dynamicAllocation.minExecutors": "1",
            "spark.dynamicAllocation.maxExecutors": str(workers),
            "spark.dynamicAllocation.executorIdleTimeout": release,
            "spark.dynamicAllocation.shuffleTracking.enabled": "true",
            # Without an end, shuffles of finished micro-batches would keep executors.
            "spark.dynamicAllocation.shuffleTracking.timeout": release,
        }
    ours = {**plugin_conf(), "spark.elastic.journal.dir": str(folder / "journal")}
    return ours | (autoscaled(workers, _RELEASE_AFTER_S) if variant == "autoscale" else {})


def _do(cluster: Cluster, workers: list[Worker], change: Change) -> None:
    if change.deed == "join":
        workers.append(cluster.start_worker())
        return
    used = next((worker for worker in workers if executors(worker)), workers[0])
    workers.remove(used)
    cluster.kill_worker(used)


# ---- What a run has left behind


def _readings(sources: Path, files: Mapping[int, str], reports: Sequence[Mapping[str, Any]]) -> list[Reading]:
    logs = sorted(sources.iterdir(), key=lambda source: int(source.name))
    places = [covered(files, dict(_logged(log))) for log in logs]
    ends = (
        (_ended(report), [(one["endOffset"] or {}).get("logOffset") for one in report["sources"]])
        for report in reports
    )
    return readings(ends, places)


def _logged(log: Path) -> Iterator[tuple[str, int]]:
    """Yield the name of each file that a source has read, and its place in the source's log."""
    for part in log.iterdir():
        if not part.name.startswith("."):
            # The first line is the version of the format.
            for line in part.read_text("utf-8").splitlines()[1:]:
                entry = json.loads(line)
                yield entry["path"].rpartition("/")[2], entry["batchId"]


def _executors(events: Path) -> Steps:
    told = Told(on_stage=lambda _: None)
    for log in find_logs(events):
        told.read(log.events(Told.wants))
    return told.executors


def _ended(report: Mapping[str, Any]) -> int:
    took: int = report["durationMs"]["triggerExecution"]
    return moment(report["timestamp"]) + took


def _measured(reports: Sequence[Mapping[str, Any]], trial: Trial, begin: int) -> Iterator[Mapping[str, Any]]:
    """Yield the reports of micro-batches with input that began in the measured seconds."""
    for report in reports:
        second = moment(report["timestamp"]) // 1_000 - begin
        if second in trial.schedule.measured and report["numInputRows"]:
            yield report
