"""Tests that no thread of ours ends silently: an error is logged once, and the thread continues or is off."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from integration.jdk_tools import compile_java
from integration.streaming.bare_jvm import bare_jvm
from integration.streaming.driver import Driver, driver, is_in, policies_of
from integration.streaming.files import Inbox
from integration.streaming.launch import WITH_PLUGIN
from integration.streaming.native_threads import LARGE_STACKS, no_thread_more
from integration.streaming.stand_ins import program
from integration.streaming.test_savepoints import Asking, session
from integration.streaming.test_savepoints import start as start_with
from integration.streaming.waiting import eventually
from integration.streaming.world import Totals, World, own_world, totals
from spark_elastic import __version__

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

NO_MEMORY = "java.lang.OutOfMemoryError: as if none were left"
NO_THREAD = "java.lang.OutOfMemoryError: unable to create native thread"


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile the classes that fail."""
    folder = tmp_path_factory.mktemp("classes")
    for name in ("Failing.java", "ScarceStorage.java"):
        compile_java(Path(__file__).parent / name, folder)
    return folder


@pytest.fixture(scope="module")
def jvm(tmp_path_factory: pytest.TempPathFactory, classes: Path) -> Iterator[Driver]:
    folder = tmp_path_factory.mktemp("jvm") / "driver"
    with driver(folder, [classes], options=LARGE_STACKS) as started:
        yield started


class Said:
    """The log's lines about us from this moment on."""

    def __init__(self, jvm: Driver) -> None:
        self._jvm = jvm
        self._since = len(jvm.said())

    def lines(self, pattern: str) -> list[str]:
        """Return our warnings and errors with this text."""
        ours = re.compile(rf" (WARN|ERROR) .*spark-elastic: .*{pattern}")
        return [line for line in self._jvm.said()[self._since :] if ours.search(line)]


def test_a_part_of_a_tick_that_fails_is_said_and_keeps_no_other_from_its_turn(
    jvm: Driver, tmp_path: Path
) -> None:
    said = Said(jvm)
    with own_world(jvm, tmp_path) as world:
        context: Any = world.spark._jsparkSession.sparkContext()
        real = context.taskScheduler()
        replace = getattr(context, "taskScheduler_$eq")
        eventually(lambda: world.policy.all("Snapshot"), "the policy is there")
        for times in (1, 2):
            ended = len(world.policy.all("BatchStages"))
            replace(jvm.jvm.Failing.scheduler(real))
            lines = eventually(lambda n=times: said.lines(NO_MEMORY)[n - 1 :], "it is said")  # type: ignore[misc]
            assert "the look for decommissioned executors failed, retrying" in lines[0]
            world.spark.range(0, 10, 1, 2).repartition(2).count()
            eventually(lambda n=ended: len(world.policy.all("BatchStages")) > n, "stages are told of")  # type: ignore[misc]
            assert len(said.lines(NO_MEMORY)) == times
            replace(real)
            # Two turns later it has worked again.
            for _ in range(2):
                wait_for_ticks(world)
    assert len(said.lines("")) == 2


def wait_for_ticks(world: World) -> None:
    """Wait until the ticker has had a turn: it reports a new batch stage once a second."""
    ended = len(world.policy.all("BatchStages"))
    world.spark.range(0, 10, 1, 2).repartition(2).count()
    eventually(lambda: len(world.policy.all("BatchStages")) > ended, "stages are told of")


