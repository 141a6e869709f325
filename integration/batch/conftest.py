"""A JVM for the batch applications of each module, and the session that is compared with plain Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from integration.batch.plans import advised
from integration.streaming.driver import Driver, driver


@pytest.fixture(scope="module")
def jvm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """Start a JVM without a session."""
    with driver(tmp_path_factory.mktemp("batch") / "driver") as started:
        yield started


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("journal")


@pytest.fixture(scope="module")
def elastic(
    jvm: Driver, plain: dict[Any, Any], journal: Path, conf: dict[str, str]
) -> Iterator[SparkSession]:
    """Start a session with the plugin and a module's `conf`, once the module's `plain` Spark has answered."""
    assert plain
    with advised(jvm, journal, conf) as spark:
        yield spark
