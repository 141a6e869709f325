"""A stand-in for a cluster's autoscaler: reads the driver's metrics, and starts and decommissions workers."""

from __future__ import annotations

import threading
import time
from http.client import HTTPException

from attrs import define, field, frozen

from integration.cluster.application import Application, executors
from integration.streaming.scrape import metric
from spark_elastic_lab.demo.cluster import Worker
from spark_elastic_lab.simulator.rivals.kubernetes import Hpa

PERIOD_S = 2.0
"""The interval between two looks; Kubernetes looks every 15 s."""

_LEAVING_S = 60.0
_METRIC = "desired_slots"


def _read(url: str) -> float | None:
    """Read the metric, None if there is no answer."""
    try:
        return metric(url, _METRIC)
    except (OSError, HTTPException):
        return None


@frozen
class Look:
    """One look: the metric, the workers before, and the workers after."""

    at: float
    value: float | None
    before: int
    after: int


@define
class Autoscaler:
    """Keeps `app.workers` at the number given by `rule`, in a thread of its own, during the block."""

    app: Application
    rule: Hpa
    looks: list[Look] = field(factory=list)
    errors: list[BaseException] = field(factory=list)
    _ending: threading.Event = field(factory=threading.Event)
    _thread: threading.Thread = field(init=False)

    def __enter__(self) -> Autoscaler:
        self._thread = threading.Thread(target=self._run, name="autoscaler", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join(_LEAVING_S + PERIOD_S)

    def _run(self) -> None:
        url = str(self.app.spark.sparkContext.uiWebUrl)
        try:
            while not self._ending.wait(PERIOD_S):
                self._look(url)
        # reported by the test: an exception that ends a thread is not seen otherwise
        except BaseException as error:
            self.errors.append(error)

    def _look(self, url: str) -> None:
        workers, now = self.app.workers, time.monotonic()
        value, before = _read(url), len(workers)
        wanted = self.rule.replicas(before, value, now)
        while len(workers) < wanted:
            workers.append(self.app.cluster.start_worker(1))
        while len(workers) > wanted:
            self._remove(workers.pop())
        self.looks.append(Look(now, value, before, wanted))

    def _remove(self, worker: Worker) -> None:
        """Do what the hook of workers in conf/kubernetes/chart and then Kubernetes do."""
        self.app.cluster.decommission_worker(worker)
        deadline = time.monotonic() + _LEAVING_S
        while executors(worker) and time.monotonic() < deadline:
            time.sleep(0.1)
        self.app.cluster.remove_worker(worker)
