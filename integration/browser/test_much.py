"""Tests that a page with much to show stays small: 500 queries, and one of them with 1,000 rescales."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from attrs import evolve
from playwright.sync_api import Browser, expect

from integration.browser.chromium import Watched, queries, watched
from integration.browser.stand_in import Site, serve
from integration.streaming.waiting import eventually
from spark_elastic.core import events as ev
from tests.unit.http.world import ADAPTIVE, COUNTS, ID, NOW, REQUIREMENTS, World, body, world

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

QUERIES = 500
RESCALES = 1_000
# Enough for a page of 50 queries, 10 stages, 10 decisions; or of 25 rescales, 25 decisions and 100 marks.
MOST_NODES = 2_500
CONF = {**ADAPTIVE, "spark.elastic.history.size": str(RESCALES)}


@pytest.fixture(scope="module")
def policy() -> Iterator[World]:
    many = [
        evolve(COUNTS, query=f"{n:08d}-0000-4000-8000-000000000000", name=f"query {n}")
        for n in range(QUERIES)
    ]
    with world(CONF, queries=(COUNTS, *many)) as running:
        for change in range(RESCALES):
            assert running.put(REQUIREMENTS, body(1 + change % 2, 7)).status == 200
        yield running


@pytest.fixture(scope="module")
def site(browser: Browser, policy: World) -> Iterator[Site]:
    with serve(policy) as found:
        yield found


@pytest.fixture
def page(site: Site, browser: Browser) -> Iterator[Watched]:
    with watched(browser, site.url) as found:
        yield found


def after_updates(page: Watched, site: Site, policy: World) -> int:
    """Return the number of elements on the page after some rounds with changes."""
    for batch in range(3):
        policy.send(
            ev.QueryProgress, query=ID, run="r1", batch=batch, started=NOW + batch, duration_ms=40,
            partitions=4,
        )  # fmt: skip
        with page.page.expect_response("**/overview*"):
            pass
    return page.nodes()


def test_queries_come_a_page_at_a_time(page: Watched, site: Site, policy: World) -> None:
    names = page.page.get_by_role("table", name="Streaming queries").get_by_role("link")
    expect(names).to_have_count(50)
    before = page.nodes()
    assert before < MOST_NODES
    page.page.get_by_role("button", name="Next").click()
    expect(names.first).to_have_text("query 49")
    assert after_updates(page, site, policy) < before + 50


def test_queries_are_found_by_name(page: Watched, site: Site) -> None:
    names = page.page.get_by_role("table", name="Streaming queries").get_by_role("link")
    page.page.get_by_label("Search queries").fill("QUERY 49")
    # Query 49, and queries 490 to 499.
    expect(names).to_have_count(11)


def test_a_query_with_a_thousand_rescales(page: Watched, site: Site, policy: World) -> None:
    queries(page.page).get_by_role("link", name="counts", exact=True).click()
    rescales = page.page.get_by_role("table", name="Rescales").locator("tbody")
    # All of them are ignored: nothing has followed from the bounds.
    page.page.get_by_label("Show ignored ones").check()
    expect(rescales).to_have_count(25)
    before = page.nodes()
    assert before < MOST_NODES
    assert after_updates(page, site, policy) < before + 50
    older = page.page.get_by_role("navigation", name="Pages of: Rescales").get_by_role("button", name="Older")
    newest = rescales.first.get_by_role("button").get_attribute("aria-label")
    for _ in range(3):
        seen = str(rescales.first.get_by_role("button").get_attribute("aria-label"))
        older.click()
        expect(rescales.first.get_by_role("button")).not_to_have_attribute("aria-label", seen)
    assert rescales.count() == 25
    assert newest != rescales.first.get_by_role("button").get_attribute("aria-label")
    assert page.nodes() < before + 50


def test_nothing_is_asked_for_while_nobody_looks(page: Watched, site: Site) -> None:
    expect(queries(page.page).get_by_role("link", name="counts", exact=True)).to_be_visible()
    page.page.evaluate(
        "Object.defineProperty(document, 'hidden', {configurable: true, get: () => true});"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )
    page.page.wait_for_load_state("networkidle")
    asked = site.asked
    # Longer than the pause between two rounds.
    page.page.wait_for_timeout(5_000)
    assert site.asked == asked
    page.page.evaluate("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
    eventually(lambda: site.asked > asked, "the page asks again")
