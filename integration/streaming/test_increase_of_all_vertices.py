"""Tests on a real driver that `minParallelismIncrease` counts all vertices of a query, sources included."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.spark_minor import MOVES_STATE
from integration.streaming.driver import Driver
from integration.streaming.files import Inbox
from integration.streaming.launch import AT_ONCE, WITH_PLUGIN
from integration.streaming.test_sources import Shown
from integration.streaming.waiting import eventually
from integration.streaming.world import Totals, partitions_after_batch, totals

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(240)]

_SCHEDULER = "spark.elastic.adaptiveScheduler"


@pytest.mark.skipif(not MOVES_STATE, reason="the count of its stateful query cannot be changed")
def test_a_source_that_may_not_grow_does_not_count(jvm: Driver, inbox: Inbox, tmp_path: Path) -> None:
    conf = {
        **WITH_PLUGIN,
        **AT_ONCE,
        "spark.ui.enabled": "true",
        "spark.elastic.schedulerMode": "adaptive",
        "spark.elastic.query.counted.upperBound": "1",
        f"{_SCHEDULER}.rescalePolicy": "always",
        f"{_SCHEDULER}.minParallelismIncrease": "2",
    }
    sink = Totals()
    with jvm.session(conf) as spark:
        writer = totals(spark, inbox).writeStream.queryName("counted").outputMode("update").foreachBatch(sink)
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        shown = Shown(spark, query)

        def partitions() -> int:
            return partitions_after_batch(query, inbox)

        assert partitions() == 1
        shown.bound(source_0=(1, 1), shuffle=(1, 2))
        eventually(lambda: partitions() == 1 and shown.said("increase_too_small"), "it is held back")
        (why,) = {*shown.said("increase_too_small")}
        assert "would add 1 in total, less than 2" in why
        shown.bound(source_0=(1, 2), shuffle=(1, 2))
        eventually(lambda: partitions() == 2, "it has grown, with its source")
        assert sink.now == inbox.totals()
        query.stop()
