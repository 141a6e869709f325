"""Tests of the waiting times of starts and rescales, on a real driver: nothing happens before they end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen
from pyspark.sql.streaming.query import StreamingQuery

from integration.spark_minor import MOVES_STATE
from integration.streaming.driver import Driver
from integration.streaming.files import Inbox
from integration.streaming.held import Held
from integration.streaming.http import Client
from integration.streaming.launch import AT_ONCE, WITH_PLUGIN
from integration.streaming.waiting import eventually
from integration.streaming.world import Totals, state_partitions, totals

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not MOVES_STATE, reason="the count of its stateful query cannot be changed"),
]

_SCHEDULER = "spark.elastic.adaptiveScheduler"
_SUBMISSION_MS, _EXECUTING_MS, _DELAY_MS = 3_000, 4_000, 3_000
# More than the slots of local[2], which never has more.
_MANY = 8


@frozen
class Bounded:
    """A query that keeps totals, and the decisions about it."""

    query: StreamingQuery
    inbox: Inbox
    api: Client

    def said(self, reason: str, since: int = 0) -> list[Any]:
        """Return the decisions with a reason from a moment on (epoch ms), newest last."""
        found = self.api.get(f"/decisions?query={self.query.id}").json["decisions"]
        return [one for one in reversed(found) if one["reason"] == reason and one["at"] >= since]

    def allow(self, upper: int) -> int:
        """Set its upper bound; return when that took effect (epoch ms)."""
        bounds = {"shuffle": {"parallelism": {"lowerBound": 1, "upperBound": upper}}}
        before = len(self.said("bounds_requested"))
        assert self.api.put(f"/queries/{self.query.id}/resource-requirements", bounds).status == 200
        eventually(lambda: len(self.said("bounds_requested")) > before, "the bounds are in force")
        return int(self.said("bounds_requested")[-1]["at"])

    def commit_until(self, reason: str, since: int) -> tuple[Any, int]:
        """Commit micro-batches until a decision is made; return it, and their number before it."""
        committed = 0
        while not (found := self.said(reason, since)):
            self.inbox.put()
            self.query.processAllAvailable()
            committed += not self.said(reason, since)
        return found[0], committed


@contextmanager
def bounded(
    jvm: Driver, inbox: Inbox, folder: Path, conf: Mapping[str, str], sink: Totals | Held, upper: int
) -> Iterator[Bounded]:
    """Run a query with an upper bound and the tested settings."""
    settings = {
        **WITH_PLUGIN,
        **AT_ONCE,
        "spark.ui.enabled": "true",
        "spark.elastic.schedulerMode": "adaptive",
        "spark.elastic.query.bounded.upperBound": str(upper),
        f"{_SCHEDULER}.rescalePolicy": "always",
        # Only the cause under test leads to an evaluation.
        f"{_SCHEDULER}.rescaleTrigger.maxDelay": "1h",
        f"{_SCHEDULER}.rescaleTrigger.maxCheckpointFailures": "99",
        **conf,
    }
    with jvm.session(settings) as spark:
        api = Client(spark.sparkContext.uiWebUrl or "", "/elastic/api/v1")
        # A query submitted while the policy connects is in its first snapshot and reported again.
        eventually(lambda: api.get("/overview").status == 200, "the policy is there")
        writer = totals(spark, inbox).writeStream.queryName("bounded").outputMode("update").foreachBatch(sink)
        query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
        yield Bounded(query, inbox, api)
        query.stop()


@pytest.mark.parametrize("upper", [2, _MANY])
def test_a_start_waits_for_more_slots_only_where_it_could_use_more_and_as_long_as_is_set(
    jvm: Driver, inbox: Inbox, tmp_path: Path, upper: int
) -> None:
    conf = {f"{_SCHEDULER}.submission.resourceStabilizationTimeout": f"{_SUBMISSION_MS}ms"}
    inbox.put()
    with bounded(jvm, inbox, tmp_path, conf, Totals(), upper) as it:
        it.query.processAllAvailable()
        found = it.api.get(f"/decisions?query={it.query.id}").json["decisions"]
        (started,) = [one for one in found if one["kind"] == "start"]
        waited = it.said("waiting_for_more")
        assert len(waited) == (upper > 2)
        if waited:
            assert waited[0]["numbers"]["stabilization_ms"] == _SUBMISSION_MS
            assert started["at"] - waited[0]["at"] >= _SUBMISSION_MS
        assert state_partitions(it.query) == 2


def test_a_move_waits_for_more_slots_as_long_as_is_set_whatever_is_committed(
    jvm: Driver, inbox: Inbox, tmp_path: Path
) -> None:
    conf = {f"{_SCHEDULER}.executing.resourceStabilizationTimeout": f"{_EXECUTING_MS}ms"}
    sink = Totals()
    with bounded(jvm, inbox, tmp_path, conf, sink, upper=1) as it:
        inbox.put()
        it.query.processAllAvailable()
        assert state_partitions(it.query) == 1
        changed = it.allow(_MANY)
        moved, committed = it.commit_until("rescale_always", changed)
        assert it.said("stabilizing", changed)
        assert moved["at"] - changed >= _EXECUTING_MS
        assert committed > 0
        assert (moved["before"], moved["after"]) == (1, 2)
        eventually(lambda: it.said("rescaled_prepared", changed), "its state is copied, and used")
        inbox.put()
        it.query.processAllAvailable()
        assert state_partitions(it.query) == 2
        assert sink.now == inbox.totals()


def test_a_move_to_as_many_slots_as_may_be_used_waits_for_no_more_of_them(
    jvm: Driver, inbox: Inbox, tmp_path: Path
) -> None:
    conf = {f"{_SCHEDULER}.executing.resourceStabilizationTimeout": "1h"}
    with bounded(jvm, inbox, tmp_path, conf, Totals(), upper=1) as it:
        inbox.put()
        it.query.processAllAvailable()
        changed = it.allow(2)
        moved, _ = it.commit_until("rescale_always", changed)
        assert (moved["before"], moved["after"]) == (1, 2)


def test_after_the_longest_delay_a_change_is_evaluated_without_a_micro_batch(
    jvm: Driver, inbox: Inbox, tmp_path: Path
) -> None:
    conf = {f"{_SCHEDULER}.rescaleTrigger.maxDelay": f"{_DELAY_MS}ms"}
    sink = Held()
    with bounded(jvm, inbox, tmp_path, conf, sink, upper=1) as it:
        inbox.put()
        sink.commit()
        it.query.processAllAvailable()
        inbox.put()
        eventually(lambda: sink.begun == 2, "its second micro-batch has begun")
        changed = it.allow(2)
        eventually(lambda: it.said("awaiting_batch", changed), "the change waits for a micro-batch")
        assert not it.said("rescale_always")
        eventually(lambda: it.said("rescale_always"), "it is evaluated")
        assert it.said("rescale_always")[0]["at"] - changed >= _DELAY_MS
        assert sink.begun == 2, "the micro-batch of then still runs"
        assert it.query.lastProgress is not None
        assert it.query.lastProgress["batchId"] == 0
        sink.commit()
        eventually(lambda: it.said("rescaled_prepared"), "its state is copied, and used")
        inbox.put()
        sink.commit()
        it.query.processAllAvailable()
        assert state_partitions(it.query) == 2
        assert sink.totals == inbox.totals()
