"""Tests that the output is right and nothing of ours is left, whatever happens to the policy process."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from integration.streaming.driver import PLUGIN, Driver, driver, policies_of
from integration.streaming.files import SCHEMA, Inbox
from integration.streaming.http import Client
from integration.streaming.launch import WITH_PLUGIN, submitted
from integration.streaming.stand_ins import held_by, our_script, program
from integration.streaming.waiting import PATIENCE_S, eventually

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

FILES = 6
# By default a start waits for 10 s.
LATE_S = 14.0
MINUTE_MS = 60_000


@pytest.fixture(scope="module")
def jvm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    with driver(tmp_path_factory.mktemp("faults") / "driver") as started:
        # The first context starts threads and ports of Spark's own that stay; only ours are checked.
        with started.session({}):
            pass
        yield started


@pytest.fixture
def inbox(tmp_path: Path) -> Inbox:
    inbox = Inbox(tmp_path / "in")
    inbox.put(FILES)
    return inbox


class Application:
    """A stateless and a stateful query over the same files."""

    def __init__(self, spark: SparkSession, jvm: Driver, inbox: Inbox, folder: Path) -> None:
        self.spark = spark
        self.jvm = jvm
        self.inbox = inbox
        self._folder = folder
        self._queries: list[StreamingQuery] = []

    def start(self) -> None:
        files = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        rows = files.json(str(self.inbox.folder))
        doubled = rows.withColumn("twice", F.col("value") * 2)
        totals = rows.groupBy("key").agg(F.count("*").alias("n"), F.sum("value").alias("total"))
        self._queries = [
            doubled.writeStream.format("parquet")
            .option("checkpointLocation", str(self._folder / "doubled-checkpoint"))
            .start(str(self._folder / "doubled")),
            totals.writeStream.format("memory").queryName("totals").outputMode("complete").start(),
        ]

    def process_all(self) -> None:
        for query in self._queries:
            query.processAllAvailable()

    def stop(self) -> None:
        """Stop the queries: otherwise their threads look for input as long as the JVM lives."""
        for query in self._queries:
            query.stop()

    @property
    def ui(self) -> str:
        """Return the address of Spark's UI."""
        address = self.spark.sparkContext.uiWebUrl
        assert address is not None
        return address

    def gauges(self) -> set[str]:
        """Return the policy's metrics by name, as reported by Spark's own servlet."""
        prefix = f"plugin.{PLUGIN['spark.plugins']}."
        told = Client(self.ui).get("/metrics/json/").json["gauges"]
        return {name.partition(prefix)[2] for name in told if prefix in name}

    def more_input(self) -> None:
        self.inbox.put(FILES)

    def check_output(self) -> None:
        """Compare with batch queries over the same files."""
        files = self.spark.read.schema(SCHEMA).json(str(self.inbox.folder))
        doubled = self.spark.read.parquet(str(self._folder / "doubled"))
        expected = files.withColumn("twice", F.col("value") * 2)
        assert Counter(doubled.collect()) == Counter(expected.collect())
        batch = files.groupBy("key").agg(F.count("*").alias("n"), F.sum("value").alias("total"))
        streamed = self.spark.table("totals").select("key", "n", "total")
        assert Counter(streamed.collect()) == Counter(batch.collect())

    def policy(self) -> psutil.Process:
        """Return the policy process, once there is one."""
        return eventually(lambda: policies_of(self.jvm.pid), "there is a policy process")[0]

    def wait_for_new_policy(self, old: psutil.Process) -> None:
        def new() -> bool:
            return [p.pid for p in policies_of(self.jvm.pid)] not in ([], [old.pid])

        eventually(new, "the policy process is replaced")


@contextmanager
def application(jvm: Driver, inbox: Inbox, folder: Path, conf: Mapping[str, str]) -> Iterator[Application]:
    """Run an application with the plugin; afterwards nothing of ours is left in the running JVM."""
    ports = jvm.ports()
    # Without a policy the application runs with its own count, and Spark's 200 would take minutes.
    settings = {**WITH_PLUGIN, "spark.ui.enabled": "true", "spark.sql.shuffle.partitions": "2", **conf}
    with jvm.session(settings) as spark:
        running = Application(spark, jvm, inbox, folder)
        running.start()
        yield running
        running.check_output()
        running.stop()
    eventually(lambda: not policies_of(jvm.pid), "no process of ours is left")
    eventually(lambda: jvm.ports() <= ports, "no port of ours is left")
    eventually(
        lambda: not [name for name in jvm.threads() if name.startswith("elastic")],
        "no thread of ours is left",
    )


def errors(jvm: Driver, since: int) -> list[str]:
    return [line for line in jvm.said()[since:] if " ERROR " in line]


