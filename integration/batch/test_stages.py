"""Tests that stages get the partitions that the policy decides, whatever the query, with the same answers."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from integration.batch.plans import LEFT_ALONE, PLAIN, advised, decisions, final_plan, rows, written
from integration.batch.stage_queries import (
    OURS,
    WRITTEN,
    Query,
    join,
    join_of_totals,
    numbers,
    subquery,
    totals,
)
from integration.spark_minor import SPARK_MINOR
from integration.streaming.driver import Driver
from integration.streaming.waiting import eventually
from spark_elastic.core.batch.questions import InitialCount, Ranges
from spark_elastic.core.scheduler import Scheduler
from spark_elastic.runtime.entries import StageEntry, read_journal
from spark_elastic.runtime.replay import replay

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def jvm(jvm: Driver) -> Iterator[Driver]:
    with pytest.MonkeyPatch.context() as patch:
        # Spark's Python workers need the packages of the tests.
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        yield jvm


@pytest.fixture(scope="module")
def plain(jvm: Driver) -> dict[Query, tuple[list[object], str]]:
    """Return plain Spark's answers, and its plans."""
    answers = {}
    with jvm.session(PLAIN) as spark:
        for query in WRITTEN:
            result = query(spark)
            answers[query] = rows(result), final_plan(result)
            spark.catalog.clearCache()
        for table in ("kept", "buckets", "parts"):
            spark.sql(f"DROP TABLE {table}")
    return answers


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("journal")


@pytest.fixture(scope="module")
def elastic(
    jvm: Driver, plain: dict[Query, tuple[list[object], str]], journal: Path
) -> Iterator[SparkSession]:
    """Start a session with the plugin, after plain Spark has answered."""
    assert plain
    with advised(jvm, journal, {}) as spark:
        yield spark


@pytest.mark.parametrize("query", WRITTEN)
def test_the_decided_numbers_are_written_and_the_answer_is_the_same(
    elastic: SparkSession, plain: dict[Query, tuple[list[object], str]], query: Query
) -> None:
    expected, before = plain[query]
    result = query(elastic)
    assert rows(result) == expected
    plan = final_plan(result)
    elastic.catalog.clearCache()
    assert [OURS if number == 4 else number for number in written(plan)] == WRITTEN[query], plan
    # No shuffle is added, and shared stages still run once.
    assert plan.count("Exchange") == before.count("Exchange")
    assert plan.count("ReusedExchange") == before.count("ReusedExchange")


def test_a_join_is_not_expected_to_give_more_than_it_reads(elastic: SparkSession, journal: Path) -> None:
    before = len(decisions(journal))
    joined = numbers(elastic)
    for number in range(3):
        joined = joined.join(numbers(elastic, 900).select("id", F.col("v").alias(f"v{number}")), "id")
    assert joined.groupBy("v").count().count() == 900

    def expected() -> list[int]:
        asked = [entry.question for entry in decisions(journal)[before:]]
        return [
            e.bytes for question in asked if isinstance(question, InitialCount) for e in question.exchanges
        ]

    # Four shuffles to join, and the output of the joins.
    eventually(lambda: len(expected()) >= 5, "all shuffles are in the journal")
    # Spark's statistics multiply the sides, which would give exabytes.
    assert 0 < min(expected()) <= max(expected()) < 1 << 20


SKEWED = {
    "spark.sql.adaptive.skewJoin.skewedPartitionThresholdInBytes": "20k",
    "spark.sql.adaptive.skewJoin.skewedPartitionFactor": "1.5",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "20k",
    "spark.sql.adaptive.coalescePartitions.minPartitionSize": "20k",
}


