"""Tests on a real driver of the options that Flink has as well: each has its documented effect."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from integration.batch.plans import advised, decisions, final_plan, written
from integration.kafka.token_provider import kafka_jars
from integration.spark_minor import MOVES_STATE
from integration.streaming.driver import Driver, driver
from integration.streaming.files import Inbox
from integration.streaming.held import Held
from integration.streaming.http import Client
from integration.streaming.launch import AT_ONCE, WITH_PLUGIN
from integration.streaming.waiting import eventually
from integration.streaming.world import state_partitions, totals
from spark_elastic.core.batch.questions import SplitOffsets
from spark_elastic_lab.demo.broker import Broker

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

_SCHEDULER = "spark.elastic.adaptiveScheduler"


@pytest.mark.skipif(not MOVES_STATE, reason="the count of its stateful query cannot be changed")
def test_as_many_micro_batches_that_fail_as_it_says_are_as_good_as_one_that_is_committed(
    jvm: Driver, inbox: Inbox, tmp_path: Path
) -> None:
    conf = {
        **WITH_PLUGIN,
        **AT_ONCE,
        "spark.ui.enabled": "true",
        "spark.elastic.schedulerMode": "adaptive",
        "spark.elastic.query.held.upperBound": "1",
        "spark.elastic.restartStrategy.type": "fixed-delay",
        "spark.elastic.restartStrategy.fixedDelay.attempts": "9",
        "spark.elastic.restartStrategy.fixedDelay.delay": "100ms",
        f"{_SCHEDULER}.rescalePolicy": "always",
        # Only micro-batches lead to an evaluation. By default, two failed ones would be enough.
        f"{_SCHEDULER}.rescaleTrigger.maxDelay": "1h",
        f"{_SCHEDULER}.rescaleTrigger.maxCheckpointFailures": "3",
    }
    sink = Held()
    with jvm.session(conf) as spark:
        writer = totals(spark, inbox).writeStream.queryName("held").outputMode("update").foreachBatch(sink)
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        api = Client(spark.sparkContext.uiWebUrl or "", "/elastic/api/v1")
        path = f"/queries/{query.id}"

        def commit() -> int:
            """Commit a micro-batch with one more file; return the partitions of its state."""
            inbox.put()
            sink.commit()
            query.processAllAvailable()
            return state_partitions(query)

        def shown() -> tuple[str, int, int | None]:
            one = api.get(path).json
            return one["state"], one["restarts"], one["target"]

        def said(reason: str) -> list[Any]:
            found = api.get(f"/decisions?query={query.id}").json["decisions"]
            return [decision for decision in found if decision["reason"] == reason]

        def awaits(state: str, restarts: int, target: int | None) -> None:
            """Wait until the query is in this state, in a micro-batch that has begun."""
            expected = (state, restarts, target)
            eventually(lambda: shown() == expected and sink.begun == restarts + 2, f"it is {expected}")

        assert commit() == 1
        inbox.put()
        awaits("Executing", restarts=0, target=None)
        bounds = {"shuffle": {"parallelism": {"lowerBound": 1, "upperBound": 2}}}
        assert api.put(f"{path}/resource-requirements", bounds).status == 200
        eventually(lambda: said("awaiting_batch"), "the new bounds wait for a micro-batch")
        for failures in (1, 2):
            sink.fail()
            awaits("Executing", restarts=failures, target=None)
        assert not said("rescale_always")
        sink.fail()
        awaits("Restarting", restarts=3, target=2)
        assert len(said("rescale_always")) == 1
        # So the decision did not wait for a commit: this is the fourth attempt at the second micro-batch.
        assert query.lastProgress is not None
        assert query.lastProgress["batchId"] == 0
        sink.commit()
        eventually(lambda: shown() == ("Executing", 3, None), "its state is moved")
        assert commit() == 2
        assert sink.totals == inbox.totals()
        query.stop()


def test_in_the_preset_flink_the_parallelism_that_the_user_has_set_is_the_most(
    jvm: Driver, tmp_path: Path
) -> None:
    conf = {
        "spark.elastic.batch.preset": "flink",
        # This alone would lead to 128 partitions, and as many tasks.
        "spark.elastic.batch.autoParallelism.avgDataVolumePerTask": "1k",
        "spark.default.parallelism": "5",
    }
    with advised(jvm, tmp_path, conf) as spark:
        keys = spark.range(0, 40_000, 1, 2).select((F.xxhash64("id") % 20_000).alias("k"))
        result = keys.groupBy("k").count()
        assert sum(row["count"] for row in result.collect()) == 40_000
        assert written(final_plan(result)) == [5]
        assert result.rdd.getNumPartitions() == 5


@pytest.mark.slow
def test_a_source_of_which_nobody_knows_the_size_is_read_in_the_default_number_of_tasks(
    tmp_path: Path,
) -> None:
    conf = {
        "spark.elastic.source.divideOrdered": "true",
        # There are two slots, and one partition.
        "spark.elastic.batch.autoParallelism.defaultSourceParallelism": "5",
    }
    topic, records, journal = "numbers", 1_000, tmp_path / "journal"
    with (
        Broker(tmp_path / "broker") as broker,
        driver(tmp_path / "driver", kafka_jars()) as jvm,
        advised(jvm, journal, conf) as spark,
    ):
        broker.create_topic(topic, 1)
        servers = {"kafka.bootstrap.servers": broker.servers}
        numbers = spark.range(records).selectExpr("cast(id as string) value")
        numbers.write.format("kafka").options(**servers, topic=topic).save()
        offsets = {
            "startingOffsets": json.dumps({topic: {"0": 0}}),
            "endingOffsets": json.dumps({topic: {"0": records}}),
        }
        read = spark.read.format("kafka").options(**servers, subscribe=topic, **offsets).load()
        rows = read.selectExpr("cast(value as string) value", "spark_partition_id() task").collect()
        assert sorted(int(row["value"]) for row in rows) == list(range(records))
        assert sorted(Counter(row["task"] for row in rows).values()) == [records // 5] * 5

        def reasons() -> set[str]:
            found = [entry for entry in decisions(journal) if isinstance(entry.question, SplitOffsets)]
            return {entry.answer["record"]["reason"] for entry in found}

        eventually(lambda: reasons() == {"offsets_default"}, "the read is in the journal")
    assert broker.left_over() == []