def test_a_policy_that_is_killed_is_replaced(jvm: Driver, inbox: Inbox, tmp_path: Path) -> None:
    since, held = len(jvm.said()), tmp_path / "held"
    with application(jvm, inbox, tmp_path, {"spark.elastic.python": held_by(held)}) as running:
        for _ in range(2):
            policy = running.policy()
            eventually(lambda: "query_partitions.totals" in running.gauges(), "metrics are told")
            held.touch()  # The next process has no metrics before this file is gone.
            policy.kill()
            eventually(lambda: running.gauges() == {"slots"}, "the dead process' metrics are gone")
            held.unlink()
            running.more_input()
            running.wait_for_new_policy(policy)
        running.process_all()
    assert errors(jvm, since) == []


def test_a_policy_that_hangs_is_replaced(jvm: Driver, inbox: Inbox, tmp_path: Path) -> None:
    since = len(jvm.said())
    with application(jvm, inbox, tmp_path, {}) as running:
        policy = running.policy()
        policy.send_signal(signal.SIGSTOP)
        running.process_all()
        running.more_input()
        running.wait_for_new_policy(policy)
        eventually(lambda: not policy.is_running(), "the one that hangs is gone")
        running.process_all()
    assert errors(jvm, since) == []
    assert any("did not answer for" in line for line in jvm.said()[since:])


def test_an_application_that_starts_with_a_hanging_policy_goes_on_without_it(
    jvm: Driver, inbox: Inbox, tmp_path: Path
) -> None:
    """The policy does not answer when the queries are submitted."""
    hanging = program(tmp_path / "hanging", ["sleep", "1000"])
    conf = {"spark.elastic.python": hanging, "spark.elastic.startTimeout": "10s"}
    with application(jvm, inbox, tmp_path, conf) as running:
        running.process_all()


@pytest.mark.matrix
def test_a_start_waits_for_a_policy_that_connects_late_for_as_long_as_it_is_told_to(
    jvm: Driver, inbox: Inbox, tmp_path: Path
) -> None:
    since, held = len(jvm.said()), tmp_path / "held"
    held.touch()
    release = threading.Timer(LATE_S, held.unlink)
    release.start()
    conf = {"spark.elastic.python": held_by(held), "spark.elastic.startTimeout": "2min"}
    with application(jvm, inbox, tmp_path, conf) as running:
        assert not held.exists()
        running.process_all()
    release.join()
    assert not any("no answer from the policy" in line for line in jvm.said()[since:])


def test_a_policy_that_talks_nonsense_is_replaced(jvm: Driver, inbox: Inbox, tmp_path: Path) -> None:
    since = len(jvm.said())
    mad = program(tmp_path / "mad", our_script("garbage_policy.py", str(tmp_path)), pass_arguments=True)
    with application(jvm, inbox, tmp_path, {"spark.elastic.python": mad}) as running:
        running.process_all()
        eventually(lambda: policies_of(jvm.pid), "the third process is the real policy")
        running.more_input()
        running.process_all()
    assert errors(jvm, since) == []
    replaced = [line for line in jvm.said()[since:] if "restarting the policy process" in line]
    # On a busy machine a process may also be replaced because it is late.
    assert sum("made no sense" in line for line in replaced) == 2


@pytest.mark.matrix
def test_a_policy_that_cannot_start_is_given_up_with_one_line(
    jvm: Driver, inbox: Inbox, tmp_path: Path
) -> None:
    since = len(jvm.said())
    failing = program(tmp_path / "failing", ["sh", "-c", "echo out of luck >&2; exit 1"])
    with application(jvm, inbox, tmp_path, {"spark.elastic.python": failing}) as running:
        running.process_all()
        eventually(lambda: errors(jvm, since), "the policy is given up")
        running.more_input()
        running.process_all()
    (line,) = errors(jvm, since)
    assert "off, the application continues as plain Spark" in line
    assert "failed 5 times" in line
    assert "out of luck" in line


def test_a_python_without_the_policy_engine_is_not_tried_again_at_once(jvm: Driver, tmp_path: Path) -> None:
    since = len(jvm.said())
    # Without its site-packages this Python does not have the module.
    bare = program(tmp_path / "bare", [sys.executable, "-I", "-S"], pass_arguments=True)
    with jvm.session({**WITH_PLUGIN, "spark.elastic.python": bare}) as spark:
        eventually(lambda: errors(jvm, since), "the policy is given up")
        assert spark.range(10).count() == 10
    (line,) = errors(jvm, since)
    assert "the policy process cannot run" in line
    assert "has no spark-elastic, and this jar has no policy engine in it: type `" in line
    assert not [line for line in jvm.said()[since:] if "restarting the policy process" in line]


