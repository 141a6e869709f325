from __future__ import annotations

from pathlib import Path

import pytest

from spark_elastic.core.events import ExecutorAdded
from spark_elastic.core.scheduler import Scheduler
from spark_elastic.demo.replayed import check_replay
from spark_elastic.gateway.memory import MemoryGateway, SteppedClock
from spark_elastic.runtime.journal import open_journal
from spark_elastic.runtime.loop import Loop
from tests.unit.runtime.support import START, snapshot


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """A short run of the real scheduler."""
    clock = SteppedClock(START)
    gateway = MemoryGateway(clock, end=START + 5_000)
    gateway.offer(
        snapshot({"spark.elastic.journal.dir": str(tmp_path / "journal")}),
        ExecutorAdded(id="s2", at=START + 100, executor="1", host="h", cores=2),
    )
    Loop(gateway, clock, Scheduler, open_journal).run()
    return tmp_path / "journal" / "spark-elastic-app-1.jsonl"


def test_a_journal_that_comes_to_the_same_decisions_holds(journal: Path) -> None:
    found = check_replay(journal)
    assert found.ok
    assert "2 events" in found.found


def test_another_decision_is_named_with_its_place(journal: Path) -> None:
    journal.write_text(journal.read_text().replace('"hang_ms":10000', '"hang_ms":5'))
    found = check_replay(journal)
    assert (found.ok, found.found) == (False, f"different at {journal}:2")


def test_without_a_journal_nothing_is_shown(tmp_path: Path) -> None:
    found = check_replay(tmp_path / "none")
    assert not found.ok
    assert "No such file" in found.found
