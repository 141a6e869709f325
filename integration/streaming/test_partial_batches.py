"""Tests of a `foreachBatch` that reads only some of its rows, with Spark's check for that switched off."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame

from integration.streaming.driver import Driver
from integration.streaming.files import SCHEMA, Inbox
from integration.streaming.launch import WITH_PLUGIN

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120)]

UNCHECKED = {"spark.sql.streaming.stateStore.commitValidation.enabled": "false"}


def test_it_goes_on_as_in_plain_spark(jvm: Driver, tmp_path: Path) -> None:
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
