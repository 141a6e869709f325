"""Tests of dashboard and alert rules in a real Prometheus, which scrapes a real driver."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.go_modules import is_built, missing_go
from integration.monitoring.prometheus import DASHBOARD, PROMETHEUS, Prometheus, PrometheusClient
from integration.streaming.conftest import jvm as jvm
from integration.streaming.driver import PLUGIN, Driver
from integration.streaming.launch import python_that_finds
from integration.streaming.waiting import eventually

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(missing_go() is not None and not is_built(PROMETHEUS), reason=str(missing_go())),
]
QUERY = "windows"
POLICY = """
from spark_elastic.policies import ClusterView, QueryWish, Wish


class Two:
    def decide(self, view: ClusterView) -> Wish:
        return Wish(queries=dict.fromkeys(view.queries, QueryWish(slots=2, reason="two are enough")))
"""
# What only Kafka's source reports.
OF_KAFKA = {"spark_elastic_query_backlog_records", "spark_elastic_query_records_behind"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("prometheus")


@pytest.fixture(scope="module")
def driver(jvm: Driver, folder: Path) -> Iterator[str]:
    """Run a query that has all metrics but those of Kafka; return the address of the driver's UI."""
    (folder / "always_two.py").write_text(POLICY)
    conf = {
        **PLUGIN,
        "spark.ui.enabled": "true",
        "spark.elastic.python": python_that_finds(folder),
        "spark.elastic.schedulerMode": "adaptive",
        "spark.elastic.policy": "always_two:Two",
        f"spark.elastic.query.{QUERY}.lowerBound": "1",
        f"spark.elastic.query.{QUERY}.upperBound": "2",
    }
    with jvm.session(conf) as spark:
        rows = spark.readStream.format("rate").option("rowsPerSecond", 20).load()
        late = rows.withWatermark("timestamp", "1 minute").groupBy("timestamp").count()
        writer = late.writeStream.queryName(QUERY).format("noop").trigger(processingTime="1 second")
        query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
        yield str(spark.sparkContext.uiWebUrl)
        query.stop()


@pytest.fixture(scope="module")
def prometheus(driver: str, folder: Path) -> Iterator[PrometheusClient]:
    with Prometheus(folder, driver) as running:
        yield running.client


def expressions() -> list[str]:
    """Return the dashboard's expressions, with all queries chosen as Grafana does it."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    shown = [target["expr"] for panel in panels for target in panel.get("targets", ())]
    return [expression.replace("$query", ".*") for expression in shown]


def test_each_panel_has_data(prometheus: PrometheusClient) -> None:
    def empty() -> set[str]:
        return {each.partition("{")[0] for each in expressions() if prometheus.query(each) == []}

    eventually(lambda: empty() == OF_KAFKA, "all panels but Kafka's have data", every_s=1)


def test_the_driver_is_scraped_without_complaints(prometheus: PrometheusClient) -> None:
    (target,) = prometheus.targets()
    assert (target["health"], target["lastError"]) == ("up", "")
    lost = prometheus.value("scrape_samples_scraped - scrape_samples_post_metric_relabeling")
    assert lost == 0


def test_no_alert_is_raised_about_a_query_that_is_well(prometheus: PrometheusClient) -> None:
    rules = eventually(
        lambda: [rule for rule in prometheus.rules() if rule["health"] != "unknown"],
        "the rules are evaluated",
        every_s=1,
    )
    found = {rule["name"]: (rule["health"], rule["state"]) for rule in rules}
    assert found == dict.fromkeys(found, ("ok", "inactive"))
    assert len(found) > 4
