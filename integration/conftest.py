"""Fixtures that give tests a real cluster, its input, and the plain application of the demonstration."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib import resources
from pathlib import Path

import pytest

from integration.class_archive import environment
from spark_elastic_lab.demo.cluster import Cluster
from spark_elastic_lab.demo.data import Tables, generate
from spark_elastic_lab.demo.source import Feed


def pytest_configure() -> None:
    """Let Spark's processes start faster if the class archives exist."""
    os.environ.update(environment())


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Start a cluster without workers; afterwards none of its processes may be running."""
    with Cluster(tmp_path / "cluster") as running:
        yield running
    assert running.left_over() == []


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """Make TPC-H orders and lineitem, small, lineitem in 40 files."""
    return generate(tmp_path_factory.mktemp("tables"), scale=0.01, parts=40)


@pytest.fixture
def start_feed(tables: Tables, tmp_path: Path) -> Iterator[Callable[[float], Feed]]:
    """Return a function that starts a feed into `tmp_path/incoming`, one file per interval (s)."""
    feeds: list[Feed] = []

    def start(interval_s: float) -> Feed:
        feed = Feed(tables.lineitem, tmp_path / "incoming", interval_s=interval_s)
        feeds.append(feed)
        feed.start()
        return feed

    yield start
    for feed in feeds:
        feed.stop()


@pytest.fixture(scope="session")
def lineitem_stream() -> Path:
    """Return the path of the demonstration's application."""
    return Path(str(resources.files("spark_elastic_lab.demo.apps") / "lineitem_stream.py"))
