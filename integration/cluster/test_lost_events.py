"""Tests that executor events that the listener bus lost are found: a bus with a full queue drops events."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from integration.cluster.executors import Executors, with_executors
from integration.streaming.driver import PLUGIN, Driver
from integration.streaming.stand_ins import ScriptedPolicy
from integration.streaming.waiting import eventually
from spark_elastic_lab.demo.cluster import Cluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

MISSED = re.compile(r"lost events of executors (\d+, )*3[ ,]")


@pytest.fixture
def policy(tmp_path: Path) -> ScriptedPolicy:
    return ScriptedPolicy(tmp_path / "policy")


@pytest.fixture
def executors(master: Cluster, jvm: Driver, policy: ScriptedPolicy) -> Iterator[Executors]:
    with with_executors(master, jvm, 2, {**PLUGIN, "spark.elastic.python": policy.python}) as found:
        yield found


def told(policy: ScriptedPolicy, kind: str) -> list[Any]:
    return [event["executor"] for event in policy.all(kind)]


def test_an_executor_that_nobody_was_told_of_is_told_of_late(
    executors: Executors, policy: ScriptedPolicy, jvm: Driver
) -> None:
    context = executors.spark.sparkContext._jsc.sc()
    bus = context.listenerBus()
    (listener,) = (
        found
        for found in (bus.listeners().get(i) for i in range(bus.listeners().size()))
        if found.getClass().getSimpleName() == "ClusterListener"
    )
    since = len(jvm.said())
    bus.removeListener(listener)
    executors.add()
    executors.kill()
    executors.add()
    eventually(lambda: "3" in told(policy, "ExecutorAdded"), "the executor is told of")
    # This shows that the periodic check reported it.
    assert any(MISSED.search(line) for line in jvm.said()[since:])
    executors.kill()
    eventually(lambda: "3" in told(policy, "ExecutorRemoved"), "its end is told of")
    # Executors that come and go between two checks are not reported; the end of reported ones is.
    for executor in {"2"} & {*told(policy, "ExecutorAdded")}:
        eventually(lambda one=executor: one in told(policy, "ExecutorRemoved"), "its end is told of")  # type: ignore[misc]


@pytest.mark.slow
def test_an_executor_that_joins_an_excluded_host_has_no_slots(
    executors: Executors, policy: ScriptedPolicy, jvm: Driver
) -> None:
    scheduler = jvm.jvm.org.apache.spark.scheduler
    bus = executors.spark.sparkContext._jsc.sc().listenerBus()

    def hosts() -> set[str]:
        added = [executor for event in policy.all("Snapshot") for executor in event["executors"]]
        return {executor["host"] for executor in (*added, *policy.all("ExecutorAdded"))}

    (host,) = eventually(hosts, "the policy knows an executor")
    bus.post(scheduler.SparkListenerNodeExcluded(0, host, 2))
    eventually(lambda: {"0", "1"} <= set(told(policy, "ExecutorExcluded")), "the host is excluded")
    executors.add()
    eventually(lambda: "2" in told(policy, "ExecutorExcluded"), "the new one is excluded, too")
    bus.post(scheduler.SparkListenerNodeUnexcluded(1, host))
    eventually(lambda: "2" in told(policy, "ExecutorUnexcluded"), "it has slots again")
