"""Tests of savepoints of running queries: taken, stopped with, started from; failures change nothing."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from integration.spark_minor import MOVES_STATE
from integration.streaming.driver import PLUGIN, Driver
from integration.streaming.files import SCHEMA, Inbox
from integration.streaming.stand_ins import Requests
from integration.streaming.state_store import FORMAT_1
from integration.streaming.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
PROVIDERS = {"rocksdb": {}, "hdfs": {"spark.sql.streaming.stateStore.providerClass": HDFS}}
COMPLETE = re.compile(r"Savepoint of micro-batch (\d+) complete: (\S+)")


class Asking:
    """Requests savepoints from the policy, and reads the driver's log about them."""

    def __init__(self, jvm: Driver, folder: Path) -> None:
        self._jvm = jvm
        self._requests = Requests(folder)
        self._seen = len(jvm.said())
        self.python = self._requests.python

    def savepoint(self, query: StreamingQuery, target: str, *, stop: bool = False, **more: str) -> None:
        self._seen = len(self._jvm.said())
        fields = {"query": query.id, "by": "a test", "target": target, "stop": stop, **more}
        self._requests.ask("SavepointRequested", **fields)

    def said(self, pattern: re.Pattern[str]) -> re.Match[str]:
        """Wait for a line of the log since the last request."""

        def look() -> list[re.Match[str]]:
            return [found for line in self._jvm.said()[self._seen :] if (found := pattern.search(line))]

        return eventually(look, pattern.pattern)[0]

    def taken(self) -> tuple[int, str]:
        found = self.said(COMPLETE)
        return int(found[1]), found[2]


@pytest.fixture
def asking(jvm: Driver, tmp_path: Path) -> Asking:
    return Asking(jvm, tmp_path / "asking")


@contextmanager
def session(jvm: Driver, asking: Asking, **more: str) -> Iterator[SparkSession]:
    with jvm.session({**PLUGIN, "spark.elastic.python": asking.python, **more}) as spark:
        yield spark


class Totals:
    """The newest totals of each key."""

    def __init__(self) -> None:
        self.now: dict[int, tuple[int, int]] = {}
        self.batches: list[int] = []

    def __call__(self, batch: DataFrame, number: int) -> None:
        self.now = {row.key: (row.n, row.total) for row in batch.collect()}
        self.batches.append(number)


def start(
    spark: SparkSession, inbox: Inbox, sink: Any, checkpoint: Path, name: str = "totals"
) -> StreamingQuery:
    rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(inbox.folder))
    totals = rows.groupBy("key").agg(F.count("*").alias("n"), F.sum("value").alias("total"))
    writer = totals.writeStream.outputMode("complete").foreachBatch(sink).queryName(name)
    return writer.option("checkpointLocation", str(checkpoint)).start()


def starting_from(savepoint: str, name: str = "totals") -> dict[str, str]:
    return {f"spark.elastic.query.{name}.savepoint": savepoint}


def savepoints(folder: Path) -> list[str]:
    """Return the content of a folder, including hidden files."""
    return sorted(os.listdir(folder)) if folder.is_dir() else []


@pytest.mark.parametrize("provider", PROVIDERS)
def test_it_is_taken_while_the_query_goes_on_and_another_one_starts_from_it(
    jvm: Driver, asking: Asking, inbox: Inbox, tmp_path: Path, provider: str
) -> None:
    target = tmp_path / "savepoints"
    with session(jvm, asking, **PROVIDERS[provider]) as spark:
        query = start(spark, inbox, Totals(), tmp_path / "checkpoint")
        inbox.put(12)
        query.processAllAvailable()
        asking.savepoint(query, str(target))
        inbox.put(5)
        batch, path = asking.taken()
        query.processAllAvailable()
        assert query.isActive
        first = query.id
        query.stop()
    assert path.startswith("file:")
    assert savepoints(target) == [Path(path).name]
    assert 11 <= batch <= 16
    again = Totals()
    with session(jvm, asking, **PROVIDERS[provider], **starting_from(path)) as spark:
        query = start(spark, inbox, again, tmp_path / "other")
        query.processAllAvailable()
        assert again.now == inbox.totals()
        assert query.id != first
        assert again.batches[0] == batch + 1
        inbox.put(2)
        query.processAllAvailable()
        assert again.now == inbox.totals()
        query.stop()
    # The setting stays when the application is started again, although there is a checkpoint now.
    with session(jvm, asking, **PROVIDERS[provider], **starting_from(path)) as spark:
        inbox.put(1)
        query = start(spark, inbox, again, tmp_path / "other")
        query.processAllAvailable()
        assert again.now == inbox.totals()
        assert len(again.batches) == len(set(again.batches))
        query.stop()
    assert any(re.search(r"resuming its checkpoint, savepoint \S+ not used", line) for line in jvm.said())


