"""Tests that kill the driver in each phase of a query's life, one life after another; the output stays right.

All lives are of one query in adaptive mode, on one checkpoint. A life counts only if its journal shows that
the query was in the intended phase when the driver died; otherwise it is repeated.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import IO

import pyarrow as pa
import pytest

from integration.cluster.story import Story
from integration.streaming.launch import AT_ONCE, WITH_PLUGIN, submitted
from integration.streaming.stand_ins import Requests
from integration.streaming.upserts import Values, last_values
from integration.streaming.waiting import PATIENCE_S, eventually
from spark_elastic.core.actions import Rescale, StartQuery, TakeSavepoint
from spark_elastic.core.scheduler import Scheduler
from spark_elastic.runtime.entries import EventEntry, Header, parse_line, read_journal
from spark_elastic.settings import load
from spark_elastic_lab.demo.cluster import SMALL_JVM, Cluster
from spark_elastic_lab.demo.processes import LoggedProcess

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(600)]

KEYS = 5_000
WORKERS = 2
# Some phases last only tens of milliseconds: the next one may have begun before the signal arrives.
ATTEMPTS = 5
CONF = {
    **WITH_PLUGIN,
    "spark.executor.memory": "640m",
    "spark.executor.cores": "1",
    "spark.executor.extraJavaOptions": SMALL_JVM,
    "spark.elastic.schedulerMode": "adaptive",
    "spark.elastic.adaptiveScheduler.rescalePolicy": "always",
    **AT_ONCE,
    "spark.elastic.restartStrategy.type": "fixed-delay",
    "spark.elastic.restartStrategy.fixedDelay.delay": "1h",
}


class Life:
    """One driver: its journal while it lives, and its progress when it died."""

    def __init__(self, process: LoggedProcess, journals: Path) -> None:
        self._process = process
        self._journals = journals
        self._known = set(journals.glob("*.jsonl"))
        self._file: IO[str] | None = None
        self.story = Story()

    def wait_for(self, look: Callable[[Story], object], what: str) -> None:
        if self._file is None:
            found = eventually(lambda: set(self._journals.glob("*.jsonl")) - self._known, "a journal")
            (self.journal,) = found
            self._file = self.journal.open(encoding="utf-8")
        deadline = time.monotonic() + PATIENCE_S
        line = ""
        while not look(self.story):
            assert self._process.running, self._process.log_tail()
            assert time.monotonic() < deadline, f"{what}\n{self._process.log_tail()}"
            # There is no sleep here: a phase can end within milliseconds.
            line += self._file.readline()
            if line.endswith("\n"):
                self.story.read(parse_line(line))
                line = ""

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def state(self) -> str:
        """Return the state of the query when the last event was handled."""
        scheduler = None
        for _, entry in read_journal(self.journal):
            if isinstance(entry, Header):
                scheduler = Scheduler(load(entry.settings).core())
            elif isinstance(entry, EventEntry) and scheduler is not None:
                scheduler.handle(entry.event)
        assert scheduler is not None
        (view,) = scheduler.queries.values()
        return view.state


class Lives:
    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.values = Values(folder / "input", KEYS)
        self.output = folder / "output"
        self.output.mkdir()
        self.checkpoint = folder / "checkpoint"
        self.savepoints = folder / "savepoints"
        self.journals = folder / "journals"
        self.policy = folder / "policy.yaml"
        self.requests = Requests(folder / "requests")
        self._cluster = cluster
        self._folder = folder
        self._lives = 0

    def allow(self, upper: int, lower: int = 1) -> None:
        new = self.policy.with_suffix(".new")
        bounds = f"{{lowerBound: {lower}, upperBound: {upper}}}"
        new.write_text(f"version: 1\nqueries:\n  upserts: {bounds}\n")
        new.replace(self.policy)

    def partitions(self) -> int:
        """Return the number of partitions of the checkpoint's state."""
        offsets = [path for path in (self.checkpoint / "offsets").iterdir() if path.name.isdigit()]
        last = max(offsets, key=lambda path: int(path.name))
        conf = json.loads(last.read_text().splitlines()[1])["conf"]
        return int(conf["spark.sql.shuffle.partitions"])

    def live(self, then: Callable[[Life], None]) -> Life:
        """Start a life, and end it when `then` has returned."""
        self._lives += 1
        conf = {
            **CONF,
            "spark.elastic.python": self.requests.python,
            "spark.elastic.policyFile": str(self.policy),
            "spark.elastic.journal.dir": str(self.journals),
        }
        places = [str(self.values.folder), str(self.checkpoint), str(self.output)]
        folder = self._folder / f"driver-{self._lives}"
        with submitted("steady_upserts.py", places, folder, conf, self._cluster.master_url) as process:
            life = Life(process, self.journals)
            with closing(life):
                then(life)
            os.kill(process.pid, signal.SIGKILL)
            assert process.wait(PATIENCE_S) is not None
        return life

    def die_in(self, state: str, then: Callable[[Life], None]) -> None:
        seen = []
        for _ in range(ATTEMPTS):
            self.values.put(1)
            life = self.live(then)
            seen.append(life.state())
            if seen[-1] == state:
                return
        raise AssertionError(f"it never died in {state}, but in {seen}")


