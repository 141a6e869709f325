"""Tests that repeated scans of any files have plain Spark's rows in plain Spark's order."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from integration.batch.plans import LEFT_ALONE, PLAIN, decisions
from integration.streaming.driver import Driver
from integration.streaming.waiting import eventually
from spark_elastic.core.batch.questions import SplitSize

pytestmark = [pytest.mark.integration, pytest.mark.timeout(600)]

SLOTS = 8
CLUSTER = {"spark.master": f"local[{SLOTS}]", "spark.sql.shuffle.partitions": "2"}
OPENING = "spark.sql.files.openCostInBytes"
OPENINGS = ("1000", "4m")
"""So cheap that a few rows are worth splitting, and Spark's default."""

FORMATS = ("text", "csv", "json", "parquet", "orc", "gz", "whole", "binary")


def read(spark: SparkSession, form: str, *paths: str) -> DataFrame:
    """Read files in one of the formats, with columns that show the origin of each row."""
    reader = spark.read
    if form in {"csv", "json"}:
        reader = reader.schema("id LONG, s STRING")
    elif form == "whole":
        reader = reader.option("wholetext", True)
    name = {"gz": "text", "whole": "text", "binary": "binaryFile"}.get(form, form)
    found = reader.format(name).load(list(paths))
    return found.drop("modificationTime").select("*", "_metadata.file_name", F.input_file_name().alias("f"))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, jvm: Driver) -> Path:
    """Write a folder per format, with files of different sizes; the same seed writes the same files."""
    folder = tmp_path_factory.mktemp("files")
    chance = random.Random(7)
    with jvm.session({}) as spark:
        for form in FORMATS:
            for number in range(5):
                rows = spark.range(0, chance.choice((0, 3, 400, 3000)), 1, 1)
                rows = rows.withColumn("s", F.sha2(F.concat(F.lit(number), "id"), 256))
                one = rows.select("s") if form in {"text", "gz", "whole", "binary"} else rows
                name = {"gz": "text", "whole": "text", "binary": "text"}.get(form, form)
                packed = "gzip" if form == "gz" else "none"
                writer = one.write.option("compression", packed).option("parquet.block.size", 4096)
                writer.format(name).save(str(folder / "raw"))
                (written,) = (folder / "raw").glob("part-*")
                into = folder / form / f"{number}{''.join(written.suffixes)}"
                into.parent.mkdir(exist_ok=True)
                shutil.move(written, into)
                shutil.rmtree(folder / "raw")
    (folder / "binary" / "empty").touch()
    many = folder / "many"
    many.mkdir()
    for number in range(100):
        (many / f"{number:03}.json").write_text(f'{{"id": {number}, "s": "x"}}\n' * 20)
    return folder


def one_of(files: Path, form: str) -> str:
    """Return the file of a format that is worth splitting."""
    return str(max((files / form).iterdir(), key=lambda file: file.stat().st_size))


def once(spark: SparkSession, files: Path, form: str) -> DataFrame:
    return read(spark, form, str(files / form))


def twice(spark: SparkSession, files: Path, form: str) -> DataFrame:
    return read(spark, form, one_of(files, form), one_of(files, form))


def folder_twice(spark: SparkSession, files: Path, form: str) -> DataFrame:
    return read(spark, form, str(files / form), str(files / form))


def folder_and_file(spark: SparkSession, files: Path, form: str) -> DataFrame:
    return read(spark, form, str(files / form), one_of(files, form))


def pattern_and_file(spark: SparkSession, files: Path, form: str) -> DataFrame:
    return read(spark, form, str(files / form / "[1-4]*"), *[one_of(files, form)] * 2)


LISTINGS = (once, twice, folder_twice, folder_and_file, pattern_and_file)


def shared_location(spark: SparkSession, files: Path) -> DataFrame:
    """Return a table with two partitions in the same folder."""
    spark.sql("DROP TABLE IF EXISTS shared")
    # The table has a folder of its own, so that dropping it removes no files.
    table = "CREATE TABLE shared (id LONG, s STRING, p INT) USING csv PARTITIONED BY (p)"
    spark.sql(f"{table} LOCATION '{files / 'table'}'")
    for value in (1, 2):
        spark.sql(f"ALTER TABLE shared ADD PARTITION (p = {value}) LOCATION '{files / 'csv'}'")
    return spark.table("shared")


def in_partitions(spark: SparkSession, files: Path) -> DataFrame:
    return spark.sql("SELECT p, count(*), sum(id) FROM shared GROUP BY p ORDER BY p")


def places(spark: SparkSession, files: Path) -> DataFrame:
    return spark.read.parquet(*[str(files / "parquet")] * 2).select("id", "_metadata.row_index")


def first_rows(spark: SparkSession, files: Path) -> DataFrame:
    return folder_twice(spark, files, "csv").limit(3500)


def few_rows(spark: SparkSession, files: Path) -> DataFrame:
    return spark.createDataFrame(folder_and_file(spark, files, "parquet").head(10))


def small(spark: SparkSession, files: Path) -> DataFrame:
    return spark.read.schema("id LONG, s STRING").json(str(files / "many"))


def corrupt(spark: SparkSession, files: Path) -> DataFrame:
    """Read three files; the second one is corrupt at its start."""
    folder = files / "corrupt"
    if not folder.exists():
        folder.mkdir()
        for name in "abc":
            shutil.copy(one_of(files, "parquet"), folder / f"{name}.parquet")
        spoilt = bytearray((folder / "b.parquet").read_bytes())
        spoilt[4:200] = bytes(196)
        (folder / "b.parquet").write_bytes(spoilt)
    return spark.read.option("ignoreCorruptFiles", True).parquet(str(folder))


