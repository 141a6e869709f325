"""Tests the target of a query on a real driver: it is met before another query gets more than it needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from integration.spark_minor import MOVES_STATE
from integration.streaming.driver import Driver
from integration.streaming.files import Inbox
from integration.streaming.http import Client
from integration.streaming.launch import AT_ONCE, WITH_PLUGIN
from integration.streaming.waiting import eventually
from integration.streaming.world import Totals, state_partitions, totals

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(240),
    pytest.mark.skipif(not MOVES_STATE, reason="the count of its stateful query cannot be changed"),
]


def test_a_query_has_its_target_before_another_has_more_until_it_is_taken_away(
    jvm: Driver, tmp_path: Path
) -> None:
    conf = {
        **WITH_PLUGIN,
        **AT_ONCE,
        "spark.master": "local[5]",
        "spark.ui.enabled": "true",
        "spark.elastic.schedulerMode": "adaptive",
        "spark.elastic.adaptiveScheduler.rescalePolicy": "always",
        "spark.elastic.query.*.upperBound": "8",
        "spark.elastic.query.first.target": "4",
        "spark.elastic.query.first.upperBound": "8",
    }
    inboxes = {name: Inbox(tmp_path / name) for name in ("first", "second")}
    sinks = {name: Totals() for name in inboxes}
    with jvm.session(conf) as spark:
        queries = {}
        for name, inbox in inboxes.items():
            rows = totals(spark, inbox).writeStream.queryName(name).outputMode("update")
            checkpoint = str(tmp_path / "checkpoints" / name)
            queries[name] = rows.foreachBatch(sinks[name]).option("checkpointLocation", checkpoint).start()

        def partitions() -> list[int]:
            for inbox in inboxes.values():
                inbox.put()
            for query in queries.values():
                query.processAllAvailable()
            return [state_partitions(query) for query in queries.values()]

        eventually(lambda: partitions() == [4, 1], "the first one has its target, and the other the rest")
        api = Client(spark.sparkContext.uiWebUrl or "", "/elastic/api/v1")
        path = f"/queries/{queries['first'].id}/resource-requirements"
        bounds = {"lowerBound": 1, "upperBound": 8}
        assert api.get(path).json["shuffle"]["parallelism"] == {**bounds, "target": 4}
        wanted = {"shuffle": {"parallelism": {**bounds, "target": -1}}}
        assert api.put(path, wanted).status == 200
        eventually(lambda: sorted(partitions()) == [2, 3], "what there is is divided evenly")
        for query in queries.values():
            query.stop()
    assert {name: sink.now for name, sink in sinks.items()} == {
        name: inbox.totals() for name, inbox in inboxes.items()
    }
