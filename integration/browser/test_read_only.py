"""Tests that users without rights see no buttons, and that names from the application stay text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from integration.browser.chromium import Watched, queries, watched
from integration.streaming.driver import Driver
from integration.streaming.http import Client
from integration.streaming.launch import WITH_PLUGIN
from integration.streaming.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]

NAME = "<img src=x onerror=alert(1)><script>alert(2)</script>"
CONF = {
    **WITH_PLUGIN,
    "spark.ui.enabled": "true",
    "spark.app.name": NAME,
    "spark.elastic.schedulerMode": "adaptive",
    "spark.elastic.adaptiveScheduler.submission.resourceStabilizationTimeout": "0",
}


def query(jvm: Driver, browser: Browser, folder: Path, **conf: str) -> Iterator[Watched]:
    """Open the page of a running query."""
    settings = {f"spark.{name.replace('_', '.')}": value for name, value in conf.items()}
    with jvm.session({**CONF, **settings}) as spark:
        rows = spark.readStream.format("rate").load()
        keyed = rows.selectExpr("value % 7 AS key").repartition("key")
        stream = keyed.writeStream.format("noop").queryName(NAME).option("checkpointLocation", str(folder))
        started = stream.trigger(processingTime="300 milliseconds").start()
        url = str(spark.sparkContext.uiWebUrl)
        api = Client(url, "/elastic/api/v1")
        eventually(lambda: api.get(f"/queries/{started.id}").json.get("lastBatch"), "a batch is known of")
        with watched(browser, f"{url}/elastic/#query={started.id}") as page:
            yield page


@pytest.fixture
def read_only(browser: Browser, jvm: Driver, tmp_path: Path) -> Iterator[Watched]:
    yield from query(jvm, browser, tmp_path / "checkpoint", elastic_rest_readOnly="true")


@pytest.fixture
def without_kill(browser: Browser, jvm: Driver, tmp_path: Path) -> Iterator[Watched]:
    yield from query(jvm, browser, tmp_path / "checkpoint", ui_killEnabled="false")


@pytest.mark.parametrize("who", ["read_only", "without_kill"])
def test_who_may_not_write_sees_bounds_but_no_buttons(who: str, request: pytest.FixtureRequest) -> None:
    page = request.getfixturevalue(who).page
    bounds = page.get_by_role("table", name="Bounds")
    for vertex in ("Shuffle", "Source 0"):
        expect(bounds.locator("tbody").filter(has_text=vertex)).to_contain_text("no bound")
    expect(bounds.get_by_role("button")).to_have_count(0)
    expect(bounds.get_by_role("textbox")).to_have_count(0)
    # A name that looks like markup is shown literally, and nothing in it is executed.
    expect(page.get_by_role("heading", name=NAME)).to_be_visible()
    page.get_by_role("link", name="All queries").click()
    expect(queries(page).get_by_role("link", name=NAME)).to_be_visible()
    expect(queries(page)).to_contain_text("Shuffle: ≥ 1, Source 0: ≥ 1")
    assert page.locator("main img[src=x]").count() == 0