@pytest.mark.skipif(not MOVES_STATE, reason="this Spark cannot rewrite state")
@pytest.mark.parametrize(
    ("conf", "format_", "elsewhere"),
    [
        pytest.param({}, "hdfs", {}, id="as plain Spark has it"),
        pytest.param(PROVIDERS["hdfs"], "rocksdb-2", {FORMAT: "2"}, id="as new queries have it"),
        pytest.param({}, "rocksdb-1", {}, id="RocksDB as older Sparks have it"),
        pytest.param(FORMAT_1, "hdfs", {}, id="back from there", marks=pytest.mark.slow),
    ],
)
def test_its_state_can_have_another_format_which_plain_spark_reads(
    jvm: Driver,
    asking: Asking,
    inbox: Inbox,
    tmp_path: Path,
    conf: dict[str, str],
    format_: str,
    elsewhere: dict[str, str],
) -> None:
    totals, checkpoint = Totals(), tmp_path / "checkpoint"
    with session(jvm, asking, **conf) as spark:
        query = start(spark, inbox, totals, checkpoint)
        inbox.put(12)
        query.processAllAvailable()
        asking.savepoint(query, str(tmp_path / "savepoints"), format=format_)
        inbox.put(2)
        batch, path = asking.taken()
        query.processAllAvailable()
        assert totals.now == inbox.totals()
        query.stop()
    checkpoint.rename(tmp_path / "not there any more")
    taken = Path(path.removeprefix("file:"))
    assert not [name for name in savepoints(taken) if "rewrite" in name or "original" in name]
    suffixes = {file.suffix for file in taken.glob("state/0/[0-9]/[0-9]*")} - {".crc"}
    assert suffixes == {".snapshot" if format_ == "hdfs" else ".zip"}
    again = Totals()
    with jvm.session(elsewhere) as spark:
        inbox.put(1)
        query = start(spark, inbox, again, taken)
        query.processAllAvailable()
        progress = query.lastProgress
        query.stop()
    assert progress is not None
    assert again.now == inbox.totals()
    # The batch after the savepoint's last one is that in which the state got its format.
    assert again.batches[0] == batch + 2
    assert ("rocksdbPutCount" in progress["stateOperators"][0]["customMetrics"]) == (format_ != "hdfs")


@pytest.mark.skipif(not MOVES_STATE, reason="this Spark cannot rewrite state")
def test_a_format_that_is_impossible_is_refused_with_the_reason(
    jvm: Driver, asking: Asking, inbox: Inbox, tmp_path: Path
) -> None:
    target = tmp_path / "savepoints"
    with session(jvm, asking, **{"spark.sql.streaming.join.stateFormatVersion": "3"}) as spark:
        left, right = (spark.readStream.schema(SCHEMA).json(str(inbox.folder)) for _ in range(2))
        writer = left.join(right, "key").writeStream.format("noop")
        query = writer.queryName("pairs").option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        inbox.put(2)
        query.processAllAvailable()
        asking.savepoint(query, str(target), format="hdfs")
        found = asking.said(re.compile("Savepoint failed: (.*)"))
        assert "its format cannot be hdfs, its state cannot be rewritten: " in found[1]
        assert "symmetricHashJoin keeps several kinds of state, which only RocksDB can" in found[1]
        assert savepoints(target) == []
        asking.savepoint(query, str(target))
        asking.taken()
        query.stop()


