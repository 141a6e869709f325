"""Tests that with `adviseOnly` a streaming query runs as in plain Spark, and decisions are only reported."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException

from integration.spark_minor import MOVES_STATE
from integration.streaming.driver import Driver
from integration.streaming.files import Inbox
from integration.streaming.http import Client
from integration.streaming.launch import AT_ONCE, WITH_PLUGIN
from integration.streaming.test_failures import Flaky
from integration.streaming.waiting import eventually
from integration.streaming.world import state_partitions, totals
from spark_elastic.core.actions import RequestExecutors, Rescale, StartQuery
from spark_elastic.runtime.entries import ActionsEntry, read_journal

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

# A number of partitions that the slots of local[2] would never lead to.
OWN_PARTITIONS = 5
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


@pytest.mark.skipif(not MOVES_STATE, reason="nothing would be done to the state")
def test_what_would_be_done_to_a_query_is_said_and_nothing_is_done(
    jvm: Driver, inbox: Inbox, tmp_path: Path
) -> None:
    conf = {
        **WITH_PLUGIN,
        **AT_ONCE,
        "spark.ui.enabled": "true",
        "spark.sql.shuffle.partitions": str(OWN_PARTITIONS),
        # Set by the user, so that the state could be moved.
        "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
        "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
        "spark.elastic.adviseOnly": "true",
        "spark.elastic.schedulerMode": "adaptive",
        "spark.elastic.adaptiveScheduler.rescalePolicy": "always",
        # Without the dry run, a start would wait for three slots and finally fail.
        "spark.elastic.query.advised.lowerBound": "3",
        "spark.elastic.query.advised.upperBound": "3",
        "spark.elastic.restartStrategy.type": "fixed-delay",
        "spark.elastic.restartStrategy.fixedDelay.attempts": "9",
        "spark.elastic.restartStrategy.fixedDelay.delay": "100ms",
        "spark.elastic.journal.dir": str(tmp_path / "journal"),
    }
    sink = Flaky(failures=0)
    with jvm.session(conf) as spark:
        rows = totals(spark, inbox)
        writer = rows.writeStream.queryName("advised").outputMode("update").foreachBatch(sink)
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        inbox.put()
        query.processAllAvailable()
        api = Client(spark.sparkContext.uiWebUrl or "", "/elastic/api/v1")
        path = f"/queries/{query.id}"
        bounds = {"shuffle": {"parallelism": {"lowerBound": 1, "upperBound": 1}}}
        assert api.put(f"{path}/resource-requirements", bounds).status == 200

        def said(kind: str) -> list[str]:
            inbox.put()
            query.processAllAvailable()
            found = api.get(f"/decisions?query={query.id}").json["decisions"]
            return [one["message"] for one in found if one["kind"] == kind]

        advice = "Advice only (spark.elastic.adviseOnly), nothing is changed."
        moves = eventually(lambda: said("rescale_state"), "a move is advised")
        assert moves[0].startswith(f"Scale {OWN_PARTITIONS} → 1 partition")
        assert all(message.endswith(advice) for message in [*moves, *said("start")])
        assert state_partitions(query) == OWN_PARTITIONS
        assert sink.result() == inbox.totals()

        sink.left = 1
        inbox.put()
        with pytest.raises(StreamingQueryException, match="the sink is"):
            query.processAllAvailable()
        assert sink.failed == 1
        eventually(lambda: not query.isActive, "it has ended as in plain Spark")
    (journal,) = (tmp_path / "journal").glob("*.jsonl*")
    entries = [entry for _, entry in read_journal(journal)]
    orders = [action for entry in entries if isinstance(entry, ActionsEntry) for action in entry.actions]
    assert not [order for order in orders if isinstance(order, Rescale | RequestExecutors)]
    assert [order.partitions for order in orders if isinstance(order, StartQuery)] == [None]
