"""Tests that scans of files are split as the policy decides, and read the same rows."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from integration.batch.plans import PLAIN, advised, decisions, rows
from integration.streaming.driver import Driver
from integration.streaming.waiting import eventually
from spark_elastic.core.batch.questions import JoinPartitions, SplitSize, SplitSizeAnswer
from spark_elastic.core.scheduler import Scheduler
from spark_elastic.runtime.entries import StageEntry, read_journal
from spark_elastic.runtime.replay import replay

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

# With this, files of a few rows are worth splitting.
SMALL = {"spark.sql.files.openCostInBytes": "1000"}
LINES, FOLDERS = 40_000, 8


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, jvm: Driver) -> Path:
    """Write folders with the same numbers in several formats."""
    folder = tmp_path_factory.mktemp("files")
    with jvm.session({}) as spark:
        numbers = spark.range(0, LINES, 1, 1).select("id", (F.col("id") % FOLDERS).alias("part"))
        numbers.write.csv(str(folder / "one.csv"))
        numbers.repartition(3).write.csv(str(folder / "three.csv"))
        numbers.repartition(3).write.option("compression", "gzip").csv(str(folder / "packed.csv"))
        numbers.coalesce(1).write.option("parquet.block.size", "4096").parquet(str(folder / "one.parquet"))
        numbers.write.partitionBy("part").parquet(str(folder / "parts.parquet"))
        numbers.limit(FOLDERS).write.parquet(str(folder / "small.parquet"))
        numbers.limit(0).write.parquet(str(folder / "empty.parquet"))
    return folder


def csv(spark: SparkSession, path: Path) -> DataFrame:
    return spark.read.schema("id LONG, part LONG").csv(str(path))


def one(spark: SparkSession, files: Path) -> DataFrame:
    return csv(spark, files / "one.csv")


def three(spark: SparkSession, files: Path) -> DataFrame:
    return csv(spark, files / "three.csv")


def packed(spark: SparkSession, files: Path) -> DataFrame:
    return csv(spark, files / "packed.csv")


def columnar(spark: SparkSession, files: Path) -> DataFrame:
    return spark.read.parquet(str(files / "one.parquet")).where("id % 3 = 0")


def folders(spark: SparkSession, files: Path) -> DataFrame:
    return spark.read.parquet(str(files / "parts.parquet")).where("part < 5")


def with_origin(spark: SparkSession, files: Path) -> DataFrame:
    return three(spark, files).select("id", "_metadata.file_name")


def twice(spark: SparkSession, files: Path) -> DataFrame:
    left = columnar(spark, files).groupBy("part").count()
    return left.alias("a").join(left.alias("b"), F.col("a.part") == F.col("b.part"))


def subquery(spark: SparkSession, files: Path) -> DataFrame:
    columnar(spark, files).createOrReplaceTempView("numbers")
    return spark.sql(
        "SELECT part, count(*) FROM numbers WHERE id > (SELECT avg(id) FROM numbers) GROUP BY part"
    )


def empty(spark: SparkSession, files: Path) -> DataFrame:
    return spark.read.parquet(str(files / "empty.parquet"))


def cached(spark: SparkSession, files: Path) -> DataFrame:
    return one(spark, files).cache()


QUERIES: tuple[Callable[[SparkSession, Path], DataFrame], ...] = (
    one,
    three,
    packed,
    columnar,
    folders,
    with_origin,
    twice,
    subquery,
    empty,
    cached,
)


BY_USER = (
    ("spark.sql.files.maxPartitionBytes", "64k"),
    ("spark.sql.files.minPartitionNum", "7"),
    ("spark.sql.files.maxPartitionNum", "1"),
    ("spark.sql.leafNodeDefaultParallelism", "5"),
)


def set_by_user(spark: SparkSession, files: Path, key: str, value: str) -> int:
    """Return the number of tasks that read files where the application has a setting for it."""
    session = spark.newSession()
    session.conf.set(key, value)
    return int(three(session, files).rdd.getNumPartitions())


def looked_for_files(jvm: Driver, spark: SparkSession, files: Path) -> tuple[int, int]:
    """Return how often the files of one scan are selected, and split by Spark, while it is read."""
    since = len(jvm.said())
    assert folders(spark, files).count() == LINES * 5 / FOLDERS
    said = "\n".join(jvm.said()[since:])
    return said.count(" pruned "), said.count("Planning scan with bin packing")


@pytest.fixture(scope="module")
def plain(jvm: Driver, files: Path) -> dict[Any, Any]:
    """Return the rows that plain Spark reads and its number of tasks, by query, and the tasks by setting."""
    with jvm.session({**PLAIN, **SMALL}) as spark:
        answers: dict[Any, Any] = {}
        for query in QUERIES:
            result = query(spark, files)
            answers[query] = rows(result), result.rdd.getNumPartitions()
            spark.catalog.clearCache()
        for key, value in BY_USER:
            answers[key] = set_by_user(spark, files, key, value)
        answers[looked_for_files] = looked_for_files(jvm, spark, files)
        return answers


@pytest.fixture(scope="module")
def conf() -> dict[str, str]:
    return SMALL


def scans(journal: Path) -> list[StageEntry]:
    return [entry for entry in decisions(journal) if isinstance(entry.question, SplitSize)]


def lengths(result: DataFrame) -> list[int]:
    """Return the number of rows that each task reads."""
    counted = result.rdd.mapPartitions(lambda part: [sum(1 for _ in part)]).collect()
    return [int(number) for number in counted]


@pytest.mark.parametrize("query", QUERIES)
def test_the_same_rows_are_read(
    elastic: SparkSession,
    files: Path,
    plain: dict[Any, Any],
    query: Callable[[SparkSession, Path], DataFrame],
) -> None:
    result = query(elastic, files)
    assert rows(result) == plain[query][0]
    elastic.catalog.clearCache()


def test_a_file_is_cut_evenly_and_read_in_its_order(elastic: SparkSession, files: Path) -> None:
    read = one(elastic, files)
    first, second = lengths(read)
    assert abs(first - second) < LINES / 20
    assert [row["id"] for row in read.collect()] == list(range(LINES))


def test_what_it_costs_to_open_a_file_is_the_same_for_each_part(elastic: SparkSession, files: Path) -> None:
    ((cost, before),) = SMALL.items()
    elastic.conf.set(cost, (files / "one.csv").stat().st_size // 4)
    first, second = lengths(one(elastic, files))
    elastic.conf.set(cost, before)
    assert abs(first - second) < LINES / 20


def test_three_files_are_shared_out_between_two_slots(
    elastic: SparkSession, files: Path, plain: dict[Any, Any]
) -> None:
    assert plain[three][1] == 3
    first, second = lengths(three(elastic, files))
    assert abs(first - second) < LINES / 20


def test_files_are_selected_and_shared_out_as_often_as_in_plain_spark(
    jvm: Driver, elastic: SparkSession, files: Path, plain: dict[Any, Any], journal: Path
) -> None:
    before = len(scans(journal))
    found = looked_for_files(jvm, elastic, files)

    def is_told() -> bool:
        questions = [entry.question for entry in scans(journal)[before:]]
        return any(isinstance(q, SplitSize) and "parts.parquet" in q.scan for q in questions)

    eventually(is_told, "the scan is in the journal")
    assert found == plain[looked_for_files]
    assert found[0] >= found[1] == 1


def test_what_cannot_be_split_is_not(elastic: SparkSession, files: Path) -> None:
    assert sorted(lengths(packed(elastic, files))) == pytest.approx([LINES / 3, LINES * 2 / 3], rel=0.01)


def test_a_scan_after_runtime_filtering_uses_what_is_left(
    elastic: SparkSession, files: Path, journal: Path
) -> None:
    before = len(scans(journal))
    numbers = elastic.read.parquet(str(files / "parts.parquet"))
    small = (
        elastic.read.parquet(str(files / "small.parquet")).where("id = 3").select(F.col("part").alias("p"))
    )
    result = numbers.join(F.broadcast(small), numbers["part"] == small["p"])
    assert result.count() == LINES / FOLDERS
    assert "dynamicpruning" in result._jdf.queryExecution().executedPlan().toString()

    def asked() -> list[int]:
        found = [entry.question for entry in scans(journal)[before:]]
        return [q.bytes for q in found if isinstance(q, SplitSize) and "parts.parquet" in q.scan]

    whole = sum(file.stat().st_size for file in (files / "parts.parquet").rglob("*.parquet"))
    (left,) = eventually(asked, "the scan is in the journal")
    assert left < whole / FOLDERS * 1.5


@pytest.mark.parametrize(("key", "value"), BY_USER)
def test_who_has_said_how_files_are_split_keeps_that(
    elastic: SparkSession, plain: dict[Any, Any], files: Path, journal: Path, key: str, value: str
) -> None:

    def place(name: str) -> int:
        """Return the place in the journal of a scan that is asked about now."""
        own = files / f"{name}-{key}.csv"
        shutil.copytree(files / "one.csv", own)
        csv(elastic, own).rdd.getNumPartitions()

        def found() -> list[int]:
            questions = enumerate(entry.question for entry in scans(journal))
            return [n + 1 for n, q in questions if isinstance(q, SplitSize) and own.name in q.scan]

        return eventually(found, "the scan is in the journal")[0]

    before = place("before")
    assert set_by_user(elastic, files, key, value) == plain[key]
    assert place("after") == before + 1


def test_buckets_stay_whole(elastic: SparkSession, files: Path) -> None:
    one(elastic, files).write.bucketBy(5, "part").mode("overwrite").saveAsTable("buckets")
    grouped = elastic.table("buckets").groupBy("part").count()
    assert {row["count"] for row in grouped.collect()} == {LINES // FOLDERS}
    assert "Exchange" not in grouped._jdf.queryExecution().executedPlan().toString()
    assert elastic.table("buckets").groupBy("part").count().rdd.getNumPartitions() == 5
    elastic.sql("DROP TABLE buckets")


def test_each_decision_is_in_the_journal_and_replays(
    elastic: SparkSession, files: Path, journal: Path
) -> None:
    three(elastic, files).collect()
    found = eventually(
        lambda: [e for e in scans(journal) if e.answer["record"]["before"] == 3], "the scan is in the journal"
    )
    answer = found[-1].answer
    assert (answer["type"], answer["tasks"]) == (SplitSizeAnswer.__name__, 2)
    assert answer["record"]["message"].startswith("Scan ")
    (file,) = journal.glob("*.jsonl")
    assert replay(read_journal(file), Scheduler).difference is None


def joins(journal: Path) -> list[StageEntry]:
    return [entry for entry in decisions(journal) if isinstance(entry.question, JoinPartitions)]


def readers(journal: Path) -> set[str]:
    questions = [entry.question for entry in joins(journal)]
    return {question.source for question in questions if isinstance(question, JoinPartitions)}


def test_a_source_of_version_2_is_named_and_its_partitions_are_joined_to_the_bound(
    jvm: Driver, elastic: SparkSession, plain: dict[Any, Any], files: Path, tmp_path: Path
) -> None:
    elastic.stop()
    conf = {
        **SMALL,
        "spark.sql.sources.useV1SourceList": "",
        "spark.elastic.batch.autoParallelism.defaultSourceParallelism": "2",
    }
    with advised(jvm, tmp_path, conf) as spark:
        assert rows(three(spark, files)) == plain[three][0]
        assert len(lengths(three(spark, files))) == 2
        grouped = columnar(spark, files).groupBy("part").count()
        assert sum(row["count"] for row in grouped.collect()) == len(plain[columnar][0])
        eventually(lambda: readers(tmp_path) == {"CSVScan", "ParquetScan"}, "the scans are in the journal")
    joined = [entry.answer for entry in joins(tmp_path) if entry.answer["record"]["before"] == 3]
    assert {answer["record"]["reason"] for answer in joined} == {"source_joined"}
    assert "Read 3 partitions of CSVScan in 2 tasks" in joined[0]["record"]["message"]


def test_jdbc_is_read_as_it_says_and_the_record_tells_what_makes_more_of_it(
    jvm: Driver, elastic: SparkSession, tmp_path: Path
) -> None:
    elastic.stop()
    url = "jdbc:derby:memory:numbers;create=true"
    conf = {"spark.elastic.batch.autoParallelism.defaultSourceParallelism": "2"}
    with advised(jvm, tmp_path, conf) as spark:
        spark.range(100).write.jdbc(url, "numbers")
        whole = spark.read.jdbc(url, "numbers")
        assert (whole.count(), whole.rdd.getNumPartitions()) == (100, 1)
        parts = spark.read.jdbc(url, "numbers", column="id", lowerBound=0, upperBound=100, numPartitions=5)
        assert (parts.count(), parts.rdd.getNumPartitions()) == (100, 2)
        eventually(lambda: len(joins(tmp_path)) >= 4, "the reads are in the journal")
    records = {entry.answer["record"]["reason"]: entry.answer["record"] for entry in joins(tmp_path)}
    assert records.keys() == {"source_whole", "source_joined"}
    assert "Read JDBCRelation in one task" in records["source_whole"]["message"]


def test_switched_off_the_scans_are_sparks(
    jvm: Driver, elastic: SparkSession, plain: dict[Any, Any], files: Path, tmp_path: Path
) -> None:
    elastic.stop()
    with advised(jvm, tmp_path, {**SMALL, "spark.elastic.batch.sources.enabled": "false"}) as spark:
        assert three(spark, files).rdd.getNumPartitions() == 3
        reasons = {entry.answer["record"]["reason"] for entry in eventually(lambda: scans(tmp_path), "asked")}
        assert reasons == {"split_off"}
        assert list(itertools.chain(rows(three(spark, files)))) == plain[three][0]


def test_executors_need_nothing_of_ours(
    jvm: Driver, elastic: SparkSession, plain: dict[Any, Any], files: Path, tmp_path: Path
) -> None:
    elastic.stop()
    cluster = {"spark.master": "local-cluster[1,2,1024]", "spark.executor.memory": "512m"}
    with advised(jvm, tmp_path, {**SMALL, **cluster}) as spark:
        for query in (one, columnar, with_origin, twice):
            assert rows(query(spark, files)) == plain[query][0]
        assert len(lengths(three(spark, files))) == 2