def test_a_query_ends_with_its_savepoint(jvm: Driver, asking: Asking, inbox: Inbox, tmp_path: Path) -> None:
    # Any file system that Hadoop knows works: this one has another scheme than the checkpoint's.
    (tmp_path / "there").mkdir()
    mounted = {"spark.hadoop.fs.viewfs.mounttable.far.link./away": (tmp_path / "there").as_uri()}
    totals = Totals()
    with session(jvm, asking, **mounted) as spark:
        query = start(spark, inbox, totals, tmp_path / "checkpoint")
        inbox.put(3)
        query.processAllAvailable()
        inbox.put(3)
        asking.savepoint(query, "viewfs://far/away", stop=True)
        query.awaitTermination()
        assert query.exception() is None
        assert not query.isActive
        batch, path = asking.taken()
        assert batch == totals.batches[-1]
        asking.said(re.compile(re.escape(f"Stopped with savepoint {path}")))
    assert path.startswith("viewfs://far/away/savepoint-")
    assert savepoints(tmp_path / "there") == [Path(path).name]
    again = Totals()
    with session(jvm, asking, **mounted, **starting_from(path)) as spark:
        query = start(spark, inbox, again, tmp_path / "other")
        inbox.put(1)
        query.processAllAvailable()
        assert again.now == inbox.totals()
        query.stop()


@pytest.mark.parametrize("stop", [False, True], ids=["continues", "was to stop"])
def test_a_copy_that_fails_leaves_the_query_running_and_nothing_behind(
    jvm: Driver, asking: Asking, inbox: Inbox, tmp_path: Path, stop: bool
) -> None:
    target = tmp_path / "savepoints"
    target.write_text("a file, where a folder should be")
    totals = Totals()
    with session(jvm, asking) as spark:
        query = start(spark, inbox, totals, tmp_path / "checkpoint")
        inbox.put(2)
        query.processAllAvailable()
        asking.savepoint(query, str(target), stop=stop)
        asking.said(re.compile("Savepoint failed: it could not be copied, the driver's log says why"))
        inbox.put(2)
        query.processAllAvailable()
        assert query.isActive
        assert totals.now == inbox.totals()
        query.stop()
    assert target.is_file()


def test_a_link_does_not_lead_a_savepoint_out_of_where_it_may_be(
    jvm: Driver, asking: Asking, inbox: Inbox, tmp_path: Path
) -> None:
    allowed, outside = tmp_path / "allowed", tmp_path / "outside"
    allowed.mkdir()
    outside.mkdir()
    (allowed / "away").symlink_to(outside)
    (allowed / "nowhere").symlink_to(tmp_path / "not there")
    (tmp_path / "mounted").symlink_to(allowed)
    with session(jvm, asking) as spark:
        query = start(spark, inbox, Totals(), tmp_path / "checkpoint")
        inbox.put(2)
        query.processAllAvailable()
        for target in (allowed / "away", allowed / "away" / "deeper"):
            asking.savepoint(query, target.as_uri(), within=allowed.as_uri())
            asking.said(re.compile("Savepoint failed: a link leads out of file:"))
        asking.savepoint(query, str(allowed / "nowhere" / "deeper"), within=str(allowed))
        asking.said(re.compile("Savepoint failed: it could not be copied, the driver's log says why"))
        assert list(outside.iterdir()) == []
        # The configured folder may be a link itself.
        mounted = tmp_path / "mounted"
        asking.savepoint(query, str(mounted / "daily"), within=str(mounted))
        _, path = asking.taken()
        assert savepoints(allowed / "daily") == [Path(path).name]
        query.stop()


