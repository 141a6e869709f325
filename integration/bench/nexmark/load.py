"""The numbers of events as they arrive, and the changes of workers meanwhile, for each system alike."""

from __future__ import annotations

import time
from collections.abc import Callable

from attrs import define, field, frozen

from integration.bench.nexmark.schedule import Change, Schedule
from integration.cluster.lines import LinesOfLoad
from spark_elastic_lab.demo.processes import LoggedProcess, ProcessFailure

TRIGGER_MS = 2_000
"""How often a query begins a micro-batch or a checkpoint."""
START_TIMEOUT_S, END_TIMEOUT_S = 120.0, 900.0
"""How long a query may take to start, and to read what it is behind; these only bound a hang."""

# One file would be one task.
_FILES_PER_S = 4
_POLL_S = 0.2


@frozen(kw_only=True)
class Trial:
    """What a query is run with: `workers` of one slot at most, and `wait_us` more for each event."""

    schedule: Schedule
    workers: int
    wait_us: int


@define(kw_only=True)
class EventNumbers(LinesOfLoad):
    """Writes the numbers of events as they arrive, and records the file of each number of events in a row."""

    files: dict[int, str] = field(factory=dict)

    def _write(self, rows: int) -> None:
        before = self.written
        for part in range(1, _FILES_PER_S + 1):
            first = self.written
            share = before + rows * part // _FILES_PER_S - first
            if share:
                super()._write(share)
                self.files[self.written] = f"{first}.txt"


def follow(
    schedule: Schedule, numbers: EventNumbers, application: LoggedProcess, do: Callable[[Change], None]
) -> None:
    """Change the workers as scheduled until the load is over. Raises ProcessFailure."""
    due = iter(schedule.changes)
    change = next(due, None)
    while not numbers.over:
        if not application.running:
            raise ProcessFailure(f"the application has ended\n{application.log_tail()}")
        if change is not None and time.time() >= numbers.begin + change.second:
            do(change)
            change = next(due, None)
        time.sleep(_POLL_S)
