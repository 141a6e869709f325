"""Short ways to build journal entries, for tests of their display."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spark_elastic import __version__
from spark_elastic.core import events as ev
from spark_elastic.runtime.entries import Entry, EventEntry, Header
from spark_elastic_tools.recorded import Recorded
from tests.unit.lab.demo.facts import submitted as _submitted

__all__ = ["event", "header", "progress", "read", "snapshot", "started", "submitted"]

START = 1_700_000_000_000
_REACTIVE = {"spark.elastic.schedulerMode": "reactive"}


def header(settings: Mapping[str, str] | None = None, **more: Any) -> Header:
    fields = {"version": __version__, "application": "app-1", "part": 0, **more}
    return Header(settings=_REACTIVE if settings is None else settings, **fields)


def event(kind: type[ev.Event], **fields: Any) -> EventEntry:
    return EventEntry(event=kind(**{"id": "s9", "at": START, **fields}))


def snapshot(executors: int = 2, parts: Mapping[str, str] | None = None, spark: str = "4.2.0") -> EventEntry:
    infos = [ev.ExecutorInfo(executor=str(n), host="h", cores=2) for n in range(executors)]
    return event(
        ev.Snapshot, application="app-1", application_name="test", spark_version=spark, executors=infos,
        parts=parts or {},
    )  # fmt: skip


def submitted(query: str) -> EventEntry:
    return EventEntry(event=_submitted(query, START))


def started(query: str, partitions: int = 4) -> EventEntry:
    return event(ev.QueryStarted, query=query, run="run-1", partitions=partitions)


def progress(
    query: str, number: int = 0, *, partitions: int, behind: ev.OffsetsBehind | None = None
) -> EventEntry:
    return event(
        ev.QueryProgress, query=query, run="run-1", batch=number, started=START - 300, duration_ms=300,
        input_rows=10, input_rows_per_second=10.0, partitions=partitions, offsets_behind=behind,
    )  # fmt: skip


def read(*entries: Entry, to: Recorded | None = None) -> Recorded:
    recorded = to or Recorded()
    for entry in entries:
        recorded.read(entry)
    return recorded
