"""Tests of adaptive mode on a cluster: bounds change while queries run, and executors follow them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.cluster.application import Application, application, now
from integration.cluster.queries import start_enrichment, start_totals
from integration.streaming.driver import Driver
from integration.streaming.waiting import eventually
from spark_elastic.core.actions import DecommissionExecutors, RequestExecutors
from spark_elastic_lab.demo.cluster import Cluster
from spark_elastic_lab.demo.data import Tables

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

QUERIES = ("enrichment", "totals")


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("policy") / "policy.yaml"


def allow(policy: Path, upper: int, lower: int = 1) -> None:
    """Write bounds for both queries; a concurrent reader sees either the old file or the new one."""
    bounds = f"{{lowerBound: {lower}, upperBound: {upper}}}"
    new = policy.with_suffix(".new")
    new.write_text("version: 1\nqueries:\n" + "".join(f"  {name}: {bounds}\n" for name in QUERIES))
    new.replace(policy)


@pytest.fixture(scope="module")
def app(
    master: Cluster, jvm: Driver, tables: Tables, policy: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Application]:
    allow(policy, upper=1)
    conf = {
        "spark.executor.cores": "1",
        "spark.elastic.schedulerMode": "adaptive",
        "spark.elastic.policyFile": str(policy),
        "spark.elastic.slotIdleTimeout": "2s",
        "spark.elastic.adaptiveScheduler.submission.resourceStabilizationTimeout": "0",
        # The gain model must not block bounds.
        "spark.elastic.adaptiveScheduler.rescalePolicy": "gain",
    }
    with application(master, jvm, tables, tmp_path_factory.mktemp("bounds"), conf) as running:
        yield running


def test_queries_keep_to_their_upper_bound_and_surplus_is_given_back(app: Application) -> None:
    app.have_workers(4)
    app.feed.start()
    app.start("enrichment", start_enrichment)
    app.start("totals", start_totals)
    app.wait_in_force(1, QUERIES, 0)
    app.wait_for_slots(2)
    assert [order for order in app.story.orders if isinstance(order, DecommissionExecutors)]
    app.check_alive()


def test_bounds_that_are_raised_while_they_run_bring_executors_and_parallelism(
    app: Application, policy: Path
) -> None:
    raised = now()
    allow(policy, upper=2, lower=2)
    app.wait_for_slots(4)  # the lower bounds of both
    app.wait_in_force(2, QUERIES, raised)
    requests = [order.total for order in app.story.orders if isinstance(order, RequestExecutors)]
    assert requests[-1] == 4
    assert "rescale_into_bounds" in app.story.reasons("totals", raised)


def test_a_lower_bound_that_cannot_be_met_stops_no_running_query(app: Application, policy: Path) -> None:
    raised = now()
    allow(policy, upper=64, lower=64)
    eventually(lambda: "below_lower_bounds" in app.story.reasons("totals", raised), "it is said")
    app.wait_in_force(2, QUERIES, now())


def test_a_file_with_errors_changes_nothing(app: Application, policy: Path) -> None:
    spoiled = now()
    policy.write_text("version: 1\nqueries:\n  totals: {upperBound: many}\n")

    def refused() -> bool:
        return any(said.reason == "policy_file_refused" and said.at >= spoiled for said in app.story.said)

    eventually(refused, "the file is refused")
    app.wait_in_force(2, QUERIES, now())


def test_bounds_that_are_lowered_while_they_run(app: Application, policy: Path) -> None:
    lowered = now()
    allow(policy, upper=1)
    app.wait_in_force(1, QUERIES, lowered)
    app.wait_for_slots(2)


def test_the_output_is_that_of_batch_queries(app: Application) -> None:
    app.check_output()


def test_the_journal_can_be_replayed(app: Application) -> None:
    app.check_journal()