@pytest.mark.parametrize(
    ("conf", "reason"),
    [
        (SKEWED, "ranges_left_skew"),
        ({"spark.sql.adaptive.autoBroadcastJoinThreshold": "1m"}, "ranges_left_local"),
    ],
)
def test_what_spark_has_done_with_a_join_is_left_to_it_and_told(
    elastic: SparkSession, journal: Path, conf: Mapping[str, str], reason: str
) -> None:
    session = elastic.newSession()
    for key, value in conf.items():
        session.conf.set(key, value)
    # Repeated values would be compressed to almost nothing.
    ids = session.range(0, 100_000, 1, 4).withColumn("noise", F.xxhash64("id"))
    many = ids.withColumn("k", F.when(F.col("id") < 90_000, 7).otherwise(F.col("id")))
    few = session.range(0, 500, 1, 2).select(F.col("id").alias("k"), (F.col("id") * 2).alias("w"))
    # The filter hides how small this side is until it has run.
    both = many.join(few.where("w % 10 != 3"), "k")
    assert both.agg(F.count("noise"), F.max("noise") != 0).collect() == [(90_000, True)]

    def told() -> bool:
        return reason in {entry.answer["record"]["reason"] for entry in decisions(journal)}

    eventually(told, f"the journal has {reason}")


def test_the_size_that_the_application_tells_spark_is_what_a_task_reads(
    elastic: SparkSession, journal: Path
) -> None:
    session = elastic.newSession()
    session.conf.set("spark.sql.adaptive.advisoryPartitionSizeInBytes", "30k")
    session.conf.set("spark.sql.adaptive.coalescePartitions.minPartitionSize", "30k")
    ids = session.range(0, 40_000, 1, 2).select((F.xxhash64("id") % 20_000).alias("k"))
    result = ids.groupBy("k").count()
    rows(result)

    def asked(kind: type[InitialCount] | type[Ranges]) -> list[StageEntry]:
        entries = decisions(journal)
        return [e for e in entries if isinstance(e.question, kind) and e.question.advised == 30 << 10]

    eventually(lambda: asked(InitialCount) and asked(Ranges), "the journal has both questions")
    (read,) = asked(Ranges)
    for entry in (*asked(InitialCount), read):
        assert entry.answer["record"]["numbers"]["volume"] == 30 << 10
    # By our own default volume two tasks would be enough.
    written_bytes = read.answer["record"]["numbers"]["bytes"]
    assert len(read.answer["specs"]) >= written_bytes / (30 << 10) > 4


def test_the_least_number_that_the_application_tells_spark_holds(
    elastic: SparkSession, journal: Path
) -> None:
    session = elastic.newSession()
    session.conf.set("spark.sql.adaptive.coalescePartitions.minPartitionNum", "7")
    result = totals(session)
    assert len(rows(result)) == 50

    def read() -> list[StageEntry]:
        entries = decisions(journal)
        return [e for e in entries if isinstance(e.question, Ranges) and e.question.lower == 7]

    (entry,) = eventually(read, "the journal has it")
    assert len(entry.answer["specs"]) == 7


def test_the_number_that_the_application_tells_spark_is_the_most(
    elastic: SparkSession, journal: Path
) -> None:
    before = len(decisions(journal))
    session = elastic.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "3")
    # Its size is unknown yet, so it would get four.
    result = numbers(session, 1_777).groupBy("k").agg(F.max("v"))
    assert len(rows(result)) == 50
    assert written(final_plan(result)) == [3]

    def asked() -> list[StageEntry]:
        both = (InitialCount, Ranges)
        entries = decisions(journal)[before:]
        return [e for e in entries if isinstance(e.question, both) and e.question.chosen == 3]

    eventually(
        lambda: {type(e.question) for e in asked()} == {InitialCount, Ranges}, "both are in the journal"
    )
    assert {entry.answer["record"]["numbers"]["upper"] for entry in asked()} == {3}


