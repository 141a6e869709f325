"""Tests that a context that ends before its queries does not keep their threads waiting."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from integration.streaming.driver import driver
from integration.streaming.files import SCHEMA, Inbox
from integration.streaming.launch import WITH_PLUGIN
from integration.streaming.waiting import PATIENCE_S

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def test_who_waits_for_a_query_hears_of_its_end(tmp_path: Path, inbox: Inbox) -> None:
    with driver(tmp_path / "driver") as jvm, jvm.session(WITH_PLUGIN) as spark:
        rows = spark.readStream.schema(SCHEMA).json(str(inbox.folder))
        query = rows.groupBy("key").count().writeStream.format("noop").outputMode("update").start()
        inbox.put()
        query.processAllAvailable()
        waits = threading.Thread(target=query.awaitTermination, daemon=True)
        waits.start()
        # This part of a context ends early: from here on Spark itself fails to remove the query.
        jvm.jvm.org.apache.spark.SparkEnv.get().rpcEnv().shutdown()
        stops = threading.Thread(target=query.stop, daemon=True)
        stops.start()
        for thread in (stops, waits):
            thread.join(PATIENCE_S)
            assert not thread.is_alive()
        assert not query.isActive
        assert spark.streams.active == []
