"""An application that got hold of Spark's own query manager, before ours took its place, may keep it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)
from pyspark.sql.streaming.query import StreamingQueryManager

from integration.streaming.driver import driver
from integration.streaming.launch import WITH_PLUGIN
from integration.streaming.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

_ATTEMPTS = 200


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with driver(tmp_path_factory.mktemp("former")) as jvm, jvm.session(WITH_PLUGIN) as session:
        yield session


def early(spark: SparkSession) -> tuple[SparkSession, Any]:
    """Give a session and the manager that an application was quick enough to get from it."""
    for _ in range(_ATTEMPTS):
        session = spark._jsparkSession.newSession()
        manager = session.streams()
        if manager.getClass().getSimpleName() == "StreamingQueryManager":
            return SparkSession(spark.sparkContext, session), manager
    pytest.skip(f"in {_ATTEMPTS} sessions ours was always there first")


def ours_is_there(session: SparkSession) -> None:
    streams = session._jsparkSession.streams
    eventually(lambda: streams().getClass().getSimpleName() == "ElasticQueryManager", "our query manager")


class Listener(StreamingQueryListener):
    """Counts what it hears."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        self.heard.append("started")

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        self.heard.append("terminated")


def test_a_manager_taken_early_goes_on_answering(spark: SparkSession) -> None:
    session, taken = early(spark)
    ours_is_there(session)
    manager = StreamingQueryManager(taken)
    listener = Listener()
    manager.addListener(listener)
    query = session.readStream.format("rate").load().writeStream.format("noop").start()
    assert [other.id for other in manager.active] == [query.id]
    found = manager.get(query.id)
    assert found is not None
    assert found.runId == query.runId
    assert manager.awaitAnyTermination(1) is False
    query.stop()
    assert manager.awaitAnyTermination(30) is True
    assert manager.active == []
    eventually(lambda: listener.heard == ["started", "terminated"], "the listener's events")