@pytest.mark.skipif(SPARK_MINOR < (4, 1), reason="before 4.1 streams are without adaptive execution")
def test_what_a_stateless_micro_batch_runs_is_read_as_decided(
    elastic: SparkSession, journal: Path, tmp_path: Path
) -> None:
    counted: list[tuple[int, str]] = []

    def count(batch: DataFrame, _number: int) -> None:
        result = batch.groupBy((F.col("value") % 7).alias("k")).count()
        counted.append((sum(row["count"] for row in result.collect()), final_plan(result)))

    rate = elastic.readStream.format("rate-micro-batch").option("rowsPerBatch", 700).load()
    query = rate.writeStream.foreachBatch(count).option("checkpointLocation", str(tmp_path)).start()
    try:
        eventually(lambda: len(counted) > 1, "two micro-batches have run")
    finally:
        query.stop()
    rows_read, plan = counted[-1]
    assert rows_read == 700
    # The number that the query was given: one for each slot.
    assert written(plan) == [2]
    assert "AQEShuffleRead" in plan


def test_planning_runs_nothing(elastic: SparkSession) -> None:
    dag = elastic._jsc.sc().dagScheduler()
    before = dag.numTotalJobs()
    for query in (join_of_totals, subquery):
        planned = numbers(elastic).join(F.broadcast(query(elastic)), "k").groupBy("k").count()
        assert "Exchange" in planned._jdf.queryExecution().executedPlan().toString()
    assert dag.numTotalJobs() == before


def test_a_clone_of_the_session_is_advised_as_well(elastic: SparkSession) -> None:
    result = totals(elastic.newSession())
    rows(result)
    assert written(final_plan(result)) == [4]


def test_what_cannot_be_told_from_an_earlier_run_is_asked_about_anew(
    elastic: SparkSession, journal: Path
) -> None:
    def counts() -> DataFrame:
        return numbers(elastic, 1_234).groupBy("k").count()

    source = counts()._jdf.queryExecution().optimizedPlan().semanticHash() & 0xFFFFFFFF

    def asked() -> int:
        questions = [entry.question for entry in decisions(journal)]
        groups = [question.group for question in questions if isinstance(question, InitialCount)]
        return sum(group.startswith(f":{source:x}-") for group in groups)

    for _ in range(2):  # an RDD's jobs belong to no execution
        counts().rdd.count()
    eventually(lambda: asked() == 2, "each was asked about")


def test_the_number_of_the_rdd_is_the_applications_own(elastic: SparkSession) -> None:
    assert totals(elastic).repartition(200, "k").rdd.getNumPartitions() == 200


def test_who_switches_the_joining_of_partitions_off_keeps_his_numbers(elastic: SparkSession) -> None:
    session = elastic.newSession()
    session.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "false")
    result = totals(session)
    rows(result)
    assert written(final_plan(result)) == [200]


def test_without_adaptive_execution_the_numbers_are_sparks(elastic: SparkSession) -> None:
    session = elastic.newSession()
    session.conf.set("spark.sql.adaptive.enabled", "false")
    result = totals(session)
    assert len(rows(result)) == 50
    assert written(str(result._jdf.queryExecution().executedPlan().toString())) == [200]


def test_the_journal_has_each_decision_and_replays(elastic: SparkSession, journal: Path) -> None:
    keys = elastic.range(0, 400_000, 1, 2).select((F.col("id") * 7 % 300_000).alias("k"))
    assert keys.groupBy("k").count().count() == 300_000

    def told() -> bool:
        asked = [entry.question for entry in decisions(journal)]
        counted = {e.id for q in asked if isinstance(q, InitialCount) for e in q.exchanges}
        read = {e.id: sum(e.bytes) for q in asked if isinstance(q, Ranges) for e in q.exchanges}
        return any(read.get(exchange, 0) > 100_000 for exchange in counted)

    eventually(told, "the large query is in the journal")
    (file,) = journal.glob("*.jsonl")
    outcome = replay(read_journal(file), Scheduler)
    assert outcome.difference is None
    assert outcome.stages == len(decisions(journal))


def test_no_rule_has_failed(jvm: Driver, elastic: SparkSession) -> None:
    rows(join(elastic))
    assert [line for line in jvm.said() if LEFT_ALONE in line] == []
