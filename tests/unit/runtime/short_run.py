"""A short run of the real scheduler, for tests of programs that read its journal."""

from __future__ import annotations

from pathlib import Path

from spark_elastic.core.events import ExecutorAdded
from spark_elastic.core.scheduler import Scheduler
from spark_elastic.runtime.journal import open_journal
from spark_elastic.runtime.loop import Loop
from tests.unit.runtime.memory_gateway import MemoryGateway, SteppedClock
from tests.unit.runtime.support import START, snapshot


def short_run(folder: Path) -> Path:
    """Run the scheduler while an executor starts; return its journal, which is in `folder`."""
    clock = SteppedClock(START)
    gateway = MemoryGateway(clock, end=START + 5_000)
    gateway.offer(
        snapshot({"spark.elastic.journal.dir": str(folder)}),
        ExecutorAdded(id="s2", at=START + 100, executor="1", host="h", cores=2),
    )
    Loop(gateway, clock, Scheduler, open_journal).run()
    return folder / "spark-elastic-app-1.jsonl"
