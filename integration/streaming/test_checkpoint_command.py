"""Tests of the command checkpoint, as a process of its own, on checkpoints that plain Spark has written."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import field, frozen
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from integration.class_archive import of_drivers
from integration.spark_minor import MOVES_STATE, SPARK_MINOR
from integration.streaming.command import COMMAND
from integration.streaming.driver import Driver
from integration.streaming.files import SCHEMA, Inbox
from integration.streaming.state_store import REPARTITIONABLE
from spark_elastic_lab.demo.cluster import SMALL_JVM, isolated_environment

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not MOVES_STATE, reason="Spark rewrites state only since 4.2"),
]

FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
FORMAT_1 = {**REPARTITIONABLE, FORMAT: "1"}
PARTITIONS = 4
COMMAND_S = 240


def totals(rows: DataFrame) -> DataFrame:
    return rows.groupBy("key").agg(F.count("*").alias("n"), F.sum("value").alias("total"))


def joined(rows: DataFrame) -> DataFrame:
    left = rows.select("key", F.col("value").alias("left"))
    right = rows.filter("value % 3 = 0").select(F.col("key").alias("other"), F.col("value").alias("right"))
    return left.join(right, F.expr("key = other")).select("left", "right")


def large(rows: DataFrame) -> DataFrame:
    return rows.filter("value > 2")


def counted(rows: DataFrame) -> DataFrame:
    return rows.groupBy().count()


@frozen
class Query:
    """A query over the inbox; `conf` are the settings with which its checkpoint is made."""

    plan: Callable[[DataFrame], DataFrame]
    conf: dict[str, str] = field(factory=dict)


QUERIES = {
    "totals": Query(totals),
    "totals_in_rocksdb": Query(totals, FORMAT_1),
    "totals_in_format_2": Query(totals, REPARTITIONABLE),
    "joined": Query(joined),
    "stateless": Query(large),
    "without_keys": Query(counted),
}


@frozen
class Made:
    """Checkpoints by the names of queries, and all that these read."""

    jvm: Driver
    inbox: Inbox
    folder: Path

    def run(self, spark: SparkSession, name: str, checkpoint: Path, conf: dict[str, str]) -> list[list[Any]]:
        """Run a query until it has read all input; return the rows that it emits, as plain values."""
        emitted: list[list[Any]] = []
        for key, value in conf.items():
            spark.conf.set(key, value)
        query = self.start(
            spark, name, checkpoint, lambda batch, _: emitted.extend(map(list, batch.collect()))
        )
        query.processAllAvailable()
        query.stop()
        for key in conf:
            spark.conf.unset(key)
        return emitted

    def copy(self, name: str, folder: Path) -> Path:
        return Path(shutil.copytree(self.folder / name, folder / name))

    def begin(self, spark: SparkSession, name: str, checkpoint: Path) -> None:
        """Let a query begin a batch that its sink refuses."""

        def refuse(batch: DataFrame, number: int) -> None:
            raise ValueError("the sink is full")

        with pytest.raises(StreamingQueryException, match="the sink is full"):
            self.start(spark, name, checkpoint, refuse).processAllAvailable()

    def start(
        self, spark: SparkSession, name: str, checkpoint: Path, write: Callable[[DataFrame, int], None]
    ) -> StreamingQuery:
        rows = QUERIES[name].plan(spark.readStream.schema(SCHEMA).json(str(self.inbox.folder)))
        mode = "append" if name in ("joined", "stateless") else "update"
        writer = rows.writeStream.outputMode(mode).option("checkpointLocation", str(checkpoint))
        return writer.foreachBatch(write).start()


@pytest.fixture(scope="module")
def made(jvm: Driver, tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("made")
    found = Made(jvm, Inbox(folder / "in"), folder)
    with jvm.session({"spark.sql.shuffle.partitions": str(PARTITIONS)}) as spark:
        for _ in range(2):
            found.inbox.put(rows=40)
            for name, query in QUERIES.items():
                found.run(spark, name, folder / name, query.conf)
    return found


def checkpoint(folder: Path, *arguments: str | Path, expect: int = 0) -> subprocess.CompletedProcess[str]:
    """Run the command in an empty folder; it leaves nothing there, nor in folders for temporary files."""
    here, temporary, local = (folder / name for name in ("here", "tmp", "local"))
    for one in (here, temporary):
        one.mkdir(exist_ok=True)
    options = f"{SMALL_JVM} {of_drivers()}"
    small = ["--conf", f"spark.driver.extraJavaOptions={options}", "--conf", "spark.driver.memory=1g"]
    result = subprocess.run(
        [COMMAND, "checkpoint", *map(str, arguments), "--master", "local[2]", *small],
        env={**isolated_environment(folder / "conf", local), "TMPDIR": str(temporary)},
        cwd=here,
        capture_output=True,
        text=True,
        timeout=COMMAND_S,
        check=False,
    )
    assert result.returncode == expect, result.stdout + result.stderr
    assert [path for one in (here, temporary, local) for path in one.rglob("*") if path.is_file()] == []
    return result


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_inspect_counts_rows_and_bytes(made: Made, tmp_path: Path) -> None:
    before = contents(made.folder / "totals_in_format_2")
    found = json.loads(checkpoint(tmp_path, "inspect", made.folder / "totals_in_format_2", "--json").stdout)
    assert (found["lastCommittedBatch"], found["startedBatch"]) == (1, None)
    assert (found["provider"], found["format"], found["partitions"]) == ("rocksdb", 2, PARTITIONS)
    assert found["writtenBy"].startswith(f"Spark {'.'.join(map(str, SPARK_MINOR))}")
    (operator,) = found["operators"]
    (store,) = operator["stores"]
    assert (operator["name"], operator["keyed"], store["name"]) == ("stateStoreSave", True, "default")
    assert store["rows"] == found["rows"] == 7
    # A key is an int and a value two longs, each after a word that tells which are null.
    assert store["bytes"] == 7 * (16 + 24)
    assert sum(part["rows"] for part in store["partitions"]) == 7
    assert len(store["partitions"]) == PARTITIONS
    assert all(change["possible"] for change in found["changes"].values())
    assert contents(made.folder / "totals_in_format_2") == before


def test_inspect_shows_each_store_and_a_picture(made: Made, tmp_path: Path) -> None:
    lines = checkpoint(tmp_path, "inspect", made.folder / "joined").stdout.splitlines()
    assert lines[0] == f"file:{made.folder / 'joined'}"
    assert sum("keyToNumValues" in line and " rows " in line for line in lines) == 2
    assert any("HDFS-backed files, format 1" in line for line in lines)
    assert sum("█" in line for line in lines) >= PARTITIONS - 1
    assert "times the bytes of the median" in lines[-1]


def test_what_cannot_be_changed_is_refused_and_left_alone(made: Made, tmp_path: Path) -> None:
    for name, arguments, said in (
        ("stateless", ("repartition", "8"), "its query has no state"),
        ("without_keys", ("repartition", "8"), "has no keys, as in groupBy().count() or limit"),
        ("totals", ("repartition", str(PARTITIONS)), f"already in {PARTITIONS} partitions"),
        ("in", ("repartition", "8"), "is no checkpoint: its folder offsets has no entry"),
    ):
        before = contents(made.folder / name)
        command, *rest = arguments
        result = checkpoint(tmp_path, command, made.folder / name, *rest, expect=1)
        assert said in result.stderr
        assert result.stderr.startswith("Error: ")
        assert len(result.stderr.splitlines()) == 1
        assert contents(made.folder / name) == before


def test_a_query_goes_on_from_its_changed_checkpoint(made: Made, tmp_path: Path) -> None:
    """Its results are those that it would have had anyway; plain Spark needs what the command says."""
    changes: dict[str, tuple[str, tuple[str, ...], dict[str, str]]] = {
        "totals": ("repartition", ("3",), {}),
        "totals_in_rocksdb": ("repartition", ("8",), {}),
        "totals_in_format_2": ("convert", ("--to", "hdfs", "--format", "1"), {}),
        "joined": ("convert", ("--to", "rocksdb", "--partitions", "3"), {FORMAT: "2"}),
    }
    before = contents(made.folder / "joined")
    dry = checkpoint(tmp_path, "convert", made.folder / "joined", "--to", "rocksdb", "--dry-run")
    assert dry.stdout.startswith(f"would change {PARTITIONS} partitions in HDFS-backed files, format 1 to")
    assert contents(made.folder / "joined") == before
    for name, (command, arguments, conf) in changes.items():
        path = made.copy(name, tmp_path)
        result = checkpoint(tmp_path, command, path, *arguments)
        done, after, *ends = result.stdout.splitlines()
        assert done.startswith(f"changed {PARTITIONS} partitions in ")
        if name != "joined":
            assert "as batch 2: 7 rows, 280 B, all the same afterwards, in " in done
        assert (f"set {FORMAT}=2" in after) == bool(conf)
        assert ["--file-sink FOLDER" in end for end in ends] == [True, False]
        assert f"`spark-elastic checkpoint forget file:{path}` deletes it" in ends[1]
    made.inbox.put(rows=40)
    with made.jvm.session({"spark.sql.shuffle.partitions": "200"}) as spark:
        for name, (_, _, conf) in changes.items():
            as_ever = made.run(spark, name, made.folder / name, QUERIES[name].conf)
            now = made.run(spark, name, tmp_path / name, conf)
            assert as_ever
            assert Counter(map(tuple, now)) == Counter(map(tuple, as_ever))


def test_a_batch_that_has_begun_is_run_with_its_number(made: Made, tmp_path: Path) -> None:
    path = made.copy("totals", tmp_path)
    made.inbox.put(rows=40)
    with made.jvm.session({}) as spark:
        made.begin(spark, "totals", path)
    begun = max(int(file.name) for file in (path / "offsets").iterdir() if file.name.isdigit())
    before = Path(shutil.copytree(path, tmp_path / "before"))
    done = checkpoint(tmp_path, "convert", path, "--to", "rocksdb", "--partitions", "3").stdout
    assert f"to 3 partitions in RocksDB, format 2 in batch {begun - 1}: 7 rows, 280 B, all the same" in done
    with made.jvm.session({FORMAT: "2"}) as spark:
        now = made.run(spark, "totals", path, {})
        assert (path / "commits" / str(begun)).exists()
        spark.conf.unset(FORMAT)
        assert sorted(now) == sorted(made.run(spark, "totals", before, {}))


class Written:
    """A query that writes what it has not read before with Spark's file sink."""

    def __init__(self, folder: Path) -> None:
        self.inbox = Inbox(folder / "new")
        self.checkpoint, self.output = folder / "checkpoint", folder / "output"

    def run(self, jvm: Driver, batches: int) -> None:
        """Run it in plain Spark; it has then written each row once."""
        with jvm.session({"spark.sql.shuffle.partitions": str(PARTITIONS)}) as spark:
            rows = spark.readStream.schema(SCHEMA).json(str(self.inbox.folder)).dropDuplicates(["value"])
            writer = rows.writeStream.format("json").option("checkpointLocation", str(self.checkpoint))
            query = writer.start(str(self.output))
            for _ in range(batches):
                self.inbox.put()
                query.processAllAvailable()
            query.stop()
            found = spark.read.schema(SCHEMA).json(str(self.output)).collect()
        assert sorted(row.value for row in found) == self.inbox.values()


