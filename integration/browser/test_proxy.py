"""Tests of the page behind the proxy of a Standalone master: its links and its buttons work there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from integration.browser.chromium import queries, watched
from integration.streaming.driver import Driver, driver
from integration.streaming.launch import WITH_PLUGIN
from integration.streaming.proxying import Proxying

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(240)]

CONF = {
    **WITH_PLUGIN,
    "spark.ui.enabled": "true",
    "spark.ui.reverseProxy": "true",
    "spark.elastic.schedulerMode": "adaptive",
}


@pytest.fixture
def jvm(tmp_path: Path) -> Iterator[Driver]:
    """Start a JVM for one application only, as Spark keeps the path of the proxy in a system property."""
    with driver(tmp_path / "driver") as started:
        yield started


def test_bounds_are_changed_through_it(browser: Browser, jvm: Driver, tmp_path: Path) -> None:
    # No worker is needed: a waiting query has bounds as well.
    with (
        Proxying(tmp_path / "cluster") as cluster,
        jvm.session({**CONF, "spark.master": cluster.master_url}) as spark,
    ):
        rows = spark.readStream.format("rate").load().selectExpr("value % 7 AS key").repartition("key")
        rows.writeStream.format("noop").queryName("spread").start()
        url = f"{cluster.master_ui}/proxy/{spark.sparkContext.applicationId}/elastic/"
        with watched(browser, url) as found:
            page = found.page
            queries(page).get_by_role("link", name="spread").click()
            expect(page.locator(".alert").filter(has_text="Waiting")).to_be_visible()
            page.get_by_label("Max partitions of shuffle").fill("5")
            page.keyboard.press("Enter")
            said = page.get_by_role("status").filter(has_text="New bounds of Shuffle: 1 to 5.")
            expect(said).to_be_attached()
            # The way back is a link in Spark's header, not on the page.
            page.get_by_role("link", name="Elastic").click()
            expect(queries(page).get_by_role("row").filter(has_text="spread")).to_contain_text("1 – 5")
    assert cluster.left_over() == []
