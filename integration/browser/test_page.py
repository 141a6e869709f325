"""Tests of the page in Spark's UI, in a real browser, for an application on a real cluster."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from integration.browser.chromium import Watched, queries, watched
from integration.cluster.application import Application, application, now
from integration.cluster.queries import start_enrichment, start_totals
from integration.spark_minor import MOVES_STATE, SPARK_MINOR
from integration.streaming.driver import Driver, policies_of
from integration.streaming.http import Client
from integration.streaming.waiting import eventually
from spark_elastic_lab.demo.cluster import Cluster
from spark_elastic_lab.demo.data import Tables

pytestmark = [pytest.mark.integration, pytest.mark.timeout(400)]

QUERIES = ("enrichment", "totals")
# The query whose parallelism is changed: a stateful one, where state can be moved.
QUERY = "totals" if MOVES_STATE else "enrichment"
NARROW = 400
LATELY_MS = 10_000
# README's pictures must also load over slow connections.
MOST_PICTURE = 150_000
PICTURES = os.environ.get("SPARK_ELASTIC_PICTURES")
"""Folder for the pictures of the page; `make pictures` sets it to README's folder."""


@pytest.fixture(scope="module")
def app(
    # First, so that nothing is started where it is missing.
    browser: Browser,
    master: Cluster,
    jvm: Driver,
    tables: Tables,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Application]:
    conf = {
        "spark.app.name": "orders",
        "spark.ui.enabled": "true",
        "spark.executor.cores": "1",
        "spark.elastic.schedulerMode": "adaptive",
        "spark.elastic.adaptiveScheduler.submission.resourceStabilizationTimeout": "0",
        # Only buttons change the bounds.
        "spark.elastic.query.enrichment.upperBound": "1",
        "spark.elastic.query.totals.upperBound": "1",
        # Each query may use all slots, since these tests are about the page.
        "spark.elastic.query.enrichment.slotSharingGroup": "page",
        "spark.elastic.query.totals.slotSharingGroup": "page",
        "spark.elastic.slotIdleTimeout": "1h",
    }
    with application(master, jvm, tables, tmp_path_factory.mktemp("page"), conf) as running:
        running.have_workers(2)
        running.feed.start()
        running.start("enrichment", start_enrichment)
        running.start("totals", start_totals)
        running.wait_in_force(1, QUERIES, 0)
        yield running


def address(app: Application) -> str:
    return f"{app.spark.sparkContext.uiWebUrl}/elastic/"


@pytest.fixture
def overview(app: Application, browser: Browser) -> Iterator[Watched]:
    with watched(browser, address(app)) as found:
        yield found


@pytest.fixture
def query(overview: Watched) -> Watched:
    """Open the page at the query whose parallelism is changed."""
    queries(overview.page).get_by_role("link", name=QUERY).click()
    expect(overview.page.get_by_role("heading", name=QUERY)).to_be_visible()
    return overview


def test_it_is_a_page_of_sparks_ui_and_shows_the_application(app: Application, overview: Watched) -> None:
    page = overview.page
    expect(page.locator(".navbar .nav-item.active")).to_have_text("Elastic")
    tiles = page.locator(".elastic-tiles .card")
    expect(tiles.filter(has_text="Mode")).to_contain_text("adaptive")
    expect(tiles.filter(has_text="Slots")).to_contain_text("2")
    expect(tiles.filter(has_text="Slots")).to_contain_text("1 wanted")
    row = queries(page).get_by_role("row").filter(has=page.get_by_role("link", name="totals"))
    expect(row).to_contain_text("Executing")
    expect(row).to_contain_text("1 – 1")
    expect(row).to_contain_text("of 500 ms")
    expect(page.get_by_role("table", name="Executors").locator("tbody tr")).to_have_count(2)


def test_up_changes_the_parallelism_of_the_next_batches(app: Application, query: Watched) -> None:
    page = query.page
    expect(page.get_by_label("Max partitions of shuffle")).to_have_value("1")
    pressed = now()
    page.get_by_role("button", name="One partition more for shuffle").click()
    expect(page.get_by_role("status").filter(has_text="New bounds of Shuffle: 2 to 2.")).to_be_attached()
    app.wait_in_force(2, (QUERY,), pressed)
    # Without a reload.
    expect(page.get_by_role("group", name="Parallelism of shuffle")).to_contain_text("2")
    expect(page.get_by_label("Max partitions of shuffle")).to_have_value("2")
    rescale = page.get_by_role("table", name="Rescales").locator("tbody").first
    expect(rescale).to_contain_text("update requirement")
    expect(rescale).to_contain_text("1 → 2")
    expect(rescale).to_contain_text("completed")
    expect(page.locator(".elastic-timeline .rescale.completed path")).not_to_have_count(0)