def test_the_oldest_ones_of_the_query_are_removed_and_what_was_cut_short(
    jvm: Driver, asking: Asking, inbox: Inbox, tmp_path: Path
) -> None:
    folder = tmp_path / "savepoints"
    stays = ["savepoint-1-1f2b10aa", "savepoint-mine", "a savepoint-2-1f2b10aa", ".savepoint-2-00000002.part"]
    for name in stays:
        (folder / name / "offsets").mkdir(parents=True)
    conf = {"spark.elastic.savepointDir": folder.as_uri(), "spark.elastic.savepoint.keep": "2"}
    with session(jvm, asking, **conf) as spark:
        queries = [start(spark, inbox, Totals(), tmp_path / name, name) for name in ("totals", "others")]
        # The older ones have the highest numbers, since the query later started from an older savepoint. The
        # second one has the mark of an older version of ours, without a time.
        for name, mark in (("savepoint-901-00000000", "\n1000"), ("savepoint-900-00000000", "")):
            (folder / name).mkdir()
            (folder / name / ".spark-elastic").write_text(queries[0].id + mark)
            os.utime(folder / name / ".spark-elastic", (2, 2))
        # Drivers were killed while they renamed the first two, and when the third was complete. Another query
        # is still writing the last one.
        for number, query in enumerate((*[queries[0]] * 3, queries[1])):
            note = f"{query.id}\nfile:{tmp_path / ('totals' if query is queries[0] else 'elsewhere')}"
            (folder / f".savepoint-{number}-0000000f.note").write_text(note)
            for name in (f".savepoint-{number}-0000000f.part", f"savepoint-{number}-0000000f"):
                (folder / name / "offsets").mkdir(parents=True)
        shutil.rmtree(folder / ".savepoint-2-0000000f.part")
        (folder / "savepoint-2-0000000f" / ".spark-elastic").write_text(f"{queries[0].id}\n2500")
        stays += [n for n in savepoints(folder) if "3-0000000f" in n]
        taken: list[str] = []
        kept: list[list[str]] = []
        for query in (queries[1], *[queries[0]] * 4):
            inbox.put(1)
            query.processAllAvailable()
            asking.savepoint(query, folder.as_uri())
            taken.append(Path(asking.taken()[1]).name)
            if len(taken) == 2:
                # The savepoint with only its note left is the newest of the older ones.
                kept.append(sorted([*stays, *taken, "savepoint-2-0000000f"]))
                eventually(lambda: savepoints(folder) == kept[0], "two of the query, and what is another's")
        last = sorted([*stays, taken[0], *taken[-2:]])
        eventually(lambda: savepoints(folder) == last, "two of the query, and all that is not its own")
        # A savepoint in another folder removes nothing.
        asking.savepoint(queries[0], str(tmp_path / "elsewhere"))
        asking.taken()
        assert savepoints(folder) == last
        for query in queries:
            query.stop()
    with session(jvm, asking, **starting_from((folder / taken[-1]).as_uri())) as spark:
        again = Totals()
        inbox.put(1)
        query = start(spark, inbox, again, tmp_path / "again")
        query.processAllAvailable()
        assert again.now == inbox.totals()
        query.stop()
    assert not (tmp_path / "again" / ".spark-elastic").exists()


def test_a_batch_that_is_not_kept_until_the_end_makes_no_savepoint(
    jvm: Driver, asking: Asking, inbox: Inbox, tmp_path: Path
) -> None:
    target = tmp_path / "savepoints"
    checkpoint = tmp_path / "checkpoint"
    with session(jvm, asking, **{"spark.sql.streaming.minBatchesToRetain": "1"}) as spark:
        query = start(spark, inbox, Totals(), checkpoint)
        inbox.put(2)
        query.processAllAvailable()
        # Copying this file ends only after a writer has opened and closed it.
        slow = checkpoint / "slow"
        os.mkfifo(slow)
        asking.savepoint(query, str(target))
        with slow.open("wb"):
            inbox.put(3)
            query.processAllAvailable()
        found = asking.said(re.compile("Savepoint failed: (.*)"))
        assert "raise spark.sql.streaming.minBatchesToRetain, now 1" in found[1]
        assert savepoints(target) == []
        query.stop()
