"""A JVM for the batch applications of each module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from integration.streaming.driver import Driver, driver


@pytest.fixture(scope="module")
def jvm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """Give a JVM without a session."""
    with driver(tmp_path_factory.mktemp("batch") / "driver") as started:
        yield started
