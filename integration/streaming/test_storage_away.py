"""Tests of a checkpoint or an input that is unreachable for a while: its query continues where possible."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from integration.jdk_tools import compile_java
from integration.streaming.driver import PLUGIN, Driver, driver, is_in
from integration.streaming.files import SCHEMA, Inbox
from integration.streaming.stand_ins import ScriptedPolicy
from integration.streaming.test_failures import Flaky, session
from integration.streaming.test_failures import start as start_with
from integration.streaming.waiting import eventually
from integration.streaming.world import Totals, World, own_world, stream
from spark_elastic.core.failures.poison import MOST_TRIES

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

# Triggers come at full multiples of their interval since 1970: at midnight UTC, which a test seldom meets.
DAY_S = 24 * 3_600
MINUTE_MS = 60_000
TRIED = re.compile(r"retrying its checkpoint in \d+ ms, for another (\d+) s: ")
STORAGE = {"spark.hadoop.fs.away.impl": "AwayStorage"}
MANY_ATTEMPTS = {"spark.elastic.restartStrategy.fixedDelay.attempts": "1000000"}


class Storage:
    """A place for checkpoints that can be made unreachable."""

    def __init__(self, folder: Path) -> None:
        self._away = folder / "away"
        self._tried = folder / "away.tried"
        self._folder = folder

    def place(self, name: str) -> str:
        return f"away://{self._folder / name}"

    def fail_once(self, folder: str) -> None:
        """Let the next access below a folder of this name fail."""
        self.fail_next(f"/{folder}/")

    def fail_next(self, part: str) -> None:
        """Let the next access fail to a path with this text in it."""
        self._tried.unlink(missing_ok=True)
        self._away.write_text(part)

    @contextmanager
    def without(self, part: str) -> Iterator[None]:
        """Let each access fail to a path with this text in it."""
        self._tried.unlink(missing_ok=True)
        within = self._away.with_suffix(".within")
        hidden = within.with_suffix(".new")
        hidden.write_text(part)
        hidden.rename(within)
        try:
            yield
        finally:
            within.unlink()

    def has_failed(self) -> bool:
        return self._tried.exists()

    def folder(self, name: str) -> Path:
        """Return the place's folder on this machine."""
        return self._folder / name

    def slow(self, ms: int, operation: str = "all") -> AbstractContextManager[None]:
        """Delay everything, or one operation, by this many ms."""
        return self._odd(f"{operation} 0 {ms}")

    def failing(self, operation: str) -> AbstractContextManager[None]:
        """Let an operation fail each time."""
        return self._odd(f"{operation} 100 0")

    @contextmanager
    def _odd(self, how: str) -> Iterator[None]:
        odd = self._away.with_suffix(".odd")
        odd.write_text(how)
        try:
            yield
        finally:
            odd.unlink()

    @contextmanager
    def away(self, what: str = "somebody has met the storage") -> Iterator[None]:
        """Take the storage away, and bring it back after a failed access."""
        self._tried.unlink(missing_ok=True)
        self._away.touch()
        try:
            yield
            eventually(self._tried.exists, what)
        finally:
            self._away.unlink()


@pytest.fixture(scope="module")
def jvm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    classes = tmp_path_factory.mktemp("classes")
    compile_java(Path(__file__).parent / "AwayStorage.java", classes)
    with driver(tmp_path_factory.mktemp("jvm") / "driver", [classes]) as started:
        yield started


@pytest.fixture
def storage(jvm: Driver, tmp_path: Path) -> Storage:
    (tmp_path / "storage").mkdir()
    jvm.jvm.java.lang.System.setProperty("away", str(tmp_path / "storage" / "away"))
    for said in ("away.threads", "away.keeps"):
        jvm.jvm.java.lang.System.clearProperty(said)
    return Storage(tmp_path / "storage")


def failures(jvm: Driver, since: int) -> list[str]:
    """Return the log's lines about failed micro-batches."""
    return [line for line in jvm.said()[since:] if "Failed, restarting in" in line]


