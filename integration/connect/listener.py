"""A listener in the client that records its events."""

from __future__ import annotations

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

Run = tuple[str, str]


class Heard(StreamingQueryListener):
    """The id and run id of each event of a kind, in order."""

    def __init__(self) -> None:
        self.started: list[Run] = []
        self.progress: list[Run] = []
        self.terminated: list[Run] = []

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        self.started.append((str(event.id), str(event.runId)))

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        self.progress.append((str(event.progress.id), str(event.progress.runId)))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        self.terminated.append((str(event.id), str(event.runId)))
