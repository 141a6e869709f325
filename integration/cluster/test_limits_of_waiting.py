"""Tests of limited waits: for the first slots of a query, and for growth that does not pay."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.errors import StreamingQueryException

from integration.cluster.application import Application, application, now
from integration.cluster.queries import start_enrichment, start_totals
from integration.streaming.driver import Driver
from integration.streaming.waiting import PATIENCE_S, eventually
from spark_elastic_lab.demo.cluster import Cluster
from spark_elastic_lab.demo.data import Tables

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

SCHEDULER = "spark.elastic.adaptiveScheduler"
LIMITS = {
    f"{SCHEDULER}.submission.resourceWaitTimeout": "3s",
    # Growth never pays, but happens after the maximum delay.
    f"{SCHEDULER}.minParallelismIncrease": "1000",
    f"{SCHEDULER}.scalingInterval.max": "45s",
}


@pytest.fixture(scope="module")
def app(
    master: Cluster, jvm: Driver, tables: Tables, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Application]:
    with application(master, jvm, tables, tmp_path_factory.mktemp("limits"), LIMITS) as running:
        yield running


def test_a_query_in_reactive_mode_that_gets_no_slot_ends_with_the_reason(app: Application) -> None:
    app.feed.start()
    query = app.start("enrichment", start_enrichment)
    setting = f"{SCHEDULER}.submission.resourceWaitTimeout (3 s)"
    # On a busy machine, the end of the wait is noticed later.
    why = r"needs 1 slot, has 0 after ([3-9]|\d\d+)(\.\d)? s"
    with pytest.raises(StreamingQueryException, match=why) as failed:
        query.awaitTermination(int(PATIENCE_S))
    assert setting in str(failed.value)
    assert query.lastProgress is None
    # A query submitted while the policy connects is in its first snapshot and reported again.
    eventually(lambda: "failure_no_resources" in app.story.reasons("enrichment"), "the journal says it, too")
    assert [*dict.fromkeys(app.story.reasons("enrichment"))][:2] == [
        "waiting_for_resources",
        "failure_no_resources",
    ]
    del app.queries["enrichment"]


@pytest.mark.slow
def test_growth_that_is_never_worth_it_comes_when_its_time_is_over(app: Application) -> None:
    app.have_workers(1)
    app.start("totals", start_totals)
    app.wait_in_force(1, ["totals"], 0)
    began = now()
    app.have_workers(2)
    eventually(lambda: "increase_too_small" in app.story.reasons("totals", began), "it is held back")
    app.wait_in_force(2, ["totals"], began)
    assert "rescale_overdue" in app.story.reasons("totals", began)
    assert app.story.rescaled_to("totals") == [2]


def test_the_journal_can_be_replayed(app: Application) -> None:
    app.check_journal()
