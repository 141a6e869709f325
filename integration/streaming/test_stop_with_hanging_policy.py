"""A context ends as fast as one of plain Spark, though its policy process hangs, or cannot even be killed."""

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


def plain(folder: Path) -> Mapping[str, str]:
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": folder.as_uri(),
        "spark.ui.enabled": "true",
    }


def answering(jvm: Driver, spark: SparkSession) -> psutil.Process:
    """Return the policy process once it answers."""
    policy = eventually(lambda: policies_of(jvm.pid), "there is a policy process")[0]
    url = spark.sparkContext.uiWebUrl
    assert url is not None
    overview = Client(url, "/elastic/api/v1")
    eventually(lambda: overview.get("/overview").status == 200, "it answers")
    return policy


def stop_takes_s(
    jvm: Driver, conf: Mapping[str, str], before: Callable[[SparkSession], object] = lambda spark: None
) -> float:
    """Return how long the end of a context takes, after what is done `before` it."""
    with jvm.session(conf) as spark:
        before(spark)
        began = time.monotonic()
        spark.stop()
        return time.monotonic() - began


def test_of_one_that_stands_still_nothing_is_left(jvm: Driver, tmp_path: Path) -> None:
    hanging: list[psutil.Process] = []

    def stand_still(spark: SparkSession) -> None:
        hanging.append(answering(jvm, spark))
        hanging[-1].send_signal(signal.SIGSTOP)

    def more_s() -> float:
        with_plugin = stop_takes_s(jvm, {**WITH_PLUGIN, **plain(tmp_path)}, stand_still)
        eventually(lambda: not hanging[-1].is_running(), "the one that hangs is gone")
        return with_plugin - stop_takes_s(jvm, plain(tmp_path))

    # Once is enough: a busy machine takes its time for all that Spark itself does.
    assert any(more_s() < MORE_S for _ in range(3))
    assert hanging


def test_one_that_cannot_be_killed_is_left_to_its_fate(jvm: Driver, disk: Disk, tmp_path: Path) -> None:
    conf = {
        **WITH_PLUGIN,
        **plain(tmp_path),
        "spark.elastic.journal.dir": str(disk.folder / "journal"),
        "spark.elastic.startTimeout": "2s",
    }
    hanging: list[psutil.Process] = []

    def wait_for_disk(spark: SparkSession) -> None:
        policy = answering(jvm, spark)
        disk.freeze()
        # It writes down what it is told: of this query.
        query = spark.readStream.format("rate").load().writeStream.format("noop").start()
        eventually(lambda: policy.status() == psutil.STATUS_DISK_SLEEP, "it waits for the disk")
        assert spark.range(1000).repartition(4).count() == 1000
        query.stop()
        hanging.append(policy)

    def more_s() -> float:
        with_plugin = stop_takes_s(jvm, conf, wait_for_disk)
        assert hanging[-1].status() == psutil.STATUS_DISK_SLEEP
        disk.thaw()
        eventually(lambda: not hanging[-1].is_running(), "it ends as soon as it can")
        return with_plugin - stop_takes_s(jvm, plain(tmp_path))

    assert any(more_s() < MORE_S for _ in range(3))