def test_a_list_from_before_the_end_of_a_rescale_is_asked_for_again(query: Watched) -> None:
    page = query.page
    early: list[str] = []

    def show_as_open(route: Route) -> None:
        answer = route.fetch()
        found = answer.json()
        found["rescales"][0]["status"] = "in_progress"
        early.append(route.request.url)
        route.fulfill(response=answer, json=found)

    # The other request, for the marks of the picture, has a larger limit.
    page.route("**/rescales?limit=26", show_as_open, times=1)
    page.reload()
    newest = page.get_by_role("table", name="Rescales").locator("tbody").first
    expect(newest).to_contain_text("completed")
    assert len(early) == 1


def test_down_by_keyboard_and_the_focus_stays(app: Application, query: Watched) -> None:
    page = query.page
    down = page.get_by_role("button", name="One partition fewer for shuffle")
    expect(page.get_by_role("group", name="Parallelism of shuffle")).to_contain_text("2")
    for _ in range(100):
        page.keyboard.press("Tab")
        if down.evaluate("button => button === document.activeElement"):
            break
    expect(down).to_be_focused()
    pressed = now()
    page.keyboard.press("Enter")
    app.wait_in_force(1, (QUERY,), pressed)
    expect(page.get_by_role("group", name="Parallelism of shuffle")).to_contain_text("1")
    expect(down).to_be_focused()
    assert down.get_attribute("aria-disabled") == "true"


def test_presses_in_a_row_all_count(app: Application, overview: Watched) -> None:
    page = overview.page
    queries(page).get_by_role("link", name="enrichment").click()
    for name, sentence in {"more": "2 to 2", "fewer": "1 to 1"}.items():
        # The page shows when the next press takes effect.
        page.get_by_role("button", name=f"One partition {name} for shuffle").click()
        said = page.get_by_role("status").filter(has_text=f"New bounds of Shuffle: {sentence}.")
        expect(said).to_be_attached()


def test_bounds_are_taken_back(app: Application, overview: Watched) -> None:
    page = overview.page
    queries(page).get_by_role("link", name="enrichment").click()
    most = page.get_by_label("Max partitions of shuffle")
    expect(most).to_have_value("1")
    most.fill("3")
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").filter(has_text="New bounds of Shuffle: ")).to_be_attached()
    expect(most).to_have_value("3")
    page.get_by_role("button", name="Reset bounds").click()
    said = page.get_by_role("status").filter(has_text="The configured bounds apply again.")
    expect(said).to_be_attached()
    expect(most).to_have_value("1")


def test_a_refused_bound_has_its_reason_beside_it(app: Application, query: Watched) -> None:
    page = query.page
    most = page.get_by_label("Max partitions of shuffle")
    most.fill("many")
    page.keyboard.press("Enter")
    row = page.get_by_role("table", name="Bounds").get_by_role("row").filter(has=most)
    expect(row.get_by_role("alert")).to_contain_text("upperBound is 'many', allowed is a whole number")
    expect(most).to_have_attribute("aria-invalid", "true")
    # Typed text survives updates until it is discarded.
    with page.expect_response("**/timeline*"):
        pass
    expect(most).to_have_value("many")
    most.press("Escape")
    expect(most).to_have_value("1")
    expect(row.get_by_role("alert")).to_be_hidden()


def test_it_says_what_a_query_waits_for(app: Application, query: Watched) -> None:
    page = query.page
    page.get_by_label("Min partitions of shuffle").fill("7")
    page.get_by_label("Max partitions of shuffle").fill("")
    page.get_by_role("button", name="Set the bounds of shuffle").click()
    waits = page.locator(".alert-warning").filter(has_text="Waiting")
    expect(waits).to_contain_text("2 slots cannot meet the lower bound.")
    expect(page.get_by_label("Max partitions of shuffle")).to_have_value("")
    page.get_by_label("Min partitions of shuffle").fill("1")
    page.get_by_label("Max partitions of shuffle").fill("2")
    page.keyboard.press("Enter")
    expect(waits).to_be_hidden()


