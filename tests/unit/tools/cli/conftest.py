"""A driver for the commands, served by the product's own REST API."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from attrs import evolve

from spark_elastic.core import events as ev
from tests.unit.core.builder import STATELESS
from tests.unit.http.world import ADAPTIVE, COUNTS, ID, NOW
from tests.unit.tools.cli.served import Served, served

OTHER = "7a1c2a34-9d0b-4c1e-8f50-1234567890ab"
SPREAD = evolve(STATELESS, query=OTHER, name="spread")


@pytest.fixture
def driver() -> Iterator[Served]:
    """Serve a driver with two queries, one of which has committed a micro-batch."""
    with served(
        {**ADAPTIVE, "spark.elastic.savepoint.allowedPrefixes": "/s"}, queries=(COUNTS, SPREAD)
    ) as found:
        found.world.send(
            ev.QueryProgress, query=ID, run="r1", batch=7, started=NOW - 300, duration_ms=312,
            input_rows=40, input_rows_per_second=80.0, partitions=4,
        )  # fmt: skip
        yield found