@pytest.mark.slow
def test_a_policy_that_was_given_up_is_tried_again(jvm: Driver, inbox: Inbox, tmp_path: Path) -> None:
    """As after an outage of the file system with its Python."""
    since = len(jvm.said())
    there = tmp_path / "there"
    real = program(tmp_path / "real", [sys.executable], pass_arguments=True)
    late = program(
        tmp_path / "late", ["sh", "-c", f'[ -e {there} ] && exec {real} "$@"', "sh"], pass_arguments=True
    )
    conf = {"spark.elastic.python": late, "spark.elastic.policy-retry-interval": "15 sec"}
    with application(jvm, inbox, tmp_path, conf) as running:
        running.process_all()
        eventually(lambda: errors(jvm, since), "the policy is given up")
        there.touch()
        eventually(lambda: any("on again" in line for line in jvm.said()[since:]), "the policy answers")
        running.more_input()
        running.process_all()
        rate = running.spark.readStream.format("rate").load().writeStream.format("noop").queryName("later")
        query = rate.start()
        eventually(lambda: "query_partitions.later" in running.gauges(), "the new query is told of")
        query.stop()
    # A query that is stopped during a micro-batch causes errors of Spark's own.
    (line,) = (error for error in errors(jvm, since) if "spark-elastic" in error)
    assert "retrying in 15000 ms" in line


def test_a_python_that_does_not_exist_is_given_up_with_one_line(jvm: Driver, tmp_path: Path) -> None:
    since = len(jvm.said())
    nowhere = str(tmp_path / "no" / "python")
    conf = {"spark.elastic.python": nowhere, "spark.elastic.policyRetryInterval": "1 s"}

    def pauses() -> list[int]:
        found = (re.search(r"retrying in (\d+) ms", line) for line in jvm.said()[since:])
        return [int(pause[1]) for pause in found if pause]

    with jvm.session({**WITH_PLUGIN, **conf}) as spark:
        eventually(lambda: errors(jvm, since), "the policy is given up")
        assert spark.range(10).count() == 10
        eventually(lambda: len(pauses()) >= 3, "it is tried again, later each time")
    assert pauses()[:3] == [1_000, 2_000, 4_000]
    (line,) = errors(jvm, since)
    assert nowhere in line
    assert "the policy engine needs Python 3.10 or later" in line


@pytest.mark.parametrize(
    ("interval", "tries", "pause"),
    [
        (0, 9, 0),
        (10, 0, 10),
        (10, 2, 40),
        (10, 3, 60),
        (10, 1_000_000, 60),
        (60, 1, 60),
        (1440, 0, 1440),
        (1 << 46, 20, 1 << 46),
    ],
)
def test_a_policy_that_fails_is_tried_again_hourly_at_last_or_as_rarely_as_is_set(
    jvm: Driver, interval: int, tries: int, pause: int
) -> None:
    rule = jvm.jvm.org.apache.spark.elastic.PolicyProcess.pauseMs
    assert rule(interval * MINUTE_MS, tries) == pause * MINUTE_MS


def test_the_token_is_told_to_nobody_else(jvm: Driver, inbox: Inbox, tmp_path: Path) -> None:
    told = tmp_path / "token"
    telling = program(tmp_path / "telling", our_script("telling_policy.py", str(told)), pass_arguments=True)
    conf = {"spark.elastic.python": telling, "spark.logConf": "true"}
    with application(jvm, inbox, tmp_path, conf) as running:
        eventually(lambda: told.exists() and told.read_text(), "the token is known to the test")
        running.process_all()
        token = told.read_text()
        assert len(token) == 64
        for process in psutil.process_iter():
            for name in ("cmdline", "environ"):
                assert token not in read_proc(process.pid, name)
        id_ = running.spark.sparkContext.applicationId
        for page in ("/environment/", f"/api/v1/applications/{id_}/environment", "/jobs/"):
            with urllib.request.urlopen(f"{running.ui}{page}", timeout=30) as reply:
                text = reply.read().decode()
            # The pages fetch their content from the API.
            assert "spark.elastic.python" in text or not page.startswith("/api")
            assert token not in text
    assert token not in "\n".join(jvm.said())
    assert token not in jvm.printed()


def read_proc(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text(errors="replace")
    except OSError:  # it has ended, or this user may not inspect it
        return ""


def test_the_policy_ends_with_a_driver_that_is_killed(inbox: Inbox, tmp_path: Path) -> None:
    batches = tmp_path / "batches"
    arguments = [str(inbox.folder), str(tmp_path / "checkpoint"), str(batches)]
    with submitted("totals.py", arguments, tmp_path / "driver", WITH_PLUGIN) as process:

        def first_batch() -> bool:
            assert process.running, process.log_tail()
            return batches.exists()

        eventually(first_batch, "the first batch is done")
        policies = policies_of(process.pid)
        assert len(policies) == 1
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait(PATIENCE_S) is not None
        _, alive = psutil.wait_procs(policies, timeout=PATIENCE_S)
        # The process that has inherited it may be slow to collect its exit code.
        assert [policy for policy in alive if policy.status() != psutil.STATUS_ZOMBIE] == []
