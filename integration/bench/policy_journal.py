"""The journal's record of executors, their warm-up and the parallelism in force."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from spark_elastic.core.events import ActionDone, ExecutorAdded, ExecutorsUsed, QueryProgress
from spark_elastic.runtime.entries import EventEntry, parse_line
from spark_elastic_tools.tail import GrowingFile

# Large enough to keep the journal in one file.
UNBOUNDED = {"spark.elastic.journal.maxSize": "1g"}


class PolicyJournal:
    """The journal of an application, as far as it is written."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[Path, GrowingFile] = {}
        self._added: list[ExecutorAdded] = []
        self._progress: list[QueryProgress] = []
        self._warm_ups: dict[str, int | None] = {}
        self._took_ms = 0

    def executors_added(self) -> Sequence[ExecutorAdded]:
        """Return the executors that registered, in order."""
        self._read()
        return self._added

    def in_force_since(self, partitions: int, moment: int) -> int | None:
        """Return the start of the first batch after `moment` with this parallelism (epoch ms), or None."""
        self._read()
        started = (
            event.started
            for event in self._progress
            if event.started >= moment and event.partitions == partitions
        )
        return next(started, None)

    def warm_up_ms(self, executor: str) -> int | None:
        """Return the duration of a used executor's warm-up, or None if it had none."""
        self._read()
        return self._warm_ups.get(executor)

    def longest_order_ms(self) -> int:
        """Return what the longest of all orders to Spark took."""
        self._read()
        return self._took_ms

    def _read(self) -> None:
        for path in sorted(self._folder.glob("*.jsonl")):
            lines = self._files.setdefault(path, GrowingFile(path)).new_lines()
            # The scheduler's state, which is written between the events, is long.
            for line in (line for line in lines if line.startswith('{"event"')):
                entry = parse_line(line)
                assert isinstance(entry, EventEntry)
                if isinstance(entry.event, ExecutorAdded):
                    self._added.append(entry.event)
                elif isinstance(entry.event, ActionDone):
                    self._took_ms = max(self._took_ms, entry.event.took_ms)
                elif isinstance(entry.event, QueryProgress):
                    self._progress.append(entry.event)
                elif isinstance(entry.event, ExecutorsUsed):
                    self._warm_ups.update((new.executor, new.warm_up_ms) for new in entry.event.executors)
