"""A client of the server that a module's fixture `server` provides."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from integration.connect.server import ConnectServer, client


@pytest.fixture
def spark(server: ConnectServer) -> Iterator[SparkSession]:
    """Start a session, which ends with the test."""
    session = client(server)
    yield session
    session.stop()