def start(world: World, inbox: Inbox, sink: Totals, checkpoint: str) -> StreamingQuery:
    rows = stream(world.spark, inbox).groupBy("key")
    totals = rows.agg(F.count("*").alias("n"), F.sum("value").alias("total"))
    writer = totals.writeStream.outputMode("update").foreachBatch(sink).trigger(processingTime="24 hours")
    return writer.option("checkpointLocation", checkpoint).start()


@pytest.mark.slow
def test_a_rescale_is_given_up_where_the_storage_is_away_and_waits_for_it_once_begun(
    jvm: Driver, storage: Storage, inbox: Inbox, tmp_path: Path
) -> None:
    policy, sink, said = ScriptedPolicy(tmp_path / "policy"), Totals(), len(jvm.said())
    conf = {**PLUGIN, **STORAGE, "spark.elastic.python": policy.python}
    with jvm.session(conf) as spark:
        world = World(jvm, spark, policy)
        inbox.put()
        query = start(world, inbox, sink, storage.place("checkpoint"))
        eventually(lambda: policy.seen("QueryProgress", query.id), "its first batch")

        def tried() -> list[int]:
            """Return the seconds left for attempts on its checkpoint, for each attempt."""
            return [int(found[1]) for line in jvm.said()[said:] if (found := TRIED.search(line))]

        # Until its next trigger, at midnight, plain Spark would not access its checkpoint.
        with storage.away("the rescale has met the storage"):
            policy.order(now=1, counts=(3,))
            failed = eventually(lambda: policy.all("ActionFailed"), "the rescale is given up")
        assert "the storage is away" in failed[0]["error"]
        assert not tried(), "nothing was begun"
        with storage.slow(ms=3000, operation="create"):
            policy.order(now=2, counts=(3,))
            eventually(lambda: is_in(jvm.jvm, "AwayStorage.create"), "the next one has begun")
            with storage.away("it has met the storage"):
                left = eventually(tried, "its checkpoint is tried again")
        assert 2 * DAY_S >= left[0] >= DAY_S
        eventually(lambda: policy.all("ActionFailed")[1:] or policy.rescales(query.id), "an outcome")
        assert query.isActive
        assert query.exception() is None
        query.stop()
        inbox.put(1)  # the next micro-batch would come at midnight
        policy.order()
        again = start(world, inbox, sink, storage.place("checkpoint"))
        eventually(lambda: sink.now == inbox.totals(), "what it has read in all")
        assert len(sink.batches) == len(set(sink.batches))
        again.stop()


@pytest.mark.parametrize(
    ("until_trigger", "interval", "patience"),
    [
        (0, 0, 10),
        (-3, 1, 10),
        (2, 8, 10),
        (4, 8, 12),
        (50, 60, 110),
        (0, 60, 60),
        (1 << 46, 1 << 46, 1 << 47),
    ],
)
def test_a_checkpoint_is_tried_for_ten_minutes_or_until_the_trigger_after_the_next(
    jvm: Driver, until_trigger: int, interval: int, patience: int
) -> None:
    rule = jvm.jvm.org.apache.spark.sql.elastic.Boundary.patienceMs
    assert rule(until_trigger * MINUTE_MS, interval * MINUTE_MS) == patience * MINUTE_MS


def test_a_trigger_that_never_comes_is_waited_for(jvm: Driver) -> None:
    longest = (1 << 63) - 1
    assert jvm.jvm.org.apache.spark.sql.elastic.Boundary.patienceMs(longest - 1, longest) == longest


