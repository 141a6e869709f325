"""Before a query is restarted, executors that have not worked yet read a part of its state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from integration.cluster.executors import Executors, with_executors
from integration.streaming.driver import Driver
from integration.streaming.files import SCHEMA, Inbox
from integration.streaming.state_store import REPARTITIONABLE
from integration.streaming.waiting import eventually
from spark_elastic.demo.cluster import Cluster

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

WarmUp = Callable[[Path, int], str]


@pytest.fixture
def executors(master: Cluster, jvm: Driver) -> Iterator[Executors]:
    with with_executors(master, jvm, 1, {**REPARTITIONABLE, "spark.sql.shuffle.partitions": "2"}) as found:
        yield found


@pytest.fixture
def warm_up(executors: Executors, jvm: Driver) -> WarmUp:
    """Give what orders it, and returns what is said of it, "" if nothing."""

    def order(checkpoint: Path, most_ms: int) -> str:
        since = len(jvm.said())
        session = executors.spark._jsparkSession
        jvm.jvm.org.apache.spark.sql.elastic.WarmUp.apply(session, str(checkpoint), most_ms)
        return "".join(line for line in jvm.said()[since:] if "the new executors" in line)

    return order


def test_only_those_that_have_not_worked_read(executors: Executors, warm_up: WarmUp, tmp_path: Path) -> None:
    inbox = Inbox(tmp_path / "in")
    inbox.put(2)
    checkpoint = tmp_path / "checkpoint"
    rows = executors.spark.readStream.schema(SCHEMA).json(str(inbox.folder))
    writer = rows.groupBy("key").count().writeStream.outputMode("update").format("noop")
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()
    state = executors.spark.read.format("statestore").load(str(checkpoint))
    expected = state.where("partition_id = 0").count()
    assert expected > 0

    assert warm_up(checkpoint, 5_000) == ""
    executors.add()
    assert f"the new executors 1 read {expected} rows" in warm_up(checkpoint, 30_000)
    eventually(lambda: executors.tasks()["1"] > 0, "it has worked")
    assert warm_up(checkpoint, 5_000) == ""
    executors.add()
    assert "the new executors 2 were too slow" in warm_up(checkpoint, 1)


def test_what_cannot_be_read_is_left(executors: Executors, warm_up: WarmUp, tmp_path: Path) -> None:
    assert warm_up(tmp_path / "nothing", 5_000) == ""
    assert executors.tasks() == {"0": 0}