def test_a_change_is_taken_back_also_in_the_log_of_a_file_sink(jvm: Driver, tmp_path: Path) -> None:
    query = Written(tmp_path)
    query.run(jvm, 2)
    place, sink = query.checkpoint, ("--file-sink", str(query.output))
    logs = {
        name: contents(tmp_path / name) for name in ("checkpoint/offsets", "checkpoint/commits", "output")
    }
    checkpoint(tmp_path, "repartition", place, str(PARTITIONS + 2), *sink)
    back = checkpoint(tmp_path, "undo", place, *sink, "--yes").stdout
    assert back.startswith(
        f"went back to batch 1, {PARTITIONS} partitions in HDFS-backed files, format 1: 20 rows"
    )
    assert {name: contents(tmp_path / name) for name in logs} == logs
    folders = {path.name for path in (place / "state" / "0").iterdir()}
    assert folders - {"_metadata"} == set(map(str, range(PARTITIONS)))
    query.run(jvm, 1)
    checkpoint(tmp_path, "convert", place, "--to", "rocksdb", "--format", "1", *sink)
    query.run(jvm, 10)  # Spark compacts the log at each tenth batch
    kept = [path for path in place.rglob("*.delta") if ".crc" not in path.name]
    assert kept
    said = checkpoint(tmp_path, "forget", place).stdout
    assert (
        said == f"deleted what was kept of batch 2, {PARTITIONS} partitions in HDFS-backed files, format 1\n"
    )
    assert list(place.rglob("*.delta")) == []
    query.run(jvm, 1)
