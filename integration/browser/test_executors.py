"""Tests, in a real browser, of how the tab shows executors that get no tasks."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from integration.browser.chromium import watched
from integration.browser.stand_in import serve
from spark_elastic.core import events as ev
from tests.unit.http.world import COUNTS, world

pytestmark = pytest.mark.timeout(180)


def test_an_excluded_executor_is_shown_with_the_reason(browser: Browser) -> None:
    with (
        world(queries=(COUNTS,)) as policy,
        serve(policy) as site,
        watched(browser, site.url) as found,
    ):
        rows = found.page.get_by_role("table", name="Executors").locator("tbody tr")
        expect(rows.nth(1)).to_contain_text("in use")
        policy.send(ev.ExecutorExcluded, executor="2", reason="<b>2</b> tasks failed on it")
        # Without a reload, and as text.
        expect(rows.nth(1)).to_contain_text("excluded: <b>2</b> tasks failed on it")
        policy.send(ev.ExecutorUnexcluded, executor="2")
        expect(rows.nth(1)).to_contain_text("in use")
