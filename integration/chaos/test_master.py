"""A worker without an executor that the master counts as used is found."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from integration.chaos.master import without_executor
from integration.cluster.application import executors
from integration.streaming.driver import driver
from integration.streaming.waiting import eventually
from spark_elastic_lab.demo.cluster import Cluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]


def test_a_worker_that_cannot_say_that_its_executor_has_gone_is_found(tmp_path: Path) -> None:
    with Cluster(tmp_path / "cluster") as cluster, driver(tmp_path / "driver") as jvm:
        workers = [cluster.add_worker(), cluster.add_worker()]
        one, other = workers
        with jvm.session({"spark.master": cluster.master_url, "spark.executor.memory": "640m"}):
            eventually(lambda: all(map(executors, workers)), "both have executors")
            assert not without_executor(cluster.master_ui, workers)
            one.process.send(signal.SIGSTOP)
            for executor in executors(one).values():
                executor.kill()
            assert eventually(lambda: without_executor(cluster.master_ui, workers), "it is found") == [one]
            one.process.send(signal.SIGCONT)
            eventually(lambda: executors(one), "it has another executor")
            assert not without_executor(cluster.master_ui, workers)
        eventually(lambda: not executors(other), "its executor has gone")
        eventually(lambda: not without_executor(cluster.master_ui, [other]), "the master knows it")
