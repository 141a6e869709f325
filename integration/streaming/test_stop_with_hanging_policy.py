"""Tests that a context stops as fast as in plain Spark with a policy that hangs or cannot be killed."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from integration.streaming import frozen_disk
from integration.streaming.driver import Driver, driver, policies_of
from integration.streaming.frozen_disk import Disk
from integration.streaming.http import Client
from integration.streaming.launch import WITH_PLUGIN
from integration.streaming.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

# Less than the 10 s after which the driver would consider the policy process hanging.
MORE_S = 5.0


@pytest.fixture(scope="module")
def jvm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    with driver(tmp_path_factory.mktemp("hanging") / "driver") as started:
        yield started


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    why_not = frozen_disk.why_not(tmp_path / "tried")
    if why_not is not None:
        pytest.skip(f"no process can be brought into an uninterruptible wait: {why_not}")
    with frozen_disk.disk(tmp_path / "disk") as made:
        yield made


def answering(jvm: Driver, spark: SparkSession) -> psutil.Process:
    """Return the policy process once it answers."""
    policy = eventually(lambda: policies_of(jvm.pid), "there is a policy process")[0]
    url = spark.sparkContext.uiWebUrl
    assert url is not None
    overview = Client(url, "/elastic/api/v1")
    eventually(lambda: overview.get("/overview").status == 200, "it answers")
    return policy


def stop_takes_s(jvm: Driver, conf: Mapping[str, str], before: Callable[[SparkSession], object]) -> float:
    """Return how long the end of a context takes, after `before` has been called."""
    with jvm.session(conf) as spark:
        before(spark)
        began = time.monotonic()
        spark.stop()
        return time.monotonic() - began


def check_stops_in_time(
    jvm: Driver,
    folder: Path,
    conf: Mapping[str, str],
    hang: Callable[[SparkSession], object],
    after: Callable[[], object],
) -> None:
    """Check that a context stops in time though its policy process hangs, and that no process is left."""
    plain = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder.as_uri(),
        "spark.ui.enabled": "true",
    }

    def more_s() -> float:
        ours = stop_takes_s(jvm, {**WITH_PLUGIN, **plain, **conf}, hang)
        after()
        eventually(lambda: not policies_of(jvm.pid), "no policy process is left")
        return ours - stop_takes_s(jvm, plain, lambda spark: None)

    # One fast stop is enough: on a busy machine Spark's own work takes its time.
    assert any(more_s() < MORE_S for _ in range(3))


def test_a_context_whose_policy_stands_still_stops_in_time(jvm: Driver, tmp_path: Path) -> None:
    def stand_still(spark: SparkSession) -> None:
        answering(jvm, spark).send_signal(signal.SIGSTOP)

    check_stops_in_time(jvm, tmp_path, {}, stand_still, lambda: None)


def test_a_context_whose_policy_cannot_be_killed_stops_in_time(
    jvm: Driver, disk: Disk, tmp_path: Path
) -> None:
    conf = {"spark.elastic.journal.dir": str(disk.folder / "journal"), "spark.elastic.startTimeout": "2s"}
    policies: list[psutil.Process] = []

    def wait_for_disk(spark: SparkSession) -> None:
        policy = answering(jvm, spark)
        policies.append(policy)
        disk.freeze()
        # The policy writes the new query to its journal.
        query = spark.readStream.format("rate").load().writeStream.format("noop").start()
        eventually(lambda: policy.status() == psutil.STATUS_DISK_SLEEP, "it waits for the disk")
        assert spark.range(1000).repartition(4).count() == 1000
        query.stop()

    def thaw() -> None:
        assert policies[-1].status() == psutil.STATUS_DISK_SLEEP
        disk.thaw()

    check_stops_in_time(jvm, tmp_path, conf, wait_for_disk, thaw)