def test_a_query_that_is_stopped_while_its_checkpoint_is_read_leaves_us_hearing_of_the_others(
    jvm: Driver, storage: Storage, inbox: Inbox, tmp_path: Path
) -> None:
    """Spark removes a listener whose thread returns with an interrupt."""
    policy, sink, since = ScriptedPolicy(tmp_path / "policy"), Totals(), len(jvm.said())

    def is_with_us() -> bool:
        return is_in(jvm.jvm, "QueryListener.onQueryStarted")

    with jvm.session({**PLUGIN, **STORAGE, "spark.elastic.python": policy.python}) as spark:
        world = World(jvm, spark, policy)
        inbox.put()
        query = start(world, inbox, sink, storage.place("checkpoint"))
        eventually(lambda: policy.seen("QueryProgress", query.id), "its first batch")
        query.stop()
        with storage.slow(ms=3000), ThreadPoolExecutor(1) as beside:
            starting = beside.submit(start, world, inbox, sink, storage.place("checkpoint"))
            eventually(is_with_us, "the query is about to start")
            (active,) = spark.streams.active
            active.stop()
            assert not starting.result().isActive
        listeners = spark._jsparkSession.streams().listListeners()
        assert "QueryListener" in [listener.getClass().getSimpleName() for listener in listeners]
    assert not [line for line in jvm.said()[since:] if "Removing that listener" in line]


@pytest.mark.parametrize("conf", [{}, PLUGIN], ids=["plain", "plugin"])
def test_who_begins_a_checkpoint_that_somebody_else_has_just_begun_is_refused(
    jvm: Driver, storage: Storage, inbox: Inbox, conf: Mapping[str, str]
) -> None:
    metadata = storage.folder("checkpoint") / "metadata"

    def is_about_to_write() -> bool:
        return is_in(jvm.jvm, "AwayStorage.create")

    with jvm.session({**conf, **STORAGE}) as spark:
        totals = stream(spark, inbox).groupBy("key").count().writeStream.outputMode("update")
        writer = totals.format("noop").option("checkpointLocation", storage.place("checkpoint"))
        with storage.slow(ms=3000, operation="create"), ThreadPoolExecutor(1) as beside:
            starting = beside.submit(writer.start)
            eventually(is_about_to_write, "it has seen that there is no metadata")
            metadata.parent.mkdir(exist_ok=True)
            metadata.write_text(theirs := '{"id":"7c6d2b1e-2f0c-4f7c-9a51-0d3f5b1a9e44"}')
            with pytest.raises(Exception, match="Multiple streaming queries are concurrently using"):
                starting.result()
        assert spark.streams.active == []
        assert metadata.read_text() == theirs


@pytest.mark.parametrize("threads", ["false", "true"], ids=["storage", "threads"])
def test_a_query_with_a_restart_strategy_outlives_the_storage_that_is_away(
    jvm: Driver, storage: Storage, inbox: Inbox, threads: str
) -> None:
    sink = Flaky(failures=0)
    jvm.jvm.java.lang.System.setProperty("away.threads", threads)
    with session(jvm, "fixed-delay", **STORAGE, **MANY_ATTEMPTS) as spark:
        inbox.put(2)
        query = start_with(spark, inbox, sink, checkpointLocation=storage.place("checkpoint"))
        query.processAllAvailable()
        run = query.runId
        with storage.away():
            inbox.put(1)
        query.processAllAvailable()
        assert sink.result() == inbox.totals()
        inbox.put(1)
        query.processAllAvailable()
        assert sink.result() == inbox.totals()
        assert query.runId == run
        query.stop()


def test_a_query_with_a_restart_strategy_outlives_old_logs_that_could_not_be_removed(
    jvm: Driver, storage: Storage, inbox: Inbox
) -> None:
    """Spark removes them outside the stream thread, and such a failure would fail each later micro-batch."""
    sink, since = Flaky(failures=0), len(jvm.said())
    more = {**MANY_ATTEMPTS, "spark.sql.streaming.minBatchesToRetain": "1"}

    with session(jvm, "fixed-delay", **STORAGE, **more) as spark:
        inbox.put(2)
        query = start_with(spark, inbox, sink, checkpointLocation=storage.place("checkpoint"))
        query.processAllAvailable()
        run = query.runId
        with storage.failing("delete"):
            inbox.put(3)
            eventually(lambda: failures(jvm, since), "a micro-batch has failed for it")
        inbox.put(2)
        query.processAllAvailable()
        failed = len(failures(jvm, since))
        inbox.put(2)
        query.processAllAvailable()
        assert len(failures(jvm, since)) == failed, "none fails any more"
        assert sink.result() == inbox.totals()
        assert query.runId == run
        query.stop()


