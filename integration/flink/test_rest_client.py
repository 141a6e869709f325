"""Tests that Flink's own REST client, from Flink's own jars, reads the bounds of a query and sets others.

It talks to a plain HTTP server where answers are compared, and to a driver's own UI for the rest.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import evolve

from integration.flink.jars import class_path
from integration.spark_minor import MOVES_STATE
from integration.streaming.driver import driver as start_driver
from integration.streaming.files import Inbox
from integration.streaming.http import Client
from integration.streaming.launch import AT_ONCE, WITH_PLUGIN
from integration.streaming.waiting import eventually
from integration.streaming.world import Totals, partitions_after_batch, totals
from spark_elastic.core.events import SourceFacts
from spark_elastic_tools.java import find_java
from tests.unit.http.world import API, COUNTS, ID, REQUIREMENTS
from tests.unit.tools.cli.served import Served, served

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

PROGRAM = Path(__file__).parent / "Bounds.java"
JOB = ID.replace("-", "")
MOST = 32_768


@pytest.fixture
def driver() -> Iterator[Served]:
    with served(queries=(evolve(COUNTS, sources=(SourceFacts(name="rate"),)),)) as running:
        yield running


def client(url: str, job: str, *change: object) -> list[str]:
    """Return the lines that the client prints: vertex, lower and upper bound, or a refusal."""
    root = f"{url}{API.removesuffix('/v1')}"  # the client adds the version
    command = [find_java(), "-XX:TieredStopAtLevel=1", "-cp", class_path(), str(PROGRAM), root, job]
    done = subprocess.run(
        [*command, *map(str, change)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def bounds(driver: Served, *change: object, job: str = JOB) -> list[str]:
    return client(driver.url, job, *change)


def vertex_ids(driver: Served) -> dict[str, str]:
    ids: dict[str, str] = driver.world.get(f"{API}/queries/{ID}").json["vertexIds"]
    return ids


def test_it_reads_the_bounds_of_each_vertex(driver: Served) -> None:
    ids = vertex_ids(driver)
    assert sorted(bounds(driver)) == sorted(f"{ids[name]} 1 {MOST}" for name in ("shuffle", "source-0"))


def test_it_sets_other_bounds_which_are_in_force(driver: Served) -> None:
    ids = vertex_ids(driver)
    said = bounds(driver, ids["shuffle"], 2, 3)
    assert sorted(said) == sorted([f"{ids['shuffle']} 2 3", f"{ids['source-0']} 1 {MOST}"])
    assert driver.world.bounds() == (2, 3)
    now = driver.world.get(REQUIREMENTS).json
    assert now["source-0"]["parallelism"] == {"lowerBound": 1, "upperBound": MOST}


def test_it_reads_why_it_is_refused(driver: Served) -> None:
    ids = vertex_ids(driver)
    (said,) = bounds(driver, ids["shuffle"], 1, MOST + 1)
    assert said.startswith("400 ")
    assert f"upperBound of vertex shuffle is {MOST + 1}, allowed is up to its max parallelism" in said
    (said,) = bounds(driver, "0" * 32, 1, 2)
    assert said.startswith("400 ")
    assert "is not a vertex of this query" in said
    (said,) = bounds(driver, job="0" * 32)
    assert said.startswith("404 ")
    assert "no query has the id" in said
    assert driver.world.bounds() == (1, MOST)


@pytest.mark.slow
@pytest.mark.skipif(not MOVES_STATE, reason="the count of its stateful query cannot be changed")
def test_a_query_of_a_real_driver_is_rescaled_by_it(tmp_path: Path) -> None:
    conf = {
        **WITH_PLUGIN,
        **AT_ONCE,
        "spark.ui.enabled": "true",
        "spark.elastic.schedulerMode": "adaptive",
        "spark.elastic.query.counted.upperBound": "1",
        "spark.elastic.adaptiveScheduler.rescalePolicy": "always",
    }
    inbox, sink = Inbox(tmp_path / "in"), Totals()
    with start_driver(tmp_path / "driver") as jvm, jvm.session(conf) as spark:
        writer = totals(spark, inbox).writeStream.queryName("counted").outputMode("update").foreachBatch(sink)
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        url = str(spark.sparkContext.uiWebUrl)

        def partitions() -> int:
            return partitions_after_batch(query, inbox)

        assert partitions() == 1
        job = query.id.replace("-", "")
        shuffle = Client(url).get(f"{API}/queries/{query.id}").json["vertexIds"]["shuffle"]
        assert f"{shuffle} 1 1" in client(url, job)
        assert f"{shuffle} 1 2" in client(url, job, shuffle, 1, 2)
        eventually(lambda: partitions() == 2, "the bounds are in force")
        assert sink.now == inbox.totals()
        query.stop()