@pytest.mark.skipif(not MOVES_STATE, reason="no state is moved, whose gain could be compared")
def test_a_decision_opens_to_its_full_record(app: Application, query: Watched) -> None:
    decisions = query.page.get_by_role("table", name="Decisions")
    move = decisions.locator("tbody").filter(has_text="rescale state").last
    opener = move.get_by_role("button")
    expect(opener).to_have_attribute("aria-expanded", "false")
    opener.press("Enter")
    expect(opener).to_have_attribute("aria-expanded", "true")
    for shown in ("Rule", "rescale_into_bounds", "Compared", "slots", "before ms"):
        expect(move.locator(".elastic-record")).to_contain_text(shown)


def test_batch_stages_are_shown_with_the_sizes_of_their_tasks(app: Application, overview: Watched) -> None:
    rows = app.spark.newSession().range(0, 200_000).selectExpr("id % 1000 AS key", "id")
    # A row has the last decision about an execution, which is that about what its tasks read.
    table = overview.page.get_by_role("table", name="SQL Executions")
    executions = table.locator("tbody").filter(has_text="Read ")

    def run() -> int:
        rows.groupBy("key").count().write.format("noop").mode("overwrite").save()
        return executions.count()

    # On a busy machine an answer may come too late for a stage.
    eventually(run, "ranges are shown", every_s=1.0)
    executions.first.get_by_role("link").click()
    rows_of_table = overview.page.get_by_role("table", name="Batch Stages").locator("tbody")
    decided = rows_of_table.filter(has_text="ranges to read")
    opener = decided.first.get_by_role("button")
    # The opened row moves down when a later one arrives.
    number = str(opener.get_attribute("aria-label"))
    button = overview.page.get_by_role("button", name=number, exact=True)
    read = rows_of_table.filter(has=button)
    read.get_by_role("button").click()
    expect(read.locator(".elastic-record")).to_contain_text("half of them up to")


def linked(page: Page, link: Locator, shows: str) -> None:
    """Follow a link to one of Spark's own pages, which shows this, and come back."""
    here = page.url
    link.click()
    expect(page.locator("body")).to_contain_text(shows)
    expect(page.locator(".navbar .nav-item.active")).not_to_have_text("Elastic")
    page.go_back()
    expect(page).to_have_url(here)


def test_an_execution_is_shown_with_its_plan_and_leads_to_sparks_pages(
    app: Application, overview: Watched
) -> None:
    page = overview.page
    session = app.spark.newSession()
    left = session.range(0, 300_000).selectExpr("id % 5000 AS key", "id AS one")
    right = session.range(0, 50_000).selectExpr("id % 700 AS key", "id AS other")
    session.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    api = Client(str(app.spark.sparkContext.uiWebUrl), "/elastic/api/v1")

    def run() -> str | None:
        left.join(right, "key").groupBy("key").count().write.format("noop").mode("overwrite").save()
        newest = api.get("/executions?limit=1").json["executions"][0]
        decided = {stage["question"] for stage in newest["stages"]}
        return str(newest["execution"]) if decided == {"InitialCount", "Ranges"} else None

    # On a busy machine an answer may come too late for a stage.
    id = eventually(run, "all was decided", every_s=1.0)
    page.goto(f"{address(app)}#sql={id}")
    expect(page.get_by_role("heading", name=f"SQL execution {id}")).to_contain_text("completed")
    # The exchanges on both sides of the join.
    exchanges = page.locator(".elastic-plan g.decided")
    expect(exchanges).to_have_count(2)
    for exchange in exchanges.all():
        for said in (r"\d+ → \d+ partitions", "written", r"read by \d+ tasks, skew \d"):
            expect(exchange).to_contain_text(re.compile(said))
    picture = page.get_by_role("img", name=re.compile("^Plan: .*Exchange, .* partitions"))
    expect(picture).to_have_accessible_name(re.compile("SortMergeJoin"))
    tiles = page.locator(".elastic-tiles .card")
    linked(page, page.get_by_role("link", name="Spark's page of it"), f"Details for Query {id}")
    linked(page, tiles.filter(has_text="Jobs").get_by_role("link").first, "Details for Job ")
    linked(page, tiles.filter(has_text="Stages").get_by_role("link").first, "Details for Stage ")


