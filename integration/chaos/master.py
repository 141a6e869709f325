"""What the master counts as used, though nobody uses it."""

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
    """Return the workers whose cores are used, as the master says, and that have no executor.

    For a moment that is so of each executor that starts or ends. It stays so after a race of Spark's own: a
    worker that registers anew while the master recovers is taken in without its executors, gets one more, and
    then those that it had are added. The master counts their cores for good, and starts no executor there
    (`Master.scala`: `RegisterWorker` before `WorkerSchedulerStateResponse`). Raises OSError.
    """
    with urlopen(f"{master_ui}/json/", timeout=_READ_S) as response:
        listed = json.load(response)["workers"]
    used = {(row["host"], row["port"]) for row in listed if row["state"] == "ALIVE" and row["coresused"] > 0}
    return [worker for worker in workers if _address(worker) in used and not _has_executor(worker)]


def _address(worker: Worker) -> tuple[str, int] | None:
    """Return where a worker listens. Its log says it: nobody sees into another network namespace."""
    found = _STARTS.search(worker.process.log.read_text(errors="replace"))
    return (found[1], int(found[2])) if found else None


def _has_executor(worker: Worker) -> bool:
    try:
        return bool(executors(worker))
    except psutil.NoSuchProcess:
        return True  # it has ended, and lacks more than that
