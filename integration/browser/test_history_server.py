"""Tests that a History Server shows the page from the event log after the application has ended."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from integration.browser.chromium import queries, watched
from integration.streaming.driver import Driver
from integration.streaming.http import Client
from integration.streaming.launch import WITH_PLUGIN
from integration.streaming.waiting import PATIENCE_S, eventually
from spark_elastic.jar import jar_path
from spark_elastic_lab.demo.cluster import SMALL_JVM, isolated_environment, spark_home
from spark_elastic_lab.demo.processes import LoggedProcess

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(300)]

CONF = {
    **WITH_PLUGIN,
    "spark.eventLog.enabled": "true",
    "spark.elastic.schedulerMode": "adaptive",
    "spark.elastic.adaptiveScheduler.submission.resourceStabilizationTimeout": "0",
}


@contextmanager
def history_server(folder: Path, logs: Path) -> Iterator[str]:
    """Run a History Server with our jar, and return its address."""
    options = {
        "spark.history.fs.logDirectory": logs.as_uri(),
        "spark.history.ui.port": "0",
        # Our data goes through the History Server's store on disk, which it uses for many applications.
        "spark.history.store.path": str(folder / "store"),
    }
    env = {
        **isolated_environment(folder / "conf", folder / "local"),
        "SPARK_DAEMON_CLASSPATH": str(jar_path()),
        "SPARK_DAEMON_JAVA_OPTS": SMALL_JVM,
        "SPARK_HISTORY_OPTS": " ".join(f"-D{key}={value}" for key, value in options.items()),
    }
    command = [str(spark_home() / "bin" / "spark-class"), "org.apache.spark.deploy.history.HistoryServer"]
    process = LoggedProcess("history server", command, env=env, log=folder / "history.log", cwd=folder)
    try:
        yield process.wait_for_line(r"HistoryServer to \S+, and started at (\S+)", PATIENCE_S)[1]
    finally:
        process.stop()


def run_application(jvm: Driver, logs: Path) -> tuple[str, str, str]:
    """Run a query and a batch job until both are shown; return the ids of these and of its execution."""
    with jvm.session({**CONF, "spark.eventLog.dir": logs.as_uri(), "spark.ui.enabled": "true"}) as spark:
        rows = spark.readStream.format("rate").load().selectExpr("value % 7 AS key").repartition("key")
        stream = (
            rows.writeStream.format("noop").queryName("spread").trigger(processingTime="300 milliseconds")
        )
        started = stream.start()
        numbers = spark.newSession().range(0, 10_000).selectExpr("id % 10 AS key")
        numbers.groupBy("key").count().write.format("noop").mode("overwrite").save()
        api = Client(str(spark.sparkContext.uiWebUrl), "/elastic/api/v1")
        eventually(lambda: api.get(f"/queries/{started.id}").json.get("lastBatch"), "a batch is known of")

        def decided() -> str | None:
            """Return the execution whose shuffle has got its number and its ranges."""
            for one in api.get("/executions").json["executions"]:
                if {stage["question"] for stage in one["stages"]} >= {"InitialCount", "Ranges"}:
                    return str(one["execution"])
            return None

        execution = eventually(decided, "the stages were decided about")
        return str(spark.sparkContext.applicationId), str(started.id), str(execution)


def test_it_shows_the_same_from_the_event_log(browser: Browser, jvm: Driver, tmp_path: Path) -> None:
    logs = tmp_path / "events"
    logs.mkdir()
    application, query, execution = run_application(jvm, logs)
    assert os.listdir(logs)
    with history_server(tmp_path, logs) as url:
        history = Client(url, f"/history/{application}")
        eventually(lambda: history.get("/jobs/").status == 200, "the event log is read")
        with watched(browser, f"{url}/history/{application}/elastic/") as found:
            page = found.page
            expect(page.locator(".navbar .nav-item.active")).to_have_text("Elastic")
            expect(page.get_by_role("status").filter(has_text="This application has ended")).to_be_visible()
            # All of it comes out of the event log, and the plan and its jobs from the server's own API.
            expect(page.get_by_role("application", name="Slots, load and lag")).to_be_visible()
            expect(page.locator(".elastic-tiles .card").filter(has_text="Executor-hours")).to_be_visible()
            expect(page.get_by_role("table", name="SQL Executions").locator("tbody")).not_to_have_count(0)
            page.goto(f"{url}/history/{application}/elastic/#sql={execution}")
            expect(page.get_by_role("table", name="Batch Stages").locator("tbody")).not_to_have_count(0)
            expect(page.locator(".elastic-plan g.decided")).not_to_have_count(0)
            page.get_by_role("link", name="Spark's page of it").click()
            expect(page.locator("body")).to_contain_text("Details for Query")
            page.go_back()
            page.get_by_role("link", name="Overview").click()
            queries(page).get_by_role("link", name="spread").click()
            expect(page.locator("main")).to_contain_text(query)
            expect(page.locator(".elastic-timeline path.partitions").last).to_be_attached()
            expect(page.get_by_role("table", name="Rescales")).to_contain_text("initial schedule")
            expect(page.get_by_role("table", name="Decisions")).to_contain_text("Start with")
            expect(page.get_by_role("button", name="One partition more")).to_have_count(0)
        assert history.get("/elastic/api/v1/queries/nobody").status == 404