def into_files(rows: DataFrame, out: str) -> DataStreamWriter:
    return rows.writeStream.format("json").option("path", out)


def into_files_of_each_batch(rows: DataFrame, out: str) -> DataStreamWriter:
    return rows.writeStream.foreachBatch(lambda batch, number: batch.write.mode("overwrite").json(out))


@pytest.mark.parametrize(
    ("written", "operation", "fails_in"),
    [
        (into_files, "mkdirs", "Lost task"),
        (into_files, "rename", "ManifestFileCommitProtocol.commitJob"),
        (into_files_of_each_batch, "mkdirs", "py4j.Py4JException"),
    ],
    ids=["task", "driver", "foreachBatch"],
)
def test_storage_that_fails_more_often_than_poison_may_ends_no_query(
    jvm: Driver,
    storage: Storage,
    inbox: Inbox,
    tmp_path: Path,
    written: Callable[[DataFrame, str], DataStreamWriter],
    operation: str,
    fails_in: str,
) -> None:
    out, since = storage.place("out"), len(jvm.said())
    with session(jvm, "fixed-delay", **STORAGE, **MANY_ATTEMPTS) as spark:
        inbox.put(1)
        writer = written(spark.readStream.schema(SCHEMA).json(str(inbox.folder)), out)
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        query.processAllAvailable()
        with storage.failing(operation):
            inbox.put(1)
            eventually(lambda: failures(jvm, since)[MOST_TRIES:], "it has failed that often")
        query.processAllAvailable()
        assert any(fails_in in line for line in jvm.said()[since:])
        assert spark.read.json(out).count() > 0
        assert query.exception() is None
        query.stop()


@pytest.mark.parametrize("plugin", [False, True], ids=["plain", "plugin"])
def test_a_folder_of_input_that_is_away_for_a_while_is_to_a_query_what_it_is_in_plain_spark(
    jvm: Driver, inbox: Inbox, tmp_path: Path, plugin: bool
) -> None:
    sink, aside = Totals(), inbox.folder.with_name("aside")

    def check(spark: SparkSession, world: World | None) -> None:
        inbox.put()
        totalled = (
            stream(spark, inbox).groupBy("key").agg(F.count("*").alias("n"), F.sum("value").alias("total"))
        )
        query = totalled.writeStream.outputMode("update").foreachBatch(sink).start()
        query.processAllAvailable()
        inbox.folder.rename(aside)
        try:
            if world:
                world.policy.order(now=1, counts=(3,))
                eventually(lambda: world.policy.rescales(query.id) == 1, "it is moved meanwhile")
            query.processAllAvailable()  # triggers have met the missing folder
        finally:
            aside.rename(inbox.folder)
        inbox.put()
        query.processAllAvailable()
        assert sink.now == inbox.totals()
        assert query.exception() is None
        query.stop()

    if plugin:
        with own_world(jvm, tmp_path) as world:
            check(world.spark, world)
    else:
        with jvm.session({"spark.sql.shuffle.partitions": "2"}) as spark:
            check(spark, None)


def test_a_source_that_can_be_made_at_the_second_attempt_is_in_a_query_of_plain_spark(
    jvm: Driver, storage: Storage, inbox: Inbox, tmp_path: Path
) -> None:
    """Spark creates the sources again after our attempt has failed, and runs the query without a boundary."""
    sink = Totals()
    with own_world(jvm, tmp_path, **STORAGE) as world:
        inbox.put()
        storage.fail_once("sources")
        query = start(world, inbox, sink, storage.place("checkpoint"))
        eventually(lambda: sink.now == inbox.totals(), "its first batch")
        assert storage.has_failed()
        assert query.exception() is None
        world.policy.order(now=1)
        failed = eventually(lambda: world.policy.all("ActionFailed"), "the rescale is refused")
        assert "is left to plain Spark" in failed[0]["error"]
        query.stop()
