"""What the plugin's decision journal says of executors and of the parallelism in force."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from spark_elastic.core.events import Event, ExecutorAdded, ExecutorRemoved, QueryProgress
from spark_elastic.runtime.entries import EventEntry, read_journal


def executors_added(folder: Path) -> list[ExecutorAdded]:
    """Return the executors that registered, in order."""
    return [event for event in _events(folder) if isinstance(event, ExecutorAdded)]


def executors_removed(folder: Path) -> list[ExecutorRemoved]:
    """Return the executors that were lost, in order."""
    return [event for event in _events(folder) if isinstance(event, ExecutorRemoved)]


def in_force_since(folder: Path, partitions: int, moment: int) -> int | None:
    """Return when the first micro-batch with that parallelism after `moment` began (epoch ms), else None."""
    started = (
        event.started
        for event in _events(folder)
        if isinstance(event, QueryProgress) and event.started >= moment and event.partitions == partitions
    )
    return next(started, None)


def _events(folder: Path) -> Iterator[Event]:
    for file in sorted(folder.glob("*.jsonl")):
        for _, entry in read_journal(file):
            if isinstance(entry, EventEntry):
                yield entry.event
