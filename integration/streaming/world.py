"""A driver with a stand-in for the policy that rescales queries at known moments: see scripted_policy.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)
from pyspark.sql.streaming.query import StreamingQuery

from integration.streaming.driver import PLUGIN, Driver
from integration.streaming.files import SCHEMA, Inbox
from integration.streaming.stand_ins import ScriptedPolicy
from integration.streaming.waiting import eventually


class Listener(StreamingQueryListener):
    """Records the events of an application's listener: (what, query, run, batch)."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str, str, int]] = []

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        self.heard.append(("started", str(event.id), str(event.runId), -1))

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        p = event.progress
        self.heard.append(("progress", str(p.id), str(p.runId), p.batchId))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        self.heard.append(("terminated", str(event.id), str(event.runId), -1))

    def of(self, query: StreamingQuery, what: str) -> list[tuple[str, int]]:
        """Return run and batch of each event of a kind about a query."""
        return [(run, batch) for kind, q, run, batch in self.heard if kind == what and q == query.id]


class World:
    """One driver with its stand-in policy, and a listener added before any query."""

    def __init__(self, jvm: Driver, spark: SparkSession, policy: ScriptedPolicy) -> None:
        self.driver = jvm
        self.spark = spark
        self.policy = policy
        self.listener = Listener()
        spark.streams.addListener(self.listener)

    def temporary_checkpoints(self) -> set[Path]:
        return set(self.driver.temporary.glob("temporary-*"))


class Totals:
    """A sink that keeps the newest totals of each key, and the micro-batches that brought them."""

    def __init__(self) -> None:
        self.now: dict[int, tuple[int, int]] = {}
        self.batches: list[int] = []

    def __call__(self, batch: DataFrame, number: int) -> None:
        self.now.update({row.key: (row.n, row.total) for row in batch.collect()})
        self.batches.append(number)


@contextmanager
def own_world(jvm: Driver, folder: Path, **conf: str) -> Iterator[World]:
    """Start a context of its own, with the policy that rescales queries on request."""
    policy = ScriptedPolicy(folder / "policy")
    settings = {**PLUGIN, "spark.elastic.python": policy.python, "spark.sql.shuffle.partitions": "2", **conf}
    with jvm.session(settings) as spark:
        yield World(jvm, spark, policy)


def stream(spark: SparkSession, inbox: Inbox) -> DataFrame:
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(inbox.folder))


def totals(spark: SparkSession, inbox: Inbox) -> DataFrame:
    return stream(spark, inbox).groupBy("key").agg(F.count("*").alias("n"), F.sum("value").alias("total"))


def state_partitions(query: StreamingQuery) -> int:
    """Return the partitions of the state in the last micro-batch."""
    assert query.lastProgress is not None
    return int(query.lastProgress["stateOperators"][0]["numShufflePartitions"])


def partitions_after_batch(query: StreamingQuery, inbox: Inbox) -> int:
    """Return the partitions of the state after one more micro-batch."""
    inbox.put()
    query.processAllAvailable()
    return state_partitions(query)


def feed_until_rescaled(world: World, inbox: Inbox, query: StreamingQuery, times: int) -> None:
    """Put in files and wait until they are processed, until the query has been rescaled this often."""

    def look() -> bool:
        if world.policy.rescales(query.id) < times:
            inbox.put()
            query.processAllAvailable()
        return world.policy.rescales(query.id) >= times

    eventually(look, f"{times} rescales")


def is_active(query: StreamingQuery) -> bool:
    """Call the query's property through a function, as mypy assumes that an attribute keeps its value."""
    return query.isActive


def failure(call: Callable[[], Any]) -> str:
    """Return the text of the exception that a call raises."""
    with pytest.raises(Exception) as raised:  # noqa: PT011  # Spark's own, whatever class PySpark gives it
        call()
    return str(raised.value)
