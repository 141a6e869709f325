"""Tests that on a custom build of Spark only the features are off that need what this build lacks."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from integration.batch.plans import PATIENT, final_plan, written
from integration.spark_minor import MOVES_STATE
from integration.streaming.another_build import another_build
from integration.streaming.bare_jvm import bare_jvm
from integration.streaming.driver import PLUGIN, Driver, driver
from integration.streaming.files import Inbox
from integration.streaming.waiting import eventually
from integration.streaming.world import state_partitions, totals

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

OFF = re.compile(r"spark-elastic: continues without (.*): this build of Spark has (.*)$")
STREAMS = "rescales, retries and progress of streaming queries"
COMPARED = "spark-elastic: compared with this build of Spark in "
# Plain Spark's count here; the policy chooses fewer for two slots.
PLAIN = 11
FIRST = 2 if MOVES_STATE else 4 * 2
# Features that no Spark of this version supports.
ABSENT = set() if MOVES_STATE else {"StateMove", "StateReads", "StateCopy"}


@pytest.mark.parametrize(
    ("without", "off", "said"),
    [
        # Called.
        (["cartesian"], {"WarmUp", *({"StateCopy"} if MOVES_STATE else ())}, None),
        pytest.param(
            ["allOperatorStateMetadata"],
            {"WarmUp", "CheckpointRewrite", "StateCopy"},
            None,
            marks=pytest.mark.skipif(not MOVES_STATE, reason="the state of no query is read"),
        ),
        (["hasSkewedPartition"], {"RangesRule"}, None),
        (["optionalNumCoalescedBuckets"], {"ScanRule", "SourceBoundsRule"}, None),
        (["parseStandaloneMasterUrls"], {"ElasticServlet"}, None),
        (["stopSources"], {"Boundary", "NewSources"}, None),
        # Overridden, but never called.
        (["postColumnarTransitions"], {"ScanRule"}, None),
        # Reached by reflection only.
        (["startLatch"], {"StartLatch"}, None),
        # Needed by all.
        (["getExecutorDecommissionState"], set(), "getExecutorDecommissionState"),
        ([], set(), None),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_what_needs_a_member_that_is_not_there_is_off(
    tmp_path: Path, without: list[str], off: set[str], said: str | None
) -> None:
    with bare_jvm(class_path=[another_build(tmp_path / "spark", without)]) as jvm:
        linkage = jvm.org.apache.spark.elastic.Linkage
        every = jvm.org.apache.spark.elastic.Part.All()
        parts = [every.apply(number) for number in range(every.size())]
        assert {part.doors().head() for part in parts if not linkage.has(part)} == off | ABSENT
        problem = linkage.problem()
        assert (said is None) == problem.isEmpty()
        assert said is None or said in problem.get()


@pytest.mark.parametrize(
    ("without", "off"),
    [
        pytest.param(None, {}, marks=pytest.mark.slow),
        pytest.param([], {}, marks=pytest.mark.slow),
        (
            ["stopSources"],
            {STREAMS: "stopSources()"},
        ),
        pytest.param(
            ["cartesian", "hasSkewedPartition"],
            {
                "the warm-up of executors": "cartesian(",
                **({"moves prepared while micro-batches run": "cartesian("} if MOVES_STATE else {}),
                "ranges of batch shuffles": "hasSkewedPartition()Z",
            },
            marks=pytest.mark.matrix,
        ),
    ],
    ids=["as_compiled", "alike", "boundaries_off", "others_off"],
)
def test_the_rest_works(tmp_path: Path, without: Collection[str] | None, off: dict[str, str]) -> None:
    spark_of_others = [] if without is None else [another_build(tmp_path / "spark", without)]
    with driver(tmp_path / "driver", spark_of_others) as jvm:
        log_at_debug(jvm, "org.apache.spark.elastic.Linkage")
        with jvm.session({**PLUGIN, **PATIENT, "spark.sql.shuffle.partitions": str(PLAIN)}) as spark:
            eventually(lambda: batch_partitions(spark) != PLAIN, "a batch stage is decided about")
            partitions = streaming_partitions(spark, Inbox(tmp_path / "in"), tmp_path / "checkpoint")
            assert partitions == (PLAIN if STREAMS in off else FIRST)
    said = [(found[1], found[2]) for line in jvm.said() if (found := OFF.search(line))]
    assert sorted(part for part, _ in said) == sorted(off)
    assert all(off[part] in why for part, why in said)
    assert sum(COMPARED in line for line in jvm.said()) == (without is not None)
    assert not [line for line in jvm.said() if "LinkageError" in line or "NoSuchMethodError" in line]


def test_the_application_goes_on_where_nothing_of_ours_works(tmp_path: Path) -> None:
    inbox, plain = Inbox(tmp_path / "in"), {"spark.sql.shuffle.partitions": str(PLAIN)}
    begun = tmp_path / "begun"
    with driver(tmp_path / "whole") as jvm, jvm.session({**PLUGIN, **PATIENT, **plain}) as spark:
        before = streaming_partitions(spark, inbox, begun)
    build = another_build(tmp_path / "spark", ["getExecutorDecommissionState"])
    with driver(tmp_path / "driver", [build]) as jvm:
        with jvm.session({**PLUGIN, **PATIENT, **plain}) as spark:
            assert batch_partitions(spark) == PLAIN
            assert streaming_partitions(spark, inbox, tmp_path / "new") == PLAIN
            # A checkpoint that we started has a format of its own.
            assert streaming_partitions(spark, inbox, begun) == before
        (line,) = [line for line in jvm.said() if "spark-elastic: off" in line]
    assert "the application continues as plain Spark: this build of Spark has no " in line
    assert "getExecutorDecommissionState" in line


def log_at_debug(jvm: Driver, name: str) -> None:
    log4j = jvm.jvm.org.apache.logging.log4j
    log4j.core.config.Configurator.setLevel(name, log4j.Level.DEBUG)


def batch_partitions(spark: SparkSession) -> int:
    """Run a batch query, and return the number of partitions that its shuffle has written."""
    counts = spark.range(100).groupBy((F.col("id") % 7).alias("k")).count()
    assert sorted(row["count"] for row in counts.collect()) == [14] * 5 + [15] * 2
    (partitions,) = written(final_plan(counts))
    return partitions


def streaming_partitions(spark: SparkSession, inbox: Inbox, checkpoint: Path) -> int:
    """Run a stateful streaming query over more rows, and return the number of partitions of its state."""
    inbox.put(3)
    totals_of_keys = totals(spark, inbox).writeStream.format("memory").queryName("totals")
    query = totals_of_keys.outputMode("complete").option("checkpointLocation", str(checkpoint)).start()
    query.processAllAvailable()
    found = {row["key"]: (row["n"], row["total"]) for row in spark.table("totals").collect()}
    assert found == inbox.totals()
    partitions = state_partitions(query)
    query.stop()
    return partitions
