"""What the master counts as used, though nobody uses it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from urllib.request import urlopen

import psutil

from integration.cluster.application import executors
from integration.streaming.driver import listening
from spark_elastic.demo.cluster import Worker

_READ_S = 5.0


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
    found = []
    for worker in workers:
        with suppress(psutil.NoSuchProcess):
            ports = listening(worker.process.pid)
            if not executors(worker) and any((worker.host, port) in used for port in ports):
                found.append(worker)
    return found
