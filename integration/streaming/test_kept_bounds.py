"""Tests that bounds set over REST outlive the policy process and the driver, and end with a DELETE."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from integration.streaming.driver import Driver, policies_of
from integration.streaming.files import Inbox
from integration.streaming.http import Client, Reply
from integration.streaming.launch import AT_ONCE, WITH_PLUGIN
from integration.streaming.test_storage_away import STORAGE, Storage
from integration.streaming.test_storage_away import jvm as jvm
from integration.streaming.test_storage_away import storage as storage
from integration.streaming.waiting import eventually
from integration.streaming.world import stream

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

CONF = {
    **WITH_PLUGIN,
    **STORAGE,
    "spark.ui.enabled": "true",
    "spark.elastic.schedulerMode": "adaptive",
    # Only what is stored with the checkpoint is known.
    "spark.elastic.journal.dir": "none",
    **AT_ONCE,
}


class Counts:
    """A query that resumes its checkpoint, and the API of its driver."""

    def __init__(self, rows: DataFrame, checkpoint: str, trigger: str = "0 seconds") -> None:
        counts = rows.groupBy((F.col("value") % 7).alias("key")).count()
        writer = counts.writeStream.format("noop").queryName("counts").outputMode("update")
        writer = writer.trigger(processingTime=trigger).option("checkpointLocation", checkpoint)
        self.query: StreamingQuery = writer.start()
        url = rows.sparkSession.sparkContext.uiWebUrl
        assert url is not None
        self.api = Client(url, "/elastic/api/v1")
        self.path = f"/queries/{self.query.id}/resource-requirements"

    def ask(self, lower: int, upper: int) -> Reply:
        bounds = {"lowerBound": lower, "upperBound": upper}
        return self.api.put(self.path, {"shuffle": {"parallelism": bounds}})

    def said(self, reason: str) -> list[Any]:
        """Return the messages of the decisions with this reason."""
        decisions = self.api.get("/decisions").json["decisions"]
        return [decision["message"] for decision in decisions if decision["reason"] == reason]

    def bounds(self) -> tuple[int, int] | None:
        """Return the bounds, None as long as the policy does not know the query."""
        reply = self.api.get(self.path)
        if reply.status != 200:
            return None
        shown = reply.json["shuffle"]["parallelism"]
        return shown["lowerBound"], shown["upperBound"]

    def partitions(self) -> int:
        """Return the number of partitions of the last micro-batch's state, 0 before the first one."""
        progress = self.query.lastProgress
        # A progress report about missing input has no state.
        state = [] if progress is None else progress["stateOperators"]
        return int(state[0]["numShufflePartitions"]) if state else 0

    def runs_in(self, partitions: int) -> None:
        eventually(lambda: self.partitions() == partitions, f"it runs in {partitions} partitions")


def rates(spark: SparkSession) -> DataFrame:
    return spark.readStream.format("rate").option("rowsPerSecond", 20).load()


def place(kind: str, folder: Path, storage: Storage) -> tuple[str, Path]:
    """Return a checkpoint on the disk or on a Hadoop file system, and the place of its stored bounds."""
    checkpoint = str(folder / "checkpoint") if kind == "disk" else storage.place("checkpoint")
    return checkpoint, Path(urlsplit(checkpoint).path) / "_elastic" / "bounds"


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["disk", "hadoop"])
def test_bounds_outlive_policy_and_driver_until_they_are_taken_back(
    jvm: Driver, storage: Storage, tmp_path: Path, kind: str
) -> None:
    checkpoint, kept = place(kind, tmp_path, storage)
    with jvm.session(CONF) as spark:
        counts = Counts(rates(spark), checkpoint)
        counts.runs_in(2)
        assert counts.ask(1, 1).status == 200
        eventually(kept.exists, "the bounds are kept")
        counts.runs_in(1)
        (policy,) = policies_of(jvm.pid)
        policy.kill()
        psutil.wait_procs([policy])
        eventually(lambda: policies_of(jvm.pid), "another policy process is there")
        eventually(lambda: counts.bounds() == (1, 1), "it knows the bounds")

    with jvm.session(CONF) as spark:
        counts = Counts(rates(spark), checkpoint)
        counts.runs_in(1)
        assert counts.bounds() == (1, 1)
        eventually(lambda: counts.said("bounds_recalled"), "it is said")
        assert counts.api.request("DELETE", counts.path).status == 200
        eventually(lambda: not kept.exists(), "nothing is kept")
        counts.runs_in(2)

    with jvm.session(CONF) as spark:
        counts = Counts(rates(spark), checkpoint)
        counts.runs_in(2)
        assert counts.bounds() == (1, 32_768)


def test_what_cannot_be_read_is_said_and_keeps_nothing_from_starting(jvm: Driver, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    kept = folder / "_elastic" / "bounds"
    kept.parent.mkdir(parents=True)
    kept.write_text("not for us")
    with jvm.session(CONF) as spark:
        counts = Counts(rates(spark), str(folder))
        counts.runs_in(2)
        eventually(lambda: counts.said("kept_bounds_unusable"), "it is said")
    assert kept.read_text() == "not for us"


def test_what_cannot_be_kept_is_in_force_and_another_driver_begins_without_it(
    jvm: Driver, storage: Storage, inbox: Inbox, tmp_path: Path
) -> None:
    checkpoint, kept = place("hadoop", tmp_path, storage)
    with jvm.session(CONF) as spark:
        inbox.put()
        # Until its next trigger, at midnight, the query itself does not look at its checkpoint.
        counts = Counts(stream(spark, inbox), checkpoint, trigger="24 hours")
        counts.runs_in(2)
        with storage.away("the bounds have met the storage"):
            assert counts.ask(1, 2).status == 200, "the answer does not wait for the storage"
            (said,) = eventually(lambda: counts.said("bounds_not_kept"), "it is said")
        assert said.endswith("a new driver starts without them: the storage is away")
        assert counts.bounds() == (1, 2)
        assert counts.query.exception() is None
        assert not kept.exists()

    with jvm.session(CONF) as spark:
        inbox.put()
        counts = Counts(stream(spark, inbox), checkpoint, trigger="24 hours")
        counts.runs_in(2)
        assert counts.bounds() == (1, 32_768)
        assert counts.ask(1, 2).status == 200
        eventually(kept.exists, "they are kept now that the storage is there")
        assert not counts.said("bounds_not_kept")
