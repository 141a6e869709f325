"""A driver's JVM for each module, which its tests share, and input for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.streaming.driver import Driver, driver
from integration.streaming.files import Inbox


@pytest.fixture(scope="module")
def jvm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """Give a JVM without a session."""
    with driver(tmp_path_factory.mktemp("jvm") / "driver") as started:
        yield started


@pytest.fixture
def inbox(tmp_path: Path) -> Inbox:
    """Give an empty folder for input."""
    return Inbox(tmp_path / "in")