OTHERS = (shared_location, in_partitions, places, first_rows, few_rows, small, corrupt)

QUERIES: tuple[tuple[str, Callable[[SparkSession, Path], DataFrame]], ...] = (
    *(
        (f"{form}-{listing.__name__}", lambda spark, files, g=listing, f=form: g(spark, files, f))
        for form in FORMATS
        for listing in LISTINGS
    ),
    *((query.__name__, query) for query in OTHERS),
)
Found = tuple[list[Any], int]


def found_by(spark: SparkSession, files: Path, opening: str) -> dict[str, Found]:
    """Return the rows of each query in their order, and the number of tasks that read them."""
    session = spark.newSession()
    session.conf.set(OPENING, opening)
    found = {}
    for name, query in QUERIES:
        result = query(session, files)
        found[name] = (result.collect(), int(result.rdd.getNumPartitions()))
    return found


def vanished(spark: SparkSession, files: Path, **options: bool) -> Any:
    """Return the result when one of the listed files is gone by the time it is read."""
    folder = files / "vanishing"
    shutil.copytree(files / "csv", folder)
    result = spark.read.options(**options).schema("id LONG, s STRING").csv(str(folder))
    (folder / Path(one_of(files, "csv")).name).unlink()
    try:
        return result.collect()
    except Py4JJavaError as error:
        # Which task reports it first is random.
        return str(error.java_exception.getClass().getName()), "does not exist" in str(error)
    finally:
        shutil.rmtree(folder)


OPTIONS: tuple[dict[str, bool], ...] = ({}, {"ignoreMissingFiles": True})


@pytest.fixture(scope="module")
def plain(jvm: Driver, files: Path) -> dict[Any, Any]:
    with jvm.session({**PLAIN, **CLUSTER}) as spark:
        answers: dict[Any, Any] = {opening: found_by(spark, files, opening) for opening in OPENINGS}
        answers["vanished"] = [vanished(spark, files, **options) for options in OPTIONS]
        return answers


@pytest.fixture(scope="module")
def conf() -> dict[str, str]:
    return CLUSTER


@pytest.fixture(scope="module")
def found(elastic: SparkSession, files: Path) -> dict[str, dict[str, Found]]:
    return {opening: found_by(elastic, files, opening) for opening in OPENINGS}


@pytest.mark.parametrize("opening", OPENINGS)
@pytest.mark.parametrize("query", [name for name, _ in QUERIES])
def test_rows_and_their_order_are_those_of_plain_spark(
    found: dict[str, dict[str, Found]], plain: dict[Any, Any], query: str, opening: str
) -> None:
    (rows, tasks), (expected, most) = found[opening][query], plain[opening][query]
    assert rows == expected
    assert tasks >= min(most, SLOTS)


def test_what_is_listed_twice_is_there_twice_and_shared_out(
    found: dict[str, dict[str, Found]], plain: dict[Any, Any], journal: Path, jvm: Driver
) -> None:
    read_once = {form: len(found["1000"][f"{form}-once"][0]) for form in FORMATS}
    read_twice = {form: len(found["1000"][f"{form}-folder_twice"][0]) for form in FORMATS}
    assert read_twice == {form: 2 * rows for form, rows in read_once.items()}
    assert [row["count(1)"] for row in found["1000"]["in_partitions"][0]] == [read_once["csv"]] * 2
    changed = [name for name, (_, tasks) in found["1000"].items() if tasks != plain["1000"][name][1]]
    assert {f"{form}-folder_twice" for form in ("text", "csv", "json")} & set(changed)
    assert any(isinstance(entry.question, SplitSize) for entry in decisions(journal))
    assert not [line for line in jvm.said() if LEFT_ALONE in line]


def test_files_that_vanish_are_what_they_are_to_plain_spark(
    elastic: SparkSession, plain: dict[Any, Any], files: Path
) -> None:
    assert [vanished(elastic, files, **options) for options in OPTIONS] == plain["vanished"]
    assert plain["vanished"][0][1] is True
    assert isinstance(plain["vanished"][1], list)


@pytest.mark.parametrize("opening", OPENINGS)
def test_one_scan_has_one_division(elastic: SparkSession, files: Path, opening: str) -> None:
    def division() -> list[tuple[int, int]]:
        session = elastic.newSession()
        session.conf.set(OPENING, opening)
        read = folder_and_file(session, files, "csv").withColumn("place", F.monotonically_increasing_id())
        return [(row["id"], row["place"]) for row in read.collect()]

    first = division()
    assert first == division() == division()
    assert len({place for _, place in first}) == len(first)


def test_many_small_files_keep_the_slots_busy(
    found: dict[str, dict[str, Found]], plain: dict[Any, Any], journal: Path
) -> None:
    assert plain["4m"]["small"][1] < 100
    assert found["4m"]["small"][1] >= min(SLOTS, plain["4m"]["small"][1])

    def told() -> list[Any]:
        entries = decisions(journal)
        return [
            entry.answer["record"]
            for entry in entries
            if isinstance(entry.question, SplitSize) and ":many" in entry.question.scan
        ]

    records = eventually(told, "the scan is in the journal")
    assert any("100 openings of files counted as 4 MiB each" in record["message"] for record in records)