def test_a_query_leads_to_sparks_page_of_it(app: Application, query: Watched) -> None:
    linked(query.page, query.page.get_by_role("link", name="Spark's page of this run"), "Streaming Query")
    expect(query.page.get_by_role("heading", name=QUERY)).to_be_visible()
    query.page.get_by_role("link", name="All queries").click()
    executors = query.page.get_by_role("table", name="Executors").get_by_role("link")
    linked(query.page, executors.first, "Executors")


def test_a_lost_executor_is_marked(app: Application, query: Watched) -> None:
    app.have_workers(1)
    expect(query.page.locator(".elastic-timeline .lost title").first).to_contain_text("lost")
    app.have_workers(2)


@pytest.mark.parametrize("view", ["overview", "query"])
def test_a_narrow_window_needs_no_scrolling_sideways(app: Application, browser: Browser, view: str) -> None:
    with watched(browser, address(app), width=NARROW, height=800) as narrow:
        link = queries(narrow.page).get_by_role("link", name=QUERY)
        expect(link).to_be_visible()
        if view == "query":
            link.click()
            expect(narrow.page.locator(".elastic-timeline path.partitions").last).to_be_attached()
            narrow.page.get_by_role("table", name="Rescales").get_by_role("button").first.click()
        assert narrow.fits()


@pytest.mark.matrix
def test_it_has_its_distances_and_its_weights_with_each_bootstrap(app: Application, query: Watched) -> None:
    def style(place: Locator, name: str) -> str:
        return str(place.evaluate("(node, name) => getComputedStyle(node)[name]", name))

    page = query.page
    expect(page.locator(".elastic-timeline path.partitions").last).to_be_attached()
    assert style(page.locator(".elastic-sample").first, "marginRight") != "0px"
    state = page.get_by_role("heading", name=QUERY).locator("> span")
    assert style(state.nth(1), "marginLeft") != "0px"
    assert style(state.nth(2), "fontWeight") == "400"
    # The buttons are at the right edge of the chart.
    whole, chart = page.get_by_role("button", name="Show the whole time"), page.get_by_role("application")
    (button, canvas) = (place.first.bounding_box() for place in (whole, chart))
    assert button is not None
    assert canvas is not None
    assert abs(button["x"] + button["width"] - canvas["x"] - canvas["width"]) < 8


def test_it_is_dark_where_sparks_ui_is(app: Application, browser: Browser) -> None:
    def ground(scheme: str) -> str:
        with watched(browser, address(app), scheme="dark" if scheme == "dark" else "light") as found:
            card = found.page.locator(".elastic-tiles .card").first
            expect(card).to_be_visible()
            return str(card.evaluate("card => getComputedStyle(card).backgroundColor"))

    light, dark = "rgb(255, 255, 255)", "rgb(33, 37, 41)"
    assert ground("light") == light
    # Before 4.2, Spark's own pages are light, whatever the browser asks for.
    assert ground("dark") == (dark if SPARK_MINOR >= (4, 2) else light)


def test_pictures_for_the_readme(app: Application, browser: Browser, tmp_path: Path) -> None:
    folder = tmp_path if PICTURES is None else Path(PICTURES)
    with watched(browser, address(app), height=960) as light:
        queries(light.page).get_by_role("link", name=QUERY).click()
        app.wait_in_force(2, (QUERY,), now() - LATELY_MS)
        expect(light.page.get_by_role("heading", name=QUERY)).to_contain_text("Executing")
        expect(light.page.get_by_role("table", name="Rescales")).not_to_contain_text("in progress")
        light.picture(folder / "query.png")
    with watched(browser, address(app), height=760, scheme="dark") as dark:
        expect(queries(dark.page).get_by_role("link", name="totals")).to_be_visible()
        dark.picture(folder / "overview.png")
    for picture in folder.glob("*.png"):
        assert 10_000 < picture.stat().st_size < MOST_PICTURE, picture.name


@pytest.mark.matrix
def test_while_the_policy_is_away_the_page_says_so_and_goes_on(
    app: Application, jvm: Driver, overview: Watched
) -> None:
    page = overview.page
    expect(queries(page).get_by_role("link", name="totals")).to_be_visible()
    trouble = page.get_by_role("status").filter(has_text="The policy does not answer")
    (policy,) = policies_of(jvm.pid)
    # After 10 s another process replaces it.
    policy.suspend()
    expect(trouble).to_be_visible()
    # What was shown stays.
    expect(queries(page).get_by_role("link", name="totals")).to_be_visible()
    expect(trouble).to_be_hidden()
    expect(page.locator(".elastic-tiles")).to_contain_text("policy process replaced: 1")
