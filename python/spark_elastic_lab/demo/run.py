"""The demonstration, from its first process to its verdict."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from contextlib import closing, suppress
from importlib import resources
from pathlib import Path

from attrs import define, field, frozen

from spark_elastic.core.scheduler import Scheduler
from spark_elastic.runtime.entries import Unreadable, read_journal
from spark_elastic.runtime.publisher import DECISIONS_KEPT
from spark_elastic.runtime.replay import replay
from spark_elastic.version import __version__
from spark_elastic_lab.demo import check
from spark_elastic_lab.demo.check import Check
from spark_elastic_lab.demo.chronicle import Chronicle
from spark_elastic_lab.demo.cluster import Cluster, Worker
from spark_elastic_lab.demo.data import Tables
from spark_elastic_lab.demo.plugin import SLOT_SHARING_GROUP, demo_conf
from spark_elastic_lab.demo.processes import LoggedProcess, ProcessFailure
from spark_elastic_lab.demo.scenario import Scenario, check_orders
from spark_elastic_lab.demo.source import Delivery, Source
from spark_elastic_lab.demo.steps import PLAYS, Deed, Mode, Play, Step
from spark_elastic_lab.demo.summary import Summary, commits, summarize
from spark_elastic_lab.demo.task_log import TaskLog, event_log_conf
from spark_elastic_tools.client import API, Busy
from spark_elastic_tools.live import Look, Stage
from spark_elastic_tools.recorded import Recorded
from spark_elastic_tools.tail import JournalTail

# ---- Checks that replaying the run's journal leads to the same decisions.


_NAME = "the journal can be replayed"


def check_replay(journal: Path) -> Check:
    """Check that a replay of the journal from its start reaches every decision again."""
    try:
        result = replay(read_journal(journal), Scheduler)
    except Unreadable as error:
        return Check(name=_NAME, ok=False, found=str(error))
    if result.difference is not None:
        return Check(name=_NAME, ok=False, found=f"different at {result.difference.place}")
    return Check(
        name=_NAME,
        ok=result.actions > 0 and result.left_out == 0,
        found=f"{result.events:,} events, {result.actions:,} actions, {result.left_out:,} left out",
    )


_TICK_S = 0.1
_QUERIES = ("enrichment", "totals")
# Memory of a worker for the executor on each of its cores.
_MEMORY_MB = 768
_START_TIMEOUT_S = 120.0
_END_TIMEOUT_S = 120.0
_COMPARE_TIMEOUT_S = 300.0


@frozen
class Places:
    """The folders of a run, all below `root`."""

    root: Path

    @property
    def output(self) -> Path:
        """The output of the application."""
        return self.root / "output"

    @property
    def cluster(self) -> Path:
        """The logs and work folders of the cluster."""
        return self.root / "cluster"

    @property
    def policy(self) -> Path:
        """The policy file, in adaptive mode."""
        return self.root / "policy.yaml"

    @property
    def journal(self) -> Path:
        """The decision journal's folder."""
        return self.root / "journal"

    @property
    def events(self) -> Path:
        """Spark's event log, which records where tasks ran."""
        return self.root / "events"


