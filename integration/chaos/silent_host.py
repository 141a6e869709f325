"""Measure how long a query is stalled when a host falls silent, for several of Spark's settings.

`python -m integration.chaos.silent_host FOLDER` cuts the link of a worker while a task runs there: no process
is notified, and no connection ends. It prints one line for each set of settings. It needs root, as `network`
does.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from attrs import frozen
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from integration.chaos.network import network
from integration.streaming.driver import Driver, driver
from integration.streaming.waiting import eventually
from spark_elastic_lab.demo.cluster import SMALL_JVM, Cluster
from spark_elastic_lab.demo.plugin import demo_conf

_START_S, _LOSS_S = 120.0, 420.0
_USUAL_BATCHES = 5
# No micro-batch of a healthy query takes this long.
_STILL_MS = 15_000
_ROW_MS = 30
# The master does not report a lost worker in time, as if another cluster manager watched the hosts.
_NOBODY_TELLS = 3_600


@frozen
class Setting:
    """Settings of the application, and the silence (s) after which the master gives up a worker."""

    name: str
    conf: Mapping[str, str]
    worker_timeout_s: int


SETTINGS = (
    Setting("defaults, Standalone", {}, 60),
    Setting("defaults, nobody tells", {}, _NOBODY_TELLS),
    Setting(
        "30 s, nobody tells",
        {
            "spark.network.timeout": "30s",
            "spark.network.timeoutInterval": "5s",
            "spark.executor.heartbeatInterval": "5s",
        },
        _NOBODY_TELLS,
    ),
)


def start(spark: SparkSession, checkpoint: Path) -> StreamingQuery:
    """Start a query with tasks on both executors that take some time, each second."""
    rows = spark.readStream.format("rate").option("rowsPerSecond", 20).load().repartition("value")
    waited = rows.selectExpr("value", f"reflect('java.lang.Thread', 'sleep', {_ROW_MS}L) AS waited")
    writer = waited.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    return writer.trigger(processingTime="1 second").start()


def batches(query: StreamingQuery) -> int:
    """Return the number of committed micro-batches."""
    assert query.exception() is None, query.exception()
    return 0 if query.lastProgress is None else int(query.lastProgress["batchId"]) + 1


def longest_ms(query: StreamingQuery, since: int) -> int:
    """Return the duration of the stalled micro-batch, from a batch number on; 0 if it has not ended yet."""
    took = [int(one["batchDuration"]) for one in query.recentProgress if one["batchId"] >= since]
    return max((ms for ms in took if ms > _STILL_MS), default=0)


def said(jvm: Driver, words: str) -> str | None:
    """Return the first line of the driver's log with these words, or None if there is none yet."""
    return next((line for line in jvm.said() if words in line), None)


def measure(setting: Setting, folder: Path) -> dict[str, object]:
    """Run with a setting and return the measurement."""
    os.environ["JDK_JAVA_OPTIONS"] = f"-Dspark.worker.timeout={setting.worker_timeout_s}"
    with ExitStack() as closing:
        net = closing.enter_context(network())
        cluster = closing.enter_context(Cluster(folder / "cluster", net.host))
        jvm = closing.enter_context(driver(folder / "driver"))
        conf = {
            "spark.master": cluster.master_url,
            "spark.driver.host": net.host,
            "spark.driver.bindAddress": net.host,
            "spark.executor.cores": "1",
            "spark.executor.memory": "640m",
            "spark.executor.extraJavaOptions": SMALL_JVM,
            "spark.sql.adaptive.coalescePartitions.enabled": "false",
            **demo_conf(folder / "journal"),
            **setting.conf,
        }
        spark = closing.enter_context(jvm.session(conf))
        hosts = []
        for _ in range(2):
            host, within = net.join()
            cluster.start_worker(1, host=host, within=within)
            hosts.append(host)
        query = start(spark, folder / "checkpoint")
        tracker = spark.sparkContext._jsc.sc().statusTracker()

        def at_work() -> set[str]:
            found = tracker.getExecutorInfos()
            return {one.host() for one in found if one.numRunningTasks()}

        eventually(lambda: len(tracker.getExecutorInfos()) == 3, "two executors", _START_S, 0.2)
        since = batches(query)
        eventually(lambda: batches(query) >= since + _USUAL_BATCHES, "it runs", _START_S, 0.1)
        eventually(lambda: hosts[0] in at_work(), "a task runs there", _START_S)
        committed = batches(query)
        net.cut(hosts[0])
        still_ms = eventually(lambda: longest_ms(query, committed), "it goes on", _LOSS_S, 0.1)
        lost = eventually(lambda: said(jvm, "Lost executor"), "the executor is lost", _LOSS_S, 0.1)
        query.stop()
        return {"setting": setting.name, "stood_still_s": round(still_ms / 1_000, 1), "lost": lost}


def main() -> None:
    """Measure with each setting."""
    folder = Path(sys.argv[1])
    for number, setting in enumerate(SETTINGS):
        print(json.dumps(measure(setting, folder / str(number))), flush=True)


if __name__ == "__main__":
    main()
