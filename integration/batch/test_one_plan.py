"""Tests that a plan has one partitioning in an application, so rows drawn by partition repeat."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from integration.batch.plans import LEFT_ALONE, advised, final_plan, rows, written
from integration.streaming.driver import Driver

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

USERS = 40_000
Halves = Callable[[DataFrame], list[DataFrame]]


def split(users: DataFrame) -> list[DataFrame]:
    return list(users.randomSplit([0.5, 0.5], seed=5))


def drawn(users: DataFrame) -> list[DataFrame]:
    drawing = users.select("user", F.rand(42).alias("r"))
    return [drawing.where("r < 0.5").select("user"), drawing.where("r >= 0.5").select("user")]


def numbered(users: DataFrame) -> list[DataFrame]:
    numbers = users.select("user", F.monotonically_increasing_id().alias("n"))
    return [numbers.where("n % 2 = 0").select("user"), numbers.where("n % 2 = 1").select("user")]


def by_partition(users: DataFrame) -> list[DataFrame]:
    places = users.select("user", F.spark_partition_id().alias("p"))
    return [places.where("p % 2 = 0").select("user"), places.where("p % 2 = 1").select("user")]


HALVES: list[Halves] = [split, drawn, numbered, by_partition]


@pytest.fixture(scope="module")
def elastic(jvm: Driver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with advised(jvm, tmp_path_factory.mktemp("journal"), {}) as spark:
        yield spark


def with_tasks_of(size: str, elastic: SparkSession) -> SparkSession:
    """Return another session, whose user wants tasks of this size."""
    session = elastic.newSession()
    session.conf.set("spark.sql.adaptive.advisoryPartitionSizeInBytes", size)
    session.conf.set("spark.sql.adaptive.coalescePartitions.minPartitionSize", size)
    return session


@pytest.fixture
def source(elastic: SparkSession, tmp_path: Path) -> str:
    return new_users(elastic, tmp_path)


def new_users(spark: SparkSession, tmp_path: Path) -> str:
    """Write files that no plan has read before, so that their plan has never run."""
    folder = str(tmp_path / "users")
    spark.range(0, USERS, 1, 4).select(F.col("id").alias("user")).write.parquet(folder)
    return folder


def users(spark: SparkSession, folder: str) -> DataFrame:
    return spark.read.schema("user long").parquet(folder).distinct()


def shared(halves: list[set[int]]) -> tuple[int, int]:
    """Return the number of users in both halves, and the number in none."""
    first, second = halves
    return len(first & second), USERS - len(first | second)


def collected(half: DataFrame) -> set[int]:
    return {row["user"] for row in half.collect()}


@pytest.mark.parametrize("halves", HALVES)
def test_halves_that_are_drawn_by_partition_are_halves(
    elastic: SparkSession, source: str, halves: Halves
) -> None:
    parts = halves(users(elastic, source))
    assert shared([collected(part) for part in parts]) == (0, 0)
    # Again, from a newly made plan.
    again = halves(users(elastic, source))
    assert [collected(part) for part in again] == [collected(part) for part in parts]


def test_an_rdd_of_a_plan_has_the_same_partitions_each_time(elastic: SparkSession, source: str) -> None:
    counts = {users(elastic, source).rdd.getNumPartitions() for _ in range(3)}
    assert len(counts) == 1


def test_sides_of_a_join_that_end_one_after_the_other_count_as_if_they_ended_together(
    elastic: SparkSession, source: str
) -> None:
    # The written rows deserve fewer partitions than the files' size suggests.
    session = with_tasks_of("10k", elastic)

    def joined() -> DataFrame:
        read = session.read.schema("user long").parquet(source)
        soon = read.groupBy((F.col("user") % 500).alias("k")).count()
        late = read.groupBy((F.col("user") % 700).alias("of")).count().groupBy((F.col("of") % 500).alias("k"))
        return soon.join(late.agg(F.sum("of")), "k").groupBy((F.col("k") % 30).alias("m")).count()

    run, as_an_rdd = joined(), joined()
    assert len(rows(run)) == 30
    # An RDD is planned outside of an execution, so every planning asks about each exchange.
    as_an_rdd.rdd.count()
    assert written(final_plan(run)) == written(final_plan(as_an_rdd))


def test_a_plan_writes_as_many_partitions_each_time(elastic: SparkSession, source: str) -> None:
    def written_now() -> list[int]:
        read = elastic.read.schema("user long").parquet(source)
        few = read.groupBy((F.col("user") % 100).alias("k")).count()
        both = few.join(users(elastic, source), F.col("k") == F.col("user"))
        assert len(rows(both)) == 100
        return written(final_plan(both))

    first = written_now()
    assert [written_now() for _ in range(3)] == [first] * 3


@pytest.mark.parametrize("chosen", [None, 1000])
def test_what_can_be_any_number_of_rows_has_as_many_partitions_as_in_plain_spark(
    elastic: SparkSession, chosen: int | None
) -> None:
    session = elastic.newSession()
    if chosen is not None:
        session.conf.set("spark.sql.shuffle.partitions", str(chosen))
    # The sizes written by other plans of the same rows would already be known.
    few = session.range(0, 300 if chosen is None else 301, 1, 2).select(
        "id", F.explode(F.sequence(F.lit(1), F.lit(100))).alias("j")
    )
    many = few.select((F.col("id") * 100 + F.col("j")).alias("key"), F.xxhash64("id", "j").alias("v"))
    keys = session.range(0, 200, 1, 1).select((F.col("id") * 11 + 1).alias("key"))
    result = keys.join(many.hint("shuffle_hash"), "key")
    assert len(rows(result)) == 200
    assert written(final_plan(result)) == [chosen or 201] * 2


@pytest.fixture
def texts(elastic: SparkSession, tmp_path: Path) -> str:
    """Write 10 MiB of files: a long text in each row, next to many tiny numbers."""
    folder = str(tmp_path / "texts")
    drawn = F.concat(*(F.sha2((F.col("id") * 20 + n).cast("string"), 256) for n in range(20)))
    numbers = [F.lit(0).cast("long").alias(f"n{n}") for n in range(20)]
    elastic.range(0, 8_000, 1, 4).select(drawn.alias("text"), *numbers).write.parquet(folder)
    return folder


def test_long_texts_of_a_wide_table_have_as_many_partitions_as_in_plain_spark(
    elastic: SparkSession, texts: str
) -> None:
    session = with_tasks_of("1m", elastic)
    total = session.read.parquet(texts).groupBy("text").count()
    assert len(total.collect()) == 8_000
    assert written(final_plan(total)) == [201]


@pytest.mark.parametrize("hint", ["broadcast", "merge"])
def test_long_texts_that_a_join_repeats_have_as_many_partitions_as_in_plain_spark(
    elastic: SparkSession, texts: str, hint: str
) -> None:
    session = with_tasks_of("1m", elastic)
    few = session.read.parquet(texts).limit(10)
    texts_by_key = (
        few.select((F.hash("text") % 50).alias("key"), "text").groupBy("key").agg(F.max("text").alias("text"))
    )
    # The size that the same plan has written in another test would already be known.
    drawn = F.xxhash64("id", F.lit(hint)).alias("id")
    facts = session.range(0, 20_000, 1, 2).select((F.col("id") % 50).alias("key"), drawn)
    result = facts.join(texts_by_key.hint(hint), "key", "left").groupBy("id", "text").count()
    assert len(result.collect()) == 20_000
    assert written(final_plan(result))[0] == 201


@pytest.mark.parametrize("columns", ["key LONG", "key LONG, part INT"])
def test_old_statistics_of_a_table_leave_as_many_partitions_as_in_plain_spark(
    elastic: SparkSession, tmp_path: Path, columns: str
) -> None:
    session = with_tasks_of("10k", elastic)
    partitioned = "PARTITIONED BY (part)" if "part" in columns else ""
    folder = tmp_path / "old"
    session.sql(f"CREATE TABLE old ({columns}) USING parquet {partitioned} LOCATION '{folder}'")
    try:
        session.sql(f"INSERT INTO old VALUES {'(1, 1)' if partitioned else '(1)'}")
        session.sql("ANALYZE TABLE old COMPUTE STATISTICS")
        into = folder / "part=1" if partitioned else folder
        session.range(100_000).select(F.xxhash64("id").alias("key")).write.mode("append").parquet(str(into))
        session.sql("REFRESH TABLE old")
        result = session.table("old").groupBy("key").count()
        assert len(result.collect()) == 100_001
        assert written(final_plan(result)) == [201]
    finally:
        session.sql("DROP TABLE old")


@pytest.mark.parametrize(
    ("words", "tasks"),
    [
        ({}, 2),
        ({"parallelismFirst": "false"}, 1),
        ({"parallelismFirst": "true"}, 2),
        ({"minPartitionSize": "32m"}, 1),
        ({"minPartitionNum": "4"}, 4),
        ({"initialPartitionNum": "1"}, 1),
        ({"enabled": "false"}, 200),
    ],
)
def test_what_the_user_says_of_joining_partitions_holds(
    elastic: SparkSession, tmp_path: Path, words: dict[str, str], tasks: int
) -> None:
    session = elastic.newSession()
    for word, value in words.items():
        session.conf.set(f"spark.sql.adaptive.coalescePartitions.{word}", value)
    numbers = session.range(0, 300_000, 1, 2).select(F.xxhash64("id").alias("h"))
    numbers.repartition("h").write.parquet(str(tmp_path / "files"))
    assert len(list((tmp_path / "files").glob("*.parquet"))) == tasks


def test_no_rule_has_failed(jvm: Driver, elastic: SparkSession) -> None:
    assert elastic.range(10).distinct().count() == 10
    assert [line for line in jvm.said() if LEFT_ALONE in line] == []
