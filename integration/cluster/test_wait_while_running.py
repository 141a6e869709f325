"""Tests that a running query without executors ends with the reason after the time that its user allows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.errors import StreamingQueryException

from integration.cluster.application import Application, application
from integration.cluster.queries import start_totals
from integration.streaming.driver import Driver
from integration.streaming.waiting import PATIENCE_S, eventually
from spark_elastic_lab.demo.cluster import Cluster
from spark_elastic_lab.demo.data import Tables

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

WAIT = "spark.elastic.adaptiveScheduler.submission.resourceWaitTimeout"


@pytest.fixture(scope="module")
def app(
    master: Cluster, jvm: Driver, tables: Tables, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Application]:
    # The first worker takes longer to start than the tested wait.
    with application(master, jvm, tables, tmp_path_factory.mktemp("alone"), {WAIT: "15s"}) as running:
        yield running


def test_a_query_in_the_midst_of_a_batch_ends_with_the_reason(app: Application) -> None:
    app.have_workers(1, cores=2)
    app.feed.start()
    query = app.start("totals", start_totals)
    eventually(lambda: query.lastProgress is not None, "its first micro-batch")
    app.cluster.kill_worker(app.workers.pop())
    app.wait_for_slots(0)
    with pytest.raises(StreamingQueryException, match=r"needs 1 slot, has 0 after .* s") as failed:
        query.awaitTermination(int(PATIENCE_S))
    assert f"{WAIT} (15 s)" in str(failed.value)
    assert "failure_no_resources" in app.story.reasons("totals")
    del app.queries["totals"]


def test_the_journal_can_be_replayed(app: Application) -> None:
    app.feed.finish()
    app.check_journal()
