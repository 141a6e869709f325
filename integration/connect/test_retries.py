"""Tests of a restart strategy under Spark Connect, where `foreachBatch` runs in a process of the server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from integration.connect.server import ConnectServer, connect_server
from integration.connect.test_connect import CONF, numbered, started
from integration.streaming.files import Inbox
from integration.streaming.waiting import PATIENCE_S

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]

STRATEGY = "spark.elastic.restartStrategy"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    conf = {**CONF, f"{STRATEGY}.type": "fixed-delay", f"{STRATEGY}.fixedDelay.delay": "100ms"}
    with connect_server(tmp_path_factory.mktemp("retries") / "server", conf) as running:
        yield running


def test_a_task_that_fails_is_run_again_and_the_clients_handle_sees_one_run(
    server: ConnectServer, spark: SparkSession, tmp_path: Path
) -> None:
    inbox, failed = Inbox(tmp_path / "in"), tmp_path / "failed"

    def fail_once(value: int) -> int:
        if value == 15 and not failed.exists():
            failed.touch()
            raise ValueError("fifteen comes too early")
        return value

    checked = F.udf(fail_once, "int", useArrow=False)("value").alias("value")
    query = (
        numbered(spark, inbox, "text")
        .select(checked)
        .dropDuplicates(["value"])
        .writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        .toTable("retried")
    )
    run = query.runId
    for _ in range(3):
        inbox.put()
        query.processAllAvailable()
    assert failed.exists()
    assert (query.isActive, query.exception(), query.runId) == (True, None, run)
    (failure,) = server.api.get(f"/queries/{query.id}/exceptions").json["exceptions"]
    assert "fifteen comes too early" in str(failure)
    assert server.api.get(f"/queries/{query.id}").json["restarts"] == 1
    query.stop()
    assert sorted(row["value"] for row in spark.table("retried").collect()) == inbox.values()


def test_a_function_for_batches_that_fails_is_not_called_again_since_its_process_has_ended(
    server: ConnectServer, spark: SparkSession, tmp_path: Path
) -> None:
    inbox = Inbox(tmp_path / "in")

    def refuse(_batch: DataFrame, _number: int) -> None:
        raise ValueError("no batch is good enough")

    inbox.put()
    query = started(numbered(spark, inbox, "text").writeStream.foreachBatch(refuse))
    with pytest.raises(StreamingQueryException, match="no batch is good enough"):
        query.awaitTermination(int(PATIENCE_S))
    assert server.api.get(f"/queries/{query.id}").json["restarts"] == 0