@pytest.fixture(scope="module")
def lives(master: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lives]:
    found = Lives(master, tmp_path_factory.mktemp("killed"))
    found.values.put(2)
    workers = [master.start_worker(1) for _ in range(WORKERS)]
    yield found
    for worker in workers:
        master.remove_worker(worker)


def held(life: Life) -> None:
    life.wait_for(lambda story: any(d.kind == "held" for d in story.said), "it waits")


def runs(life: Life) -> None:
    life.wait_for(lambda story: any(q.batches for q in story.queries.values()), "a batch")


def ordered(kind: type) -> Callable[[Story], bool]:
    return lambda story: any(isinstance(order, kind) for order in story.orders)


def test_while_it_waits_for_resources(lives: Lives) -> None:
    lives.allow(lower=WORKERS + 1, upper=WORKERS + 1)
    lives.die_in("WaitingForResources", held)


def test_while_its_execution_graph_is_created(lives: Lives) -> None:
    lives.allow(upper=WORKERS)
    lives.die_in("CreatingExecutionGraph", lambda life: life.wait_for(ordered(StartQuery), "a start"))


def test_while_it_executes(lives: Lives) -> None:
    lives.die_in("Executing", runs)


def test_while_a_rescale_is_ordered(lives: Lives) -> None:
    def rescaled(life: Life) -> None:
        runs(life)
        lives.allow(upper=1)
        life.wait_for(ordered(Rescale), "a rescale")

    lives.allow(upper=WORKERS)
    lives.die_in("Restarting", rescaled)


def test_while_its_state_is_moved(lives: Lives) -> None:
    def moved(life: Life) -> None:
        life.wait_for(
            lambda story: any(isinstance(o, StartQuery) and o.partitions == other for o in story.orders),
            "a start with another count",
        )

    for _ in range(ATTEMPTS):
        other = 1 if lives.partitions() > 1 else WORKERS
        lives.allow(upper=other, lower=other)
        life = lives.live(moved)
        if life.state() == "CreatingExecutionGraph":
            return
    raise AssertionError("the state was always moved before the driver died")


def test_while_it_waits_after_a_failure(lives: Lives) -> None:
    lives.allow(upper=WORKERS)
    ill = lives.output / "ill"
    ill.touch()
    lives.die_in("Restarting", held)
    ill.unlink()


def test_while_its_savepoint_is_taken(lives: Lives) -> None:
    def saved(life: Life) -> None:
        runs(life)
        (query,) = life.story.queries
        wanted = {"query": query, "target": str(lives.savepoints), "stop": True, "by": "a test"}
        lives.requests.ask("SavepointRequested", **wanted)
        life.wait_for(ordered(TakeSavepoint), "a savepoint")
        eventually(lambda: list(lives.savepoints.glob(".savepoint-*")), "a copy that has begun")

    # The savepoint waits at this file until it is written to.
    slow = lives.checkpoint / "slow"
    os.mkfifo(slow)
    lives.die_in("StopWithSavepoint", saved)
    slow.unlink()
    assert list(lives.savepoints.glob("savepoint-*")) == []


def test_what_was_left_of_the_savepoint_goes_with_the_next_one(lives: Lives) -> None:
    taken: list[str] = []

    def saved(life: Life) -> None:
        runs(life)
        (query,) = life.story.queries
        lives.requests.ask("SavepointRequested", query=query, target=str(lives.savepoints), by="a test")
        taken.extend(
            eventually(lambda: [p.parent.name for p in lives.savepoints.glob("*/.spark-elastic")], "one")
        )
        eventually(lambda: os.listdir(lives.savepoints) == taken, "it stands alone")

    assert list(lives.savepoints.glob(".savepoint-*.part"))
    lives.values.put(1)
    lives.live(saved)


def test_nothing_is_lost_or_doubled(lives: Lives) -> None:
    lives.values.put(2)
    expected = lives.values.expected()

    def done() -> bool:
        try:
            return bool(last_values(lives.output).equals(expected))
        except (OSError, KeyError, pa.ArrowInvalid):
            return False  # a micro-batch is being written

    def ends(life: Life) -> None:
        runs(life)
        eventually(done, "the totals of a batch query")

    lives.live(ends)
