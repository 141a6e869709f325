"""A broker for each module; the tests of a module build on each other, like those on the cluster."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from integration.sequel import in_sequence as in_sequence
from integration.sequel import sequel as sequel
from spark_elastic_lab.demo.broker import Broker


@pytest.fixture(scope="module")
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Run a broker with the module's TOPIC of two partitions; at the end no process of it is left."""
    with Broker(tmp_path_factory.mktemp("kafka") / "broker") as running:
        running.create_topic(request.module.TOPIC, 2)
        yield running
    assert running.left_over() == []