@define
class Demo:
    """One run of a `mode`; with `keep`, everything stays up after the scenario until Ctrl-C."""

    places: Places
    source: Source
    stage: Stage
    keep: bool
    mode: Mode = Mode.REACTIVE
    chronicle: Chronicle = field(factory=Chronicle)
    recorded: Recorded = field(factory=Recorded)
    play: Play = field(init=False)
    scenario: Scenario = field(init=False)
    _look: Look = field(init=False)
    _workers: list[Worker] = field(factory=list)

    def __attrs_post_init__(self) -> None:
        self.play = PLAYS[self.mode]
        self.scenario = Scenario(
            queries=len(_QUERIES),
            tasks=TaskLog(self.places.events),
            steps=self.play.steps,
            end_s=self.play.end_s,
            timeout_s=self.play.timeout_s,
        )
        self._look = Look(self.recorded, past=DECISIONS_KEPT)

    def run(self) -> Summary:
        """Run everything. Raises ProcessFailure or DataFailure if it cannot start."""
        with closing(self.source):
            self.stage.say(f"making TPC-H lineitem and orders at scale {self.play.scale:g}")
            tables, feed = self.source.open(
                scale=self.play.scale, parts=self.play.parts, interval_s=self.play.interval_s
            )
            self.stage.say(f"lineitem will arrive in {self.source.incoming}")
            with Cluster(self.places.cluster) as cluster:
                self.stage.say(f"master at {cluster.master_url}, UI at {cluster.master_ui}")
                exit_code, ended, journal = self._run_on(cluster, tables, feed)
            left = cluster.left_over()
            self.stage.say("comparing with a batch job over the same input")
            comparison = self._compare(tables)
        left += self.source.left_over()
        return summarize(
            version=__version__,
            chronicle=self.chronicle,
            outcomes=self.scenario.outcomes,
            outputs={name: commits(self.places.output / name) for name in _QUERIES},
            ended=ended,
            comparison=comparison,
            checks=[
                *check.check_steps(self.scenario.steps, self.scenario.outcomes, self.chronicle),
                *check.check_kept(self.chronicle),
                *([check_orders(self.chronicle)] if self.mode is Mode.AUTOSCALE else []),
                check.check_application(exit_code),
                check.check_queries(self.chronicle),
                *check.check_rows(_QUERIES, comparison),
                *self.source.checks(self.chronicle, comparison),
                check_replay(journal),
                check.check_processes(left),
            ],
        )

    def _run_on(self, cluster: Cluster, tables: Tables, feed: Delivery) -> tuple[int | None, int, Path]:
        """Return the application's exit code, the end of the scenario (epoch ms) and the journal."""
        if self.mode is Mode.ADAPTIVE:
            self._bound(self.play.steps[0])
        self._workers = [cluster.add_worker(cores, cores * _MEMORY_MB) for cores in self.play.workers]
        driver = self._submit(cluster, tables)
        address = driver.wait_for_line(r"UI: (http\S+)", _START_TIMEOUT_S)[1]
        self.stage.say(f"application's UI at {address}")
        journal = self._wait_for_journal(driver)
        tail = JournalTail(journal)
        try:
            feed.start()
            self._wait_for_queries(driver, tail)
            self._say_what_stays()
            self._play(cluster, driver, tail, feed)
            if self.keep and driver.running:
                self._stay(driver, tail, address)
            ended = _now()
            feed.finish()
            self.places.output.mkdir(exist_ok=True)
            (self.places.output / "_done").touch()
            self.stage.say(f"{feed.delivered} parts delivered, the application comes to its end")
            self._wait_for_end(driver, tail)
        finally:
            tail.stop()
        self._follow(tail, 1.0, "the end")
        if driver.exit_code != 0:
            self.stage.say(f"the application's last words:\n{driver.log_tail()}")
        return driver.exit_code, ended, journal

    def _submit(self, cluster: Cluster, tables: Tables) -> LoggedProcess:
        application = Path(str(resources.files("spark_elastic_lab.demo.apps") / "lineitem_stream.py"))
        places = [self.source.incoming, str(tables.orders), str(self.places.output)]
        policy_file = self.places.policy if self.mode is Mode.ADAPTIVE else None
        self.places.events.mkdir(parents=True)
        conf = {
            **event_log_conf(self.places.events),
            **demo_conf(self.places.journal, self.mode, policy_file),
        }
        flags = ["--jars", ",".join(map(str, self.source.jars))] if self.source.jars else []
        return cluster.submit(application, [*places, *self.play.options], conf=conf, flags=flags)

    def _wait_for_journal(self, driver: LoggedProcess) -> Path:
        deadline = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < deadline and driver.running:
            found = list(self.places.journal.glob("*.jsonl"))
            if found:
                return found[0]
            time.sleep(_TICK_S)
        raise ProcessFailure(f"the plugin has written no journal\n{driver.log_tail()}")

    def _wait_for_queries(self, driver: LoggedProcess, tail: JournalTail) -> None:
        """Wait until every query has run a batch; then set-up is done and the scenario's clock starts."""
        deadline = time.monotonic() + _START_TIMEOUT_S
        while driver.running and not self._all_run():
            if time.monotonic() > deadline:
                raise ProcessFailure(f"not every query has run a batch\n{driver.log_tail()}")
            self._follow(tail, 0.0, "the first batches")
            time.sleep(_TICK_S)

    def _say_what_stays(self) -> None:
        """Name the queries that keep their partition count on this Spark, so that no change is expected."""
        for query in self.chronicle.queries.values():
            if not query.follows_slots:
                spark = f"Spark {self.chronicle.spark_version} cannot move its state"
                self.stage.say(f"{query.name} keeps its partition count, whatever the slots: {spark}")

    def _all_run(self) -> bool:
        return sum(bool(query.batches) for query in self.chronicle.queries.values()) >= len(_QUERIES)

    def _play(self, cluster: Cluster, driver: LoggedProcess, tail: JournalTail, feed: Delivery) -> None:
        while driver.running and not self.scenario.ended(_now()):
            coming = self.scenario.next_step
            title = coming.title if coming is not None else "the end"
            self._follow(tail, self.scenario.progress(_now()), title)
            self.scenario.observe(self.chronicle, _now())
            step = self.scenario.begin_next(_now())
            if step is not None:
                self.stage.say(f"scenario: {step.title}")
                self._do(cluster, feed, step)
            time.sleep(_TICK_S)

    def _follow(self, tail: JournalTail, done: float, coming: str) -> None:
        """Process the new entries of the journal and show the result."""
        tail.pump(self.chronicle, self.recorded)
        with suppress(Busy):  # there is nothing to show before the first event
            self.stage.show(self._look.take(), done, coming)

    def _do(self, cluster: Cluster, feed: Delivery, step: Step) -> None:
        match step.deed:
            case Deed.START:
                pass
            case Deed.ADD:
                self._workers.append(cluster.start_worker())
            case Deed.KILL:
                cluster.kill_worker(self._workers.pop(0))
            case Deed.DECOMMISSION:
                cluster.decommission_worker(self._workers.pop(0))
            case Deed.BOUND:
                self._bound(step)
            case Deed.LOAD:
                assert step.interval_s is not None
                feed.pace(step.interval_s)

    def _bound(self, step: Step) -> None:
        """Write the policy file atomically: a concurrent reader sees the old or the new file."""
        new = self.places.policy.with_suffix(".new")
        defaults = f"  upperBound: {step.slots}\n  slotSharingGroup: {SLOT_SHARING_GROUP}\n"
        new.write_text(f"version: 1\ndefaults:\n{defaults}")
        new.replace(self.places.policy)

    def _stay(self, driver: LoggedProcess, tail: JournalTail, address: str) -> None:
        """Keep running until Ctrl-C, which only ends the wait."""
        self.stage.say(f"the scenario is over, all runs on: UI at {address}; Ctrl-C ends it")
        commands = ["status", "explain", *(["rescale totals --up"] if self.mode is Mode.ADAPTIVE else [])]
        for command in commands:
            self.stage.say(f"in another terminal: spark-elastic {command} --url {address}")
        self.stage.say(f"or: curl -s {address}{API}/queries")
        try:
            while driver.running:
                self._follow(tail, 1.0, "Ctrl-C ends")
                time.sleep(_TICK_S)
        except KeyboardInterrupt:
            self.stage.say("Ctrl-C")

    def _wait_for_end(self, driver: LoggedProcess, tail: JournalTail) -> None:
        deadline = time.monotonic() + _END_TIMEOUT_S
        while driver.running and time.monotonic() < deadline:
            self._follow(tail, 1.0, "the application's end")
            time.sleep(_TICK_S)

    def _compare(self, tables: Tables) -> Mapping[str, Mapping[str, int]]:
        result = self.places.root / "comparison.json"
        class_path = os.pathsep.join(map(str, self.source.jars))
        arguments = [self.source.incoming, tables.orders, self.places.output, result, class_path]
        command = [sys.executable, "-m", "spark_elastic_lab.demo.compare", *map(str, arguments)]
        job = Cluster.local_job("comparison", command, self.places.root)
        try:
            if job.wait(_COMPARE_TIMEOUT_S) != 0:
                self.stage.say(f"the batch job failed:\n{job.log_tail()}")
                return {}
        finally:
            job.stop()
        counts: dict[str, dict[str, int]] = json.loads(result.read_text())
        return counts


def _now() -> int:
    return time.time_ns() // 1_000_000
