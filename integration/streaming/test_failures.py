"""Tests of failing runs under the real policy: restarted, or ended with the exception of plain Spark."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from integration.streaming.driver import PLUGIN, Driver, policies_of
from integration.streaming.files import SCHEMA, Inbox
from integration.streaming.http import Client
from integration.streaming.waiting import eventually
from spark_elastic.core.failures.poison import MOST_TRIES

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

PREFIX = "spark.elastic.restartStrategy"
QUICK = {
    "fixed-delay": {f"{PREFIX}.fixedDelay.attempts": "3", f"{PREFIX}.fixedDelay.delay": "100ms"},
    "failure-rate": {
        f"{PREFIX}.failureRate.maxFailuresPerInterval": "3",
        f"{PREFIX}.failureRate.failureRateInterval": "5min",
        f"{PREFIX}.failureRate.delay": "100ms",
    },
    "exponential-delay": {
        f"{PREFIX}.exponentialDelay.initialBackoff": "100ms",
        f"{PREFIX}.exponentialDelay.attemptsBeforeResetBackoff": "3",
    },
}


@contextmanager
def session(jvm: Driver, strategy: str, **more: str) -> Iterator[SparkSession]:
    conf: Mapping[str, str] = {
        **PLUGIN,
        "spark.sql.shuffle.partitions": "2",
        "spark.elastic.schedulerMode": "adaptive",
        "spark.elastic.adaptiveScheduler.submission.resourceStabilizationTimeout": "0",
        f"{PREFIX}.type": strategy,
        **QUICK.get(strategy, {}),
        **more,
    }
    with jvm.session(conf) as spark:
        yield spark


class Flaky:
    """A sink that fails as often as requested, with a different error each time unless `same`."""

    def __init__(self, failures: int, *, same: bool = False) -> None:
        self.left = failures
        self.failed = 0
        self.batches: dict[int, dict[int, tuple[int, int]]] = {}
        self._same = same

    def __call__(self, batch: DataFrame, number: int) -> None:
        if self.left > 0:
            self.left -= 1
            self.failed += 1
            # Words, not numbers: two messages that differ only in a number count as the same.
            raise ValueError("the sink is " + ("ill" if self._same else "very " * self.failed + "ill"))
        self.batches[number] = {row.key: (row.n, row.total) for row in batch.collect()}

    def result(self) -> dict[int, tuple[int, int]]:
        """Return the newest totals of each key."""
        merged: dict[int, tuple[int, int]] = {}
        for _, batch in sorted(self.batches.items()):
            merged.update(batch)
        return merged


def start(
    spark: SparkSession, inbox: Inbox, sink: Callable[[DataFrame, int], None], **to: Any
) -> StreamingQuery:
    rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(inbox.folder))
    totals = rows.groupBy("key").agg(F.count("*").alias("n"), F.sum("value").alias("total"))
    writer = totals.writeStream.outputMode("update").foreachBatch(sink)
    for option, value in to.items():
        writer = writer.option(option, value)
    return writer.start()


@pytest.mark.parametrize("strategy", QUICK)
def test_a_sink_that_recovers_is_met_again_and_nothing_is_lost(
    jvm: Driver, inbox: Inbox, tmp_path: Path, strategy: str
) -> None:
    sink = Flaky(failures=2)
    since = len(jvm.said())
    with session(jvm, strategy) as spark:
        inbox.put(3)
        query = start(spark, inbox, sink, checkpointLocation=str(tmp_path / "checkpoint"))
        run = query.runId
        eventually(lambda: sink.failed == 2, "two failures")
        query.processAllAvailable()
        assert sink.result() == inbox.totals()
        assert query.isActive
        assert query.exception() is None
        assert query.runId == run
        inbox.put(1)
        query.processAllAvailable()
        assert sink.result() == inbox.totals()
        query.stop()
    # Commits of a failed attempt do not count for the next one.
    assert not [line for line in jvm.said()[since:] if "commit tracker already exists" in line]


def test_a_failure_waits_for_the_policy_process_that_takes_the_place_of_one_that_hangs(
    jvm: Driver, inbox: Inbox
) -> None:
    """A start does not have to wait for that, but after a failure the query would end."""
    sink, since = Flaky(failures=0), len(jvm.said())
    # Less than the 10 s after which a process counts as hanging.
    with session(jvm, "fixed-delay", **{"spark.elastic.startTimeout": "8s"}) as spark:
        inbox.put(1)
        query = start(spark, inbox, sink)
        query.processAllAvailable()
        (policy,) = policies_of(jvm.pid)
        policy.suspend()
        sink.left = 1
        inbox.put(1)
        query.processAllAvailable()
        assert sink.failed == 1
        assert sink.result() == inbox.totals()
        assert query.exception() is None
        query.stop()
    assert any("did not answer for" in line for line in jvm.said()[since:])


def test_what_an_exception_has_of_credentials_is_kept_and_shown_nowhere(
    jvm: Driver, inbox: Inbox, tmp_path: Path
) -> None:
    secret = "pl4nted"
    texts = {
        "a login": f"no route to s3a://AKIA:{secret}@bucket/x",
        "a name": f"rejected: password={secret}",
        "a secret of the application's own": f"rejected: CARD-{secret}",
        "half a login": "x " * 490 + f"s3a://AKIA:{secret}{'x' * 100}@bucket/x" + " x" * 1000,
        "another half": "x " * 1000 + f"s3a://AKIA:{secret}{'x' * 100}@bucket/x" + " x" * 430,
        "a long text": "x " * 1500 + "is what it was",
    }
    left = list(texts.values())

    def sink(batch: DataFrame, number: int) -> None:
        if left:
            raise ValueError(left.pop())
        batch.collect()

    conf = {
        "spark.ui.enabled": "true",
        "spark.elastic.journal.dir": str(tmp_path / "journal"),
        "spark.elastic.restartStrategy.fixedDelay.attempts": str(len(texts)),
        "spark.redaction.string.regex": r"CARD-\w+",
    }
    since = len(jvm.said())
    with session(jvm, "fixed-delay", **conf) as spark:
        inbox.put(1)
        query = start(spark, inbox, sink)
        query.processAllAvailable()
        client = Client(spark.sparkContext.uiWebUrl or "", "/elastic/api/v1")
        shown = [
            client.get(path).text for path in (f"/queries/{query.id}/exceptions", "/decisions", "/queries")
        ]
        query.stop()
    (journal,) = (tmp_path / "journal").iterdir()
    ours = [line for line in jvm.said()[since:] if "spark-elastic" in line]
    assert "no route to s3a://***@bucket/x" in shown[0]
    errors = [failed["error"] for failed in json.loads(shown[0])["exceptions"]]
    assert [error for error in errors if "x …\n x" in error and error.endswith("x is what it was\n")]
    for text in (journal.read_text(), *shown, *ours):
        assert secret not in text


def test_without_a_strategy_it_fails_as_in_plain_spark(jvm: Driver, inbox: Inbox) -> None:
    with session(jvm, "none") as spark:
        inbox.put(1)
        query = start(spark, inbox, Flaky(failures=1))
        with pytest.raises(StreamingQueryException, match="the sink is very ill"):
            query.awaitTermination()
        assert not query.isActive
        assert "the sink is very ill" in str(query.exception())


@pytest.mark.parametrize("strategy", QUICK)
def test_when_the_attempts_are_used_up_it_fails_with_its_own_exception(
    jvm: Driver, inbox: Inbox, strategy: str
) -> None:
    sink = Flaky(failures=100)
    with session(jvm, strategy) as spark:
        inbox.put(1)
        query = start(spark, inbox, sink)
        with pytest.raises(StreamingQueryException, match="the sink is very very very very ill"):
            query.awaitTermination()
        assert sink.failed == 4
        assert spark.streams.active == []


def test_a_poison_batch_ends_the_query_and_no_other_one(jvm: Driver, inbox: Inbox, tmp_path: Path) -> None:
    poison, healthy = Flaky(failures=100, same=True), Flaky(failures=0)
    other = Inbox(tmp_path / "other")
    with session(
        jvm, "exponential-delay", **{f"{PREFIX}.exponentialDelay.attemptsBeforeResetBackoff": "50"}
    ) as spark:
        well = start(spark, other, healthy)
        inbox.put(1)
        ill = start(spark, inbox, poison)
        with pytest.raises(StreamingQueryException, match="the sink is ill"):
            ill.awaitTermination()
        assert poison.failed == 3
        why = "Failed 3 times in the same way at the same offsets"
        eventually(lambda: [line for line in jvm.said() if why in line], "the log says why")
        other.put(2)
        well.processAllAvailable()
        assert healthy.result() == other.totals()
        assert well.isActive
        well.stop()


def into_a_sink(rows: DataFrame, port: int) -> DataStreamWriter:
    """Write from the driver to a server at this port."""

    def write(batch: DataFrame, number: int) -> None:
        socket.create_connection(("127.0.0.1", port)).close()

    return rows.writeStream.foreachBatch(write)


def by_a_function(rows: DataFrame, port: int) -> DataStreamWriter:
    """Ask a server at this port from an executor."""

    @F.udf("long", useArrow=False)
    def ask(value: int) -> int:
        socket.create_connection(("127.0.0.1", port)).close()
        return value

    return rows.select(ask("value")).writeStream.format("noop")


@pytest.mark.parametrize("asked", [into_a_sink, by_a_function])
def test_an_outage_is_no_poison(
    jvm: Driver, inbox: Inbox, asked: Callable[[DataFrame, int], DataStreamWriter]
) -> None:
    conf = {"spark.ui.enabled": "true", f"{PREFIX}.fixedDelay.attempts": "100"}
    with socket.socket() as server, session(jvm, "fixed-delay", **conf) as spark:
        server.bind(("127.0.0.1", 0))  # not listening: connections are refused
        inbox.put(1)
        rows = spark.readStream.schema(SCHEMA).json(str(inbox.folder))
        query = asked(rows, server.getsockname()[1]).start()
        client = Client(spark.sparkContext.uiWebUrl or "", "/elastic/api/v1")

        def failures() -> list[Any]:
            answer = client.get(f"/queries/{query.id}/exceptions")
            return list(answer.json["exceptions"]) if answer.status == 200 else []

        found = eventually(lambda: failures()[MOST_TRIES:], "it has failed more often than poison may")
        assert all("ConnectionRefusedError: [Errno 111]" in failed["error"] for failed in found)
        server.listen()
        query.processAllAvailable()
        assert query.exception() is None
        query.stop()


def test_what_a_start_cannot_repair_is_not_tried(jvm: Driver, inbox: Inbox) -> None:
    tries: list[int] = []

    def wrong(batch: DataFrame, number: int) -> None:
        tries.append(number)
        batch.select("no_such_column").collect()

    with session(jvm, "exponential-delay") as spark:
        inbox.put(1)
        query = start(spark, inbox, wrong)
        with pytest.raises(StreamingQueryException, match="no_such_column"):
            query.awaitTermination()
        assert tries == [0]


def test_the_application_can_stop_a_query_that_waits_for_its_next_start(jvm: Driver, inbox: Inbox) -> None:
    with session(jvm, "fixed-delay", **{f"{PREFIX}.fixedDelay.delay": "1h"}) as spark:
        inbox.put(1)
        sink = Flaky(failures=1)
        query = start(spark, inbox, sink)
        eventually(lambda: "restarting from the checkpoint in" in query.status["message"], "the backoff")
        waiter = threading.Thread(target=query.awaitTermination, daemon=True)
        waiter.start()
        query.stop()
        waiter.join(60)
        assert not waiter.is_alive()
        assert not query.isActive
        assert query.exception() is None


def test_a_policy_process_that_dies_during_the_backoff_takes_no_query_with_it(
    jvm: Driver, inbox: Inbox
) -> None:
    with session(jvm, "fixed-delay", **{f"{PREFIX}.fixedDelay.delay": "10s"}) as spark:
        inbox.put(1)
        sink = Flaky(failures=1)
        query = start(spark, inbox, sink)
        eventually(lambda: "restarting" in query.status["message"], "the backoff")
        (policy,) = policies_of(jvm.pid)
        os.kill(policy.pid, signal.SIGKILL)
        query.processAllAvailable()
        assert sink.result() == inbox.totals()
        query.stop()


def test_below_its_lower_bound_it_waits_and_then_fails_with_the_reason(jvm: Driver, inbox: Inbox) -> None:
    wait = {"spark.elastic.adaptiveScheduler.submission.resourceWaitTimeout": "10s"}
    with session(jvm, "none", **wait, **{"spark.elastic.query.hungry.lowerBound": "64"}) as spark:
        inbox.put(1)
        query = start(spark, inbox, Flaky(failures=0), queryName="hungry")
        waits = "Waiting for resources (at most 10 s): 2 of 64 slots"
        eventually(lambda: waits in query.status["message"], "its status says what it waits for")
        with pytest.raises(StreamingQueryException, match=r"needs 64 slots, has 2 after \d\d+(\.\d)? s"):
            query.awaitTermination()
