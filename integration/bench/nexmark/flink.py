"""A query of Nexmark on a Flink cluster in reactive mode, under the same load and with the same changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import define, field
from pyspark.sql import SparkSession

from integration.bench.application import now_ms
from integration.bench.nexmark.events import WATERMARK_S, time_of, views_in_flink
from integration.bench.nexmark.figures import Reading, Snapshot, committed, figures
from integration.bench.nexmark.load import (
    END_TIMEOUT_S,
    START_TIMEOUT_S,
    TRIGGER_MS,
    EventNumbers,
    Trial,
    follow,
)
from integration.bench.nexmark.queries import QUERIES as IN_SPARK
from integration.bench.nexmark.schedule import Change
from integration.bench.nexmark.streams import answer
from integration.flink.cluster import FlinkCluster
from integration.streaming.driver import driver
from spark_elastic_lab.demo.compare import difference
from spark_elastic_lab.demo.processes import LoggedProcess, ProcessFailure
from spark_elastic_lab.simulator.record import Steps

_JOB = Path(__file__).parents[2] / "flink" / "NexmarkQuery.java"
_CONF = {
    "execution.checkpointing.interval": f"{TRIGGER_MS} ms",
    # Each checkpoint of a run is read at its end.
    "web.checkpoints.history": "10000",
}
_POLL_S = 0.5

_COUNTS = """
    SELECT window_start, window_end, auction, count(*) AS num
    FROM TABLE(HOP(TABLE bid, DESCRIPTOR(dateTime), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
    GROUP BY window_start, window_end, auction
"""

QUERIES: Mapping[str, str] = {
    "q1": IN_SPARK["q1"].text,
    "q3": IN_SPARK["q3"].text,
    "q5": f"""
        SELECT c.window_start AS starttime, c.window_end AS endtime, c.auction, c.num
        FROM ({_COUNTS}) c JOIN (
          SELECT window_start, window_end, max(num) AS most
          FROM ({_COUNTS}) GROUP BY window_start, window_end) m
        ON c.window_start = m.window_start AND c.window_end = m.window_end AND c.num = m.most
    """,
    "q8": """
        SELECT p.id, p.name, p.window_start AS starttime, p.window_end AS endtime
        FROM (
          SELECT id, name, window_start, window_end
          FROM TABLE(TUMBLE(TABLE person, DESCRIPTOR(dateTime), INTERVAL '10' SECOND))
          GROUP BY id, name, window_start, window_end) p
        JOIN (
          SELECT seller, window_start, window_end
          FROM TABLE(TUMBLE(TABLE auction, DESCRIPTOR(dateTime), INTERVAL '10' SECOND))
          GROUP BY seller, window_start, window_end) a
        ON p.id = a.seller AND p.window_start = a.window_start AND p.window_end = a.window_end
    """,
    "q11": """
        SELECT bidder, count(*) AS bids, window_start AS starttime, window_end AS endtime
        FROM TABLE(SESSION(TABLE bid PARTITION BY bidder, DESCRIPTOR(dateTime), INTERVAL '10' SECOND))
        GROUP BY bidder, window_start, window_end
    """,
}
"""The queries that also run in Flink, in its SQL, with the columns of Spark's."""


@define
class _Side:
    """A cluster that runs a query, and its TaskManagers by time (epoch ms)."""

    cluster: FlinkCluster
    notes: Path
    workers: list[LoggedProcess] = field(factory=list)
    there: Steps = field(factory=Steps)

    def add_worker(self) -> None:
        self.workers.append(self.cluster.add_worker())
        self.there.note(now_ms(), len(self.workers))

    def do(self, change: Change) -> None:
        if change.deed == "join":
            self.add_worker()
            return
        self.cluster.kill_worker(self.workers.pop(0))
        self.there.note(now_ms(), len(self.workers))

    def checkpoints(self) -> list[dict[str, Any]]:
        """Return what the REST API says of each completed checkpoint."""
        said: list[dict[str, Any]] = self.cluster.job("/checkpoints")["history"]
        return [one for one in said if one["status"] == "COMPLETED"]

    def readings(self) -> list[Reading]:
        """Return what each of them has read."""
        ended = {one["id"]: one["latest_ack_timestamp"] for one in self.checkpoints()}
        return committed([*_snapshots(self.notes)], ended)

    def wait(self, done: Callable[[], bool], what: str, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while not done():
            if time.monotonic() > deadline or not self.cluster.job_manager.running:
                raise ProcessFailure(f"the job does not {what}\n{self.cluster.job_manager.log_tail()}")
            time.sleep(_POLL_S)


def run(folder: Path, query: str, trial: Trial) -> dict[str, Any]:
    """Run one of the `QUERIES`; return its figures and the comparison of its output with a batch of Spark.

    At the end the job is drained, so that all windows are closed. Raises ProcessFailure if it fails or does
    not end.
    """
    lines, output, notes = (folder / name for name in ("lines", "output", "notes"))
    for place in (folder, lines, notes):
        place.mkdir()
    times = (str(trial.wait_us), str(time_of(0)), str(WATERMARK_S * 1_000))
    # The name of the column is a keyword there.
    sql = [text.replace("dateTime", "`dateTime`") for text in (*views_in_flink(), QUERIES[query])]
    arguments = [str(lines), str(output), str(notes), *times, *sql]
    with FlinkCluster(folder / "flink", _JOB, arguments, _CONF, sql=True) as cluster:
        side = _Side(cluster, notes)
        for _ in range(trial.workers - 1):
            side.add_worker()
        side.wait(lambda: bool(side.checkpoints()), "start", START_TIMEOUT_S)
        begin = int(time.time()) + 2
        with EventNumbers(folder=lines, load=trial.schedule.load, begin=begin) as numbers:
            follow(trial.schedule, numbers, cluster.job_manager, side.do)
        side.wait(lambda: side.readings()[-1].covered == numbers.written, "read all", END_TIMEOUT_S)
        read, checkpoints = side.readings(), side.checkpoints()
        cluster.drain(END_TIMEOUT_S)
    durations = [
        one["end_to_end_duration"]
        for one in checkpoints
        if one["trigger_timestamp"] // 1_000 - begin in trial.schedule.measured
    ]
    with driver(folder / "check") as jvm, jvm.session({"spark.sql.shuffle.partitions": "4"}) as spark:
        rows = compare(spark, query, numbers.written, output)
    return figures(trial.schedule, begin * 1_000, read, durations, side.there) | {"output": rows}


def compare(spark: SparkSession, query: str, events: int, output: Path) -> dict[str, int]:
    """Compare what a drained job has written with a batch of Spark over the first `events` events.

    Returns what `difference` returns.
    """
    expected = answer(spark, query, events)
    found = spark.read.csv(str(output), expected.schema, sep="\t", mode="FAILFAST")
    return difference(found, expected)


def _snapshots(notes: Path) -> Iterator[Snapshot]:
    for file in notes.iterdir():
        # The last line may not be whole yet.
        for line in file.read_text("utf-8").rpartition("\n")[0].splitlines():
            checkpoint, *ends = map(int, line.split())
            yield Snapshot(checkpoint, file.name, [*zip(ends[::2], ends[1::2], strict=True)])
