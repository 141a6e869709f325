"""Tests that after a kill -9 of the policy process, the next one continues from its journal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from attrs import frozen
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from integration.streaming.driver import Driver, policies_of
from integration.streaming.files import Inbox
from integration.streaming.launch import WITH_PLUGIN
from integration.streaming.test_failures import PREFIX, Flaky, start
from integration.streaming.waiting import eventually
from spark_elastic.core.actions import Action, Rescale, SetTimer, StartQuery
from spark_elastic.core.events import (
    Event,
    PolicyFileChanged,
    QueryFailed,
    QueryStarted,
    Snapshot,
)
from spark_elastic.core.query_view import QueryView
from spark_elastic.core.scheduler import Scheduler
from spark_elastic.runtime.entries import ActionsEntry, EventEntry, StateEntry, read_journal
from spark_elastic.runtime.replay import replay

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]

# Another policy process must be up within this time.
BACKOFF_MS = 20_000
COOLDOWN_MS = 40_000


@pytest.fixture
def inbox(tmp_path: Path) -> Inbox:
    inbox = Inbox(tmp_path / "in")
    inbox.put(1)
    return inbox


@frozen
class Application:
    """A running application, its journal, and a way to kill its policy process."""

    spark: SparkSession
    jvm: Driver
    folder: Path

    def kill_policy(self) -> None:
        """Kill the process, and wait until the next one has taken over the queries."""
        (old,) = policies_of(self.jvm.pid)
        before = self.snapshots()
        old.kill()
        eventually(lambda: self.snapshots() > before, "the next policy process has its snapshot")

    def journal(self) -> Path:
        (path,) = self.folder.glob("*.jsonl")
        return path

    def turns(self) -> list[tuple[Event, list[Action]]]:
        """Return every event of the journal, with its actions."""
        turns: list[tuple[Event, list[Action]]] = []
        for _, entry in read_journal(self.journal()):
            if isinstance(entry, EventEntry):
                turns.append((entry.event, []))
            elif isinstance(entry, ActionsEntry):
                turns[-1][1].extend(entry.actions)
        return turns

    def snapshots(self) -> int:
        return sum(isinstance(event, Snapshot) for event, _ in self.turns())

    def times(self, kind: type[Event] | type[Action]) -> list[int]:
        """Return the times of events of a kind, or of actions of a kind."""
        return [
            event.at
            for event, actions in self.turns()
            for thing in (event, *actions)
            if isinstance(thing, kind)
        ]

    def timers_of_each_process(self) -> list[list[int]]:
        """Return the times of the timers that each process has set, in order."""
        processes: list[list[int]] = []
        for event, actions in self.turns():
            if isinstance(event, Snapshot):
                processes.append([])
            processes[-1] += (action.at for action in actions if isinstance(action, SetTimer))
        return processes

    def query(self) -> QueryView:
        """Return the one query as the current scheduler sees it."""
        scheduler: Scheduler | None = None
        for _, entry in read_journal(self.journal()):
            if isinstance(entry, StateEntry):
                scheduler = Scheduler.restore(entry.state)
            elif isinstance(entry, EventEntry) and scheduler is not None:
                scheduler.handle(entry.event)
        assert scheduler is not None, "nobody has resumed from a state"
        (view,) = scheduler.queries.values()
        return view

    def check_journal(self) -> None:
        """Check that a replay repeats all decisions of the processes, and that no id occurs twice."""
        result = replay(read_journal(self.journal()), Scheduler)
        assert (result.difference, result.left_out) == (None, 0)
        ids = [action.id for _, actions in self.turns() for action in actions]
        assert len(set(ids)) == len(ids)


@contextmanager
def application(jvm: Driver, folder: Path, conf: Mapping[str, str]) -> Iterator[Application]:
    settings = {
        **WITH_PLUGIN,
        "spark.sql.shuffle.partitions": "2",
        "spark.elastic.schedulerMode": "adaptive",
        "spark.elastic.adaptiveScheduler.submission.resourceStabilizationTimeout": "0",
        "spark.elastic.journal.dir": str(folder),
        **conf,
    }
    with jvm.session(settings) as spark:
        running = Application(spark, jvm, folder)
        yield running
    running.check_journal()


def fixed_delay(attempts: int, delay_ms: int) -> dict[str, str]:
    return {
        f"{PREFIX}.type": "fixed-delay",
        f"{PREFIX}.fixedDelay.attempts": str(attempts),
        f"{PREFIX}.fixedDelay.delay": f"{delay_ms}ms",
    }


def waits(query: StreamingQuery, words: str) -> Callable[[], bool]:
    return lambda: words in query.status["message"]


def test_a_backoff_ends_when_it_would_have_ended(jvm: Driver, inbox: Inbox, tmp_path: Path) -> None:
    with application(jvm, tmp_path / "journal", fixed_delay(3, BACKOFF_MS)) as running:
        sink = Flaky(failures=1)
        query = start(running.spark, inbox, sink)
        eventually(waits(query, "restarting"), "the backoff")
        running.kill_policy()
        assert sink.failed == 1
        query.processAllAvailable()
        assert sink.result() == inbox.totals()
        eventually(lambda: len(running.times(StartQuery)) == 2, "the journal tells of the start")
        (failed,), (_, started) = running.times(QueryFailed), running.times(StartQuery)
        assert started - failed >= BACKOFF_MS
        # Both processes have waited for the same moment, and the failure has cost one attempt.
        assert [failed + BACKOFF_MS in at for at in running.timers_of_each_process()] == [True, True]
        assert (running.query().restarted, len(running.query().exceptions)) == (1, 1)
        query.stop()


def test_attempts_that_are_used_up_stay_so(jvm: Driver, inbox: Inbox, tmp_path: Path) -> None:
    with application(jvm, tmp_path / "journal", fixed_delay(2, 100)) as running:
        sink = Flaky(failures=2)
        query = start(running.spark, inbox, sink)
        query.processAllAvailable()
        before = sink.result()
        running.kill_policy()
        view = running.query()
        assert [view.restarted, len(view.exceptions)] == [2, 2]
        assert [record.cause for record in view.history] == ["recoverable_failover"] * 2 + [
            "initial_schedule"
        ]
        sink.left = 1
        inbox.put(1)
        with pytest.raises(StreamingQueryException, match="the sink is very very very ill"):
            query.awaitTermination()
        assert (sink.failed, sink.result()) == (3, before)


def test_a_cooldown_ends_when_it_would_have_ended(jvm: Driver, inbox: Inbox, tmp_path: Path) -> None:
    """Shrinking the bounds of a running query calls for a rescale, which the cooldown delays."""
    file = tmp_path / "policy.yaml"
    conf = {
        **fixed_delay(1, 100),
        "spark.elastic.policyFile": str(file),
        "spark.elastic.adaptiveScheduler.executing.cooldownAfterRescaling": f"{COOLDOWN_MS}ms",
        "spark.elastic.adaptiveScheduler.executing.resourceStabilizationTimeout": "0",
        "spark.elastic.adaptiveScheduler.rescalePolicy": "always",
    }
    bounds = "version: 1\nqueries:\n  counts: {upperBound: %d}\n"
    file.write_text(bounds % 2)
    with application(jvm, tmp_path / "journal", conf) as running:
        sink = Flaky(failures=0)
        query = start(
            running.spark, inbox, sink, queryName="counts", checkpointLocation=str(tmp_path / "checkpoint")
        )
        query.processAllAvailable()
        file.write_text(bounds % 1)
        eventually(lambda: len(running.times(PolicyFileChanged)) == 2, "the bounds are read")
        running.kill_policy()

        def rescaled() -> bool:
            inbox.put(1)
            query.processAllAvailable()
            return running.query().partitions == 1

        eventually(rescaled, "the rescale into the bounds", every_s=0.2)
        began, ordered = running.times(QueryStarted)[0], running.times(Rescale)[0]
        assert ordered - began >= COOLDOWN_MS
        # Both processes have started with the same end of the cooldown.
        assert [at[0] for at in running.timers_of_each_process()] == [began + COOLDOWN_MS] * 2
        # The file is unchanged, so it is not reported again.
        assert len(running.times(PolicyFileChanged)) == 2
        query.processAllAvailable()
        assert sink.result() == inbox.totals()
        assert running.query().history[0].cause == "update_requirement"
        query.stop()
