"""Tests of new queries that keep Spark's own state store, since the plugin's choice would break them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame
from pyspark.sql.streaming.state import GroupState

from integration.streaming.driver import Driver
from integration.streaming.files import SCHEMA, Inbox
from integration.streaming.launch import WITH_PLUGIN

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

# Spark's own store does not check this format's timeout before a restart, RocksDB does at each write.
OLD_FORMAT = {"spark.sql.streaming.flatMapGroupsWithState.stateFormatVersion": "1"}
UNCHECKED = {"spark.sql.streaming.stateStore.commitValidation.enabled": "false"}


def test_a_batch_function_may_read_some_of_its_rows(jvm: Driver, tmp_path: Path) -> None:
    inbox = Inbox(tmp_path / "in")
    sizes: list[int] = []

    def look(batch: DataFrame, _: int) -> None:
        sizes.append(len(batch.limit(1).collect()))

    with jvm.session({**WITH_PLUGIN, **UNCHECKED}) as spark:
        counts = spark.readStream.schema(SCHEMA).json(str(inbox.folder)).groupBy("key").count()
        writer = counts.writeStream.outputMode("update").foreachBatch(look)
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        for _ in range(3):
            inbox.put()
            query.processAllAvailable()
        assert query.exception() is None
        query.stop()
    assert sizes == [1, 1, 1]
    assert "RocksDB" not in (tmp_path / "checkpoint" / "offsets" / "0").read_text()


def test_format_1_of_state_with_timeouts_works(
    jvm: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    inbox = Inbox(tmp_path / "in")

    def add(key: tuple[Any, ...], parts: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        (before,) = state.get if state.exists else (0,)
        state.update((before + sum(map(len, parts)),))
        state.setTimeoutDuration(3_600_000)
        yield pd.DataFrame({"key": [key[0]], "n": [state.get[0]]})

    with jvm.session({**WITH_PLUGIN, **OLD_FORMAT}) as spark:
        rows = spark.readStream.schema(SCHEMA).json(str(inbox.folder)).groupBy("key")
        counts = rows.applyInPandasWithState(
            add, "key int, n long", "n long", "update", "ProcessingTimeTimeout"
        )
        writer = counts.writeStream.outputMode("update").format("noop")
        inbox.put()
        # One batch: with this timeout Spark runs batches without data forever.
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(once=True).start()
        query.awaitTermination()
        assert query.exception() is None
    assert "RocksDB" not in (tmp_path / "checkpoint" / "offsets" / "0").read_text()
