"""A driver's JVM for each module, which its tests share, and input for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.streaming.driver import Driver, driver
from integration.streaming.files import Inbox
from integration.streaming.world import World, own_world


@pytest.fixture(scope="module")
def jvm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """Start a JVM without a session."""
    with driver(tmp_path_factory.mktemp("jvm") / "driver") as started:
        yield started


@pytest.fixture
def inbox(tmp_path: Path) -> Inbox:
    """Make an empty folder for input."""
    return Inbox(tmp_path / "in")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Start a driver with the policy that rescales queries on request."""
    folder = tmp_path_factory.mktemp("handle")
    with driver(folder / "driver") as jvm, own_world(jvm, folder) as world:
        yield world


@pytest.fixture
def world(shared: World) -> Iterator[World]:
    """Return that driver without a query and without an order."""
    shared.policy.order()
    yield shared
    shared.policy.order()
    for query in shared.spark.streams.active:
        query.stop()
    shared.spark.streams.resetTerminated()
