"""Tests, in a real browser, of how the tab shows a policy's plan for a query, and what it cannot change."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect

from integration.browser.chromium import watched
from integration.browser.stand_in import serve
from tests.unit.http.test_plans import AUTOSCALE, EACH_SECOND, batch
from tests.unit.http.world import ADAPTIVE, ID, OLD_COUNTS, world

pytestmark = pytest.mark.timeout(180)

NARROW = 400
BATCHES = 6


@pytest.mark.parametrize("width", [1280, NARROW])
def test_it_shows_wish_objective_forecast_and_the_line_with_its_points(browser: Browser, width: int) -> None:
    with (
        world(AUTOSCALE, queries=(EACH_SECOND,)) as policy,
        serve(policy) as site,
        watched(browser, f"{site.url}#query={ID}", width=width) as found,
    ):
        page = found.page
        part = page.locator("details").filter(has_text="Autoscaling")
        expect(part).to_contain_text("until micro-batches have shown a rate")
        expect(page.locator(".elastic-line")).to_have_count(0)
        for number in range(BATCHES):
            step = number % 3
            batch(policy, number, rows=1_000 + 200 * step, took=800 + 50 * step, records_behind=90_000)
        # Without a reload.
        tiles = part.locator(".card")
        expect(tiles.filter(has_text="Load")).to_contain_text("target 80 %, scales up at 90 %")
        expect(tiles.filter(has_text="Slots wanted")).to_contain_text("allowed")
        expect(tiles.filter(has_text="Backlog")).to_contain_text("90,000 rows")
        expect(tiles.filter(has_text="Backlog")).to_contain_text("10 min wanted")
        expect(tiles.filter(has_text="A micro-batch takes")).to_contain_text("confidence")
        picture = page.get_by_role("img", name=f"{BATCHES} micro-batches: ")
        expect(picture.locator("circle")).to_have_count(BATCHES)
        expect(picture.locator("path.fitted")).to_have_count(1)
        most = picture.locator("path.limit title")
        expect(most).to_have_text("What a micro-batch is to take at most: 800 ms")
        box = picture.bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= width


def test_where_bounds_alone_count_there_is_no_such_part(browser: Browser) -> None:
    with (
        world(ADAPTIVE, queries=(EACH_SECOND,)) as policy,
        serve(policy) as site,
        watched(browser, f"{site.url}#query={ID}") as found,
    ):
        expect(found.page.get_by_role("heading", name="counts")).to_be_visible()
        expect(found.page.locator("details").filter(has_text="Autoscaling")).to_be_hidden()
        expect(found.page.get_by_role("note", include_hidden=True)).to_be_hidden()


def test_a_query_in_a_store_that_is_not_converted_says_what_to_type(browser: Browser) -> None:
    with (
        world(ADAPTIVE, queries=(OLD_COUNTS,)) as policy,
        serve(policy) as site,
        watched(browser, f"{site.url}#query={ID}", width=NARROW) as found,
    ):
        note = found.page.get_by_role("note")
        expect(note).to_contain_text("Keep the checkpoint's 2 partitions")
        expect(note).to_contain_text("spark-elastic checkpoint convert CHECKPOINT --to rocksdb")
