"""One master and one driver's JVM for all tests here; each module has its own application and workers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from integration.sequel import in_sequence as in_sequence
from integration.sequel import sequel as sequel
from integration.streaming.driver import Driver, driver
from spark_elastic_lab.demo.cluster import Cluster


@pytest.fixture(scope="package")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Start a cluster without workers."""
    with Cluster(tmp_path_factory.mktemp("standalone") / "cluster") as running:
        yield running
    assert running.left_over() == []


@pytest.fixture(scope="package")
def jvm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """Start the JVM of the applications."""
    with driver(tmp_path_factory.mktemp("applications") / "driver") as started:
        yield started
