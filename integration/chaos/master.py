"""The cores that the master counts as used although they are not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from urllib.request import urlopen

import psutil

from integration.cluster.application import executors
from spark_elastic_lab.demo.cluster import Worker

_READ_S = 30.0
_STARTS = re.compile(r"Starting Spark worker (\S+):(\d+) with ")


def without_executor(master_ui: str, workers: Iterable[Worker]) -> list[Worker]:
    """Return the workers without an executor whose cores the master counts as used.

    This is normal for a moment while an executor starts or ends. It becomes permanent after a race in Spark:
    a worker that registers again while the master recovers is added without its executors and gets another
    one, and then its own executors are added. The master counts their cores permanently and starts no
    executor there (`Master.scala`: `RegisterWorker` before `WorkerSchedulerStateResponse`). Raises OSError.
    """
    with urlopen(f"{master_ui}/json/", timeout=_READ_S) as response:
        listed = json.load(response)["workers"]
    used = {(row["host"], row["port"]) for row in listed if row["state"] == "ALIVE" and row["coresused"] > 0}
    return [worker for worker in workers if _address(worker) in used and not _has_executor(worker)]


def _address(worker: Worker) -> tuple[str, int] | None:
    """Return a worker's address from its log: another network namespace cannot be inspected."""
    found = _STARTS.search(worker.process.log.read_text(errors="replace"))
    return (found[1], int(found[2])) if found else None


def _has_executor(worker: Worker) -> bool:
    try:
        return bool(executors(worker))
    except psutil.NoSuchProcess:
        return True  # it has ended, which is another problem