def test_a_call_of_the_cluster_manager_that_fails_has_an_outcome_and_so_has_the_next(
    jvm: Driver, tmp_path: Path
) -> None:
    said = Said(jvm)
    with own_world(jvm, tmp_path) as world:
        context: Any = world.spark._jsparkSession.sparkContext()
        real = context.schedulerBackend()
        eventually(lambda: world.policy.all("Snapshot"), "the policy is there")
        jvm.jvm.Failing.use(context, jvm.jvm.Failing.backend(real))
        world.policy.order(executors=3)
        failed = eventually(lambda: world.policy.all("ActionFailed"), "an outcome")
        assert failed[0]["error"] == NO_MEMORY
        (line,) = eventually(lambda: said.lines(""), "it is said")
        assert "thread elastic-executors ended" in line
        jvm.jvm.Failing.use(context, real)
        world.policy.order(executors=4)
        failed = eventually(lambda: world.policy.all("ActionFailed")[1:], "another outcome")
        assert "can neither request nor release executors" in failed[0]["error"]


def wait_for_threads_of_before(jvm: Driver) -> None:
    """Wait until Netty's threads of earlier contexts have ended: each would make room for one more."""
    netty = ("rpc-server-", "rpc-client-", "shuffle-server-", "shuffle-client-", "files-client-")
    eventually(lambda: not any(name.startswith(netty) for name in jvm.threads()), "they have ended")


def outcomes_without_a_thread(jvm: Driver, folder: Path) -> tuple[str, str]:
    """Return the outcome of an order that there was no thread for, and that of the next one."""
    with own_world(jvm, folder) as world:
        eventually(lambda: world.policy.all("Snapshot"), "the policy is there")
        with no_thread_more(jvm.jvm):
            world.policy.order(executors=3)
            eventually(lambda: world.policy.all("ActionFailed"), "an outcome")
        world.policy.order(executors=4)
        eventually(lambda: len(world.policy.all("ActionFailed")) > 1, "another outcome")
        first, second = world.policy.all("ActionFailed")
    return first["error"], second["error"]


def test_an_order_that_there_is_no_thread_for_has_an_outcome(
    jvm: Driver, tmp_path_factory: pytest.TempPathFactory
) -> None:
    wait_for_threads_of_before(jvm)

    def first_failed() -> str:
        """Try once: an idle thread of Spark that ends in that moment makes room for the one of the order."""
        first, second = outcomes_without_a_thread(jvm, tmp_path_factory.mktemp("world"))
        assert "can neither request nor release executors" in second
        return first if "can neither request" not in first else ""

    first = eventually(first_failed, "no thread was left")
    assert first.startswith("unable to create native thread")


def test_a_savepoint_whose_copying_fails_has_an_outcome_and_so_has_the_next(
    jvm: Driver, inbox: Inbox, tmp_path: Path
) -> None:
    asking = Asking(jvm, tmp_path / "asking")
    said = Said(jvm)
    with session(jvm, asking, **{"spark.hadoop.fs.scarce.impl": "ScarceStorage"}) as spark:
        query = start_with(spark, inbox, Totals(), Path(f"scarce://{tmp_path / 'checkpoint'}"))
        inbox.put(2)
        query.processAllAvailable()
        for times in (1, 2):
            asking.savepoint(query, str(tmp_path / "savepoints"))
            asking.said(re.compile("Savepoint failed: it could not be copied, the driver's log says why"))
            eventually(
                lambda n=times: len(said.lines("query totals: could not copy a savepoint")) == n,  # type: ignore[misc]
                "it is said",
            )
        eventually(lambda: not is_in(jvm.jvm, "ScarceStorage.open"), "nobody copies any more")
        eventually(lambda: not list((tmp_path / "savepoints").glob("*")), "nothing is left of it")
        inbox.put()
        query.processAllAvailable()
        assert query.exception() is None
        query.stop()
    assert NO_MEMORY in "\n".join(jvm.said())


