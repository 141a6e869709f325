"""One master and one driver's JVM for all tests here; each module brings its own application and workers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from integration.streaming.driver import Driver, driver
from spark_elastic.demo.cluster import Cluster


@pytest.fixture(scope="package")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Give a cluster without workers."""
    with Cluster(tmp_path_factory.mktemp("standalone") / "cluster") as running:
        yield running
    assert running.left_over() == []


@pytest.fixture(scope="package")
def jvm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """Give the JVM of the applications."""
    with driver(tmp_path_factory.mktemp("applications") / "driver") as started:
        yield started


class Sequel:
    """Tests of one module go on from each other: after one that failed, the rest would only time out."""

    def __init__(self) -> None:
        self.failed: str | None = None


@pytest.fixture(scope="module")
def sequel() -> Sequel:
    return Sequel()


@pytest.fixture(autouse=True)
def in_sequence(request: pytest.FixtureRequest, sequel: Sequel) -> Iterator[None]:
    """Leave out what comes after a failure in the same module."""
    if sequel.failed is not None:
        pytest.skip(f"{sequel.failed} has failed")
    failed = request.session.testsfailed
    yield
    if request.session.testsfailed > failed:
        sequel.failed = request.node.name
