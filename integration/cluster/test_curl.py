"""Tests that a client written for Flink, a shell script, rescales a query on a cluster."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from integration.cluster.application import Application, application, now
from integration.cluster.queries import start_totals
from integration.streaming.driver import Driver
from spark_elastic_lab.demo.cluster import Cluster
from spark_elastic_lab.demo.data import Tables

pytestmark = [
    pytest.mark.integration,
    pytest.mark.slow,
    pytest.mark.timeout(300),
    pytest.mark.skipif(shutil.which("curl") is None, reason="this machine has no curl"),
]

SCRIPT = Path(__file__).parent / "rescale.sh"


@pytest.fixture(scope="module")
def app(
    master: Cluster, jvm: Driver, tables: Tables, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Application]:
    conf = {
        "spark.ui.enabled": "true",
        "spark.executor.cores": "1",
        "spark.elastic.schedulerMode": "adaptive",
        "spark.elastic.query.totals.upperBound": "2",
        "spark.elastic.adaptiveScheduler.submission.resourceStabilizationTimeout": "0",
    }
    with application(master, jvm, tables, tmp_path_factory.mktemp("curl"), conf) as running:
        yield running


def rescale(app: Application, upper: str) -> subprocess.CompletedProcess[str]:
    job = str(app.queries["totals"].id).replace("-", "")
    command = [str(SCRIPT), str(app.spark.sparkContext.uiWebUrl), job, upper]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_a_query_follows_the_bounds_that_the_script_puts(app: Application) -> None:
    app.have_workers(2)
    app.feed.start()
    app.start("totals", start_totals)
    app.wait_in_force(2, ["totals"], 0)
    for upper in (1, 2):
        asked = now()
        done = rescale(app, str(upper))
        assert (done.returncode, done.stdout) == (0, "{}"), done.stderr
        app.wait_in_force(upper, ["totals"], asked)
        expected = "rescale_into_bounds" if upper == 1 else "rescale_always"
        assert expected in app.story.reasons("totals", asked)


def test_bounds_that_make_no_sense_change_nothing_and_say_why(app: Application) -> None:
    done = rescale(app, "0")
    assert done.returncode != 0
    assert "upperBound of vertex shuffle is 0" in json.loads(done.stdout)["errors"][0]


def test_the_command_finds_the_driver_through_the_master(app: Application) -> None:
    id_ = app.spark.sparkContext.applicationId
    command = [sys.executable, "-m", "spark_elastic_tools.cli", "status", "--json"]
    found = subprocess.run(
        [*command, "--app", id_, "--master-ui", app.cluster.master_ui],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["overview"]["application"]["id"] == id_


def test_the_output_is_that_of_a_batch_query(app: Application) -> None:
    app.check_output()