def test_without_a_thread_to_keep_the_policy_process_the_application_is_one_of_plain_spark(
    jvm: Driver, inbox: Inbox
) -> None:
    said, sink = Said(jvm), Totals()
    # Parts of Spark itself that got no thread do not answer at its stop.
    with jvm.session({**WITH_PLUGIN, "spark.rpc.askTimeout": "5s"}) as spark:
        inbox.put()
        rows = totals(spark, inbox)
        query = rows.writeStream.outputMode("update").foreachBatch(sink).start()
        query.processAllAvailable()
        eventually(lambda: policies_of(jvm.pid), "there is a policy process")

        def killed() -> list[str]:
            """Kill the current policy process, and leave no room for the threads of the next one."""
            for process in policies_of(jvm.pid):
                process.kill()
            fill()
            return said.lines("off, the application continues")

        with no_thread_more(jvm.jvm) as fill:
            (line,) = eventually(killed, "it is said")
        assert f"continues as plain Spark: the policy process is no longer supervised: {NO_THREAD}" in line
        eventually(lambda: not policies_of(jvm.pid), "no policy process is left")
        inbox.put()
        query.processAllAvailable()
        assert sink.now == inbox.totals()
        spark.conf.set("spark.sql.shuffle.partitions", "2")  # no policy chooses a number any more
        other = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 20).load()
        later = other.groupBy((F.col("value") % 3).alias("key")).count().writeStream.format("noop")
        second = later.outputMode("update").start()
        eventually(lambda: second.lastProgress is not None, "a query that starts later runs")
        assert spark.range(0, 100, 1, 3).repartition(5).count() == 100
        for started in (query, second):
            assert started.exception() is None
            started.stop()
    assert [found for found in said.lines("") if "restarting the policy process" not in found] == [line]


def test_a_start_that_there_is_no_thread_for_fails_and_the_next_one_does_not(
    jvm: Driver, inbox: Inbox, tmp_path: Path
) -> None:
    sink = Totals()
    wait_for_threads_of_before(jvm)
    with jvm.session({**WITH_PLUGIN, "spark.rpc.askTimeout": "5s"}) as spark:
        eventually(lambda: policies_of(jvm.pid), "there is a policy process")
        inbox.put()
        writer = totals(spark, inbox).writeStream.outputMode("update").foreachBatch(sink)
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
        with no_thread_more(jvm.jvm), pytest.raises(Exception, match="unable to create native thread"):
            writer.start()
        assert spark.streams.active == []
        query = writer.start()
        query.processAllAvailable()
        assert sink.now == inbox.totals()
        query.stop()
        assert not query.isActive


def test_who_asks_a_policy_process_that_nobody_keeps_hears_so_at_once(classes: Path, tmp_path: Path) -> None:
    # The first process cannot run, so the keeper reports that when the next one runs: that is where it fails.
    tried = shlex.quote(str(tmp_path / "tried"))
    once = f"[ -e {tried} ] || {{ touch {tried}; exit 5; }}"
    begin = ["/bin/sh", "-c", f'{once}; exec "$0" "$@"', sys.executable]
    python = program(tmp_path / "python", begin, pass_arguments=True)
    with bare_jvm(class_path=[classes]) as jvm:
        shim = jvm.org.apache.spark.elastic
        requests = shim.Requests()
        gateway = shim.PolicyGateway(
            shim.EventStream(), requests, shim.PolicyMetrics(), __version__, None, None
        )
        gateway.start()
        ends = jvm.java.util.concurrent.LinkedBlockingQueue()
        off, on = jvm.Failing.adding(ends), jvm.Failing.untilItBreaks()
        process = shim.PolicyProcess(python, gateway, __version__, 100, off, on)
        process.start()
        try:
            eventually(requests.isServed, "the policy process answers requests")
            assert ends.poll().startswith("the policy process cannot run")
            jvm.Failing.breakDown()
            eventually(lambda: ends.size() == 1, "the keeper has ended")
            assert ends.peek() == f"the policy process is no longer supervised: {NO_MEMORY}"
            eventually(lambda: not requests.isServed(), "nobody waits for an answer")
            pid = jvm.java.lang.ProcessHandle.current().pid()
            eventually(lambda: not policies_of(pid), "the policy process has ended")
        finally:
            process.stop()
            gateway.shutdown()
