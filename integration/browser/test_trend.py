"""Tests, in a real browser, of the overview: its chart, what waits, what executors cost, SQL executions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from attrs import evolve
from playwright.sync_api import Browser, Locator, Page, expect

from integration.browser.chromium import watched
from integration.browser.stand_in import Site, serve
from integration.browser.test_parts_off import style_of_spark
from spark_elastic.core import events as ev
from spark_elastic.gateway.stages import Stages
from tests.unit.core.builder import STATELESS
from tests.unit.http.world import ADAPTIVE, ID, NOW, REQUIREMENTS, World, body, world

pytestmark = pytest.mark.timeout(180)

TIMED = evolve(STATELESS, query=ID, name="timed", trigger_ms=1_000)
# The event log of an application has no clock: it is as old as its last event.
MINUTES = 10
BATCHES = MINUTES * 6
OUTLIER = 17


def batch(policy: World, number: int, took: int = 500, query: str = ID) -> None:
    """Commit a micro-batch; they begin 10 s apart."""
    at = NOW + number * 10_000
    policy.send(
        ev.QueryProgress, query=query, run="r1", batch=number, at=at, started=at, duration_ms=took,
        input_rows=100, input_rows_per_second=10.0, processed_rows_per_second=100.0, partitions=2,
    )  # fmt: skip


@pytest.fixture(scope="module")
def policy() -> Iterator[World]:
    conf = {**ADAPTIVE, "spark.elastic.pricePerCoreHour": "0.5"}
    idle = evolve(STATELESS, query="waits-id", name="waits")
    with world(conf, queries=(TIMED, idle)) as running:
        for number in range(BATCHES):
            batch(running, number, took=60_000 if number == OUTLIER else 500)
        executor = {"executor": "3", "host": "h", "cores": 2}
        running.send(ev.ExecutorAdded, **executor, at=NOW + MINUTES * 60_000)
        yield running


@pytest.fixture(scope="module")
def site(browser: Browser, policy: World) -> Iterator[Site]:
    with serve(policy) as found:
        yield found


@pytest.fixture
def page(site: Site, browser: Browser) -> Iterator[Page]:
    with watched(browser, site.url) as found:
        # The stand-in has no style sheet of Spark's.
        found.page.add_style_tag(content=style_of_spark())
        yield found.page


def chart(page: Page) -> Locator:
    return page.get_by_role("application", name="Slots, load and lag")


def tip(page: Page) -> Locator:
    return page.locator(".elastic-tip")


def range_of(page: Page) -> Locator:
    return page.get_by_role("status").filter(has_text=re.compile(r"\d\d:\d\d:\d\d to \d\d:\d\d:\d\d"))


def test_the_chart_has_slots_executors_load_and_lag(page: Page) -> None:
    for line in ("slots", "executors", "query-0"):
        expect(chart(page).locator(f"path.line.{line}").first).to_be_attached()
    titles = chart(page).locator("text.title")
    expect(titles).to_have_text(["Slots, executors", "Load: batch time by trigger interval", "Lag"])
    # What a screen reader says of it without any key.
    said = "6 slots, all can be used, 3 executors, timed lags by 10.5 s"
    expect(chart(page)).to_have_accessible_name(f"Slots, load and lag: {said}")
    expect(chart(page)).to_have_accessible_description(re.compile("Arrow keys show the values"))


def test_what_is_under_the_pointer_is_shown_with_its_values(page: Page) -> None:
    box = chart(page).bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 40)
    for value in ("slots: 4", "executors: 2", "timed: load 50 %, lag 10.5 s"):
        expect(tip(page)).to_contain_text(value)
    tip_box = tip(page).bounding_box()
    assert tip_box is not None
    assert tip_box["x"] + tip_box["width"] <= box["x"] + box["width"]
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] - 40)
    expect(tip(page)).to_be_hidden()


def test_one_outlier_does_not_flatten_the_axis_and_is_marked(page: Page) -> None:
    above = chart(page).locator(".above title")
    # Its load, and the lag at its end.
    expect(above).to_have_count(2)
    expect(above.first).to_contain_text("load of timed 6000 %, above the axis")
    usual = chart(page).locator("path.query-0").first
    heights = [float(y) for y in re.findall(r"[\d.]+ ([\d.]+)", str(usual.get_attribute("d")))]
    # 50 % of an axis of 100 % are half of a lane's 74 pixels.
    assert max(heights) - min(heights) == pytest.approx(37, abs=1)


AXES = """async (cases) => {
  const { axisEnd } = await import("/elastic/static/axis.js");
  return cases.map((given) => axisEnd(...given));
}"""


def test_where_axes_end(page: Page) -> None:
    ends: dict[tuple[Any, ...], int] = {
        ((),): 1,
        ((0, 0, 0),): 1,
        ((3, 7),): 10,
        # Too few to say what is usual.
        ((1, 1, 1, 50),): 50,
        ((1,) * 19 + (50,),): 2,
        # Two groups of values are no outliers.
        ((1,) * 10 + (50,) * 10,): 50,
        # A limit is shown, unless that would flatten all values.
        ((1,) * 8, 3): 5,
        ((1,) * 8, 60): 1,
        ((), 60): 100,
        ((1, 2, 3), 0, True): 4,
        ((16,), 0, True): 18,
    }
    found = page.evaluate(AXES, [[list(given[0]), *given[1:]] for given in ends])
    assert found == list(ends.values())


def test_a_range_is_chosen_by_dragging_and_stays_while_news_come(page: Page, policy: World) -> None:
    box = chart(page).bounding_box()
    assert box is not None
    expect(range_of(page)).to_have_count(0)
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.3, box["y"] + 60, steps=5)
    expect(chart(page).locator("rect.selection")).not_to_have_attribute("width", "0")
    page.mouse.up()
    expect(range_of(page)).to_be_visible()
    shown = range_of(page).text_content()
    with page.expect_response("**/timeline*"):
        pass
    expect(range_of(page)).to_have_text(str(shown))
    expect(chart(page).locator("rect.selection")).to_have_attribute("width", "0")
    page.get_by_role("button", name="Show the whole time: Slots, load and lag").click()
    expect(range_of(page)).to_have_count(0)


def test_all_of_it_works_with_keys_alone(page: Page) -> None:
    expect(chart(page)).to_be_visible()
    chart(page).focus()
    page.keyboard.press("Home")
    first = tip(page).locator(".fw-bold")
    began = str(first.text_content())
    expect(tip(page)).to_have_attribute("aria-live", "polite")
    page.keyboard.press("ArrowRight")
    expect(first).not_to_have_text(began)
    page.keyboard.press("ArrowLeft")
    expect(first).to_have_text(began)
    page.keyboard.press("+")
    expect(range_of(page)).to_contain_text(began)
    zoomed = str(range_of(page).text_content())
    page.keyboard.press("Shift+ArrowRight")
    expect(range_of(page)).not_to_have_text(zoomed)
    page.keyboard.press("Escape")
    expect(range_of(page)).to_have_count(0)
    page.keyboard.press("End")
    expect(tip(page)).to_contain_text("executors: 3")
    # The next stop is a button, so nobody is caught here.
    page.keyboard.press("Tab")
    expect(chart(page)).not_to_be_focused()


def test_the_values_are_there_as_a_table(page: Page) -> None:
    page.get_by_text("Values as a table").click()
    table = page.get_by_role("table", name="Values: Slots, load and lag")
    expect(table.get_by_role("columnheader")).to_have_text(
        ["Time", "slots", "slots wanted", "executors", "load of timed", "lag of timed"]
    )
    newest = table.locator("tbody tr").first.get_by_role("cell")
    expect(newest.nth(0)).to_have_text("6")
    expect(newest.nth(2)).to_have_text("3")
    expect(newest.nth(3)).to_have_text("50 %")


def test_what_executors_cost_is_shown(page: Page) -> None:
    # Two executors of two cores for 10 minutes.
    cost = page.locator(".elastic-tiles .card").filter(has_text="Executor-hours")
    expect(cost).to_contain_text("0.33")
    expect(cost).to_contain_text("0.67 core-hours, cost 0.33, since")


def test_what_waits_is_the_headline_with_the_reason(browser: Browser) -> None:
    with world(queries=(TIMED,)) as policy, serve(policy) as site, watched(browser, site.url) as found:
        page = found.page
        headline = page.get_by_role("note")
        expect(chart(page)).to_be_visible()
        expect(headline).to_be_hidden()
        assert policy.put(REQUIREMENTS, body(50, 60)).status == 200
        expect(headline).to_contain_text("1 query waits")
        expect(headline).to_contain_text("4 slots cannot meet the lower bound")
        comes = "note => note.compareDocumentPosition(document.querySelector('.elastic-tiles'))"
        assert headline.evaluate(comes) & 4  # Node.DOCUMENT_POSITION_FOLLOWING
        headline.get_by_role("link", name="timed").click()
        expect(page.locator(".alert-warning").filter(has_text="Waiting: ")).to_be_visible()
        page.get_by_role("link", name="All queries").click()
        expect(headline).to_be_visible()
        policy.send(ev.QueryTerminated, query=ID, run="r1")
        expect(headline).to_be_hidden()


def test_batch_decisions_are_grouped_by_execution(page: Page, policy: World) -> None:
    stages = Stages(policy.publisher)
    planned = {"id": "7:a", "bytes": 1_000}
    initial = {"type": "InitialCount", "group": "7:a", "planned": 200, "exchanges": [planned]}
    written = {"id": "7:a", "bytes": [10, 10, 10, 500_000]}
    read = {"type": "Ranges", "group": "7:a", "exchanges": [written]}
    stages.answer({"id": "h1", "questions": [initial, read]})
    rows = page.get_by_role("table", name="SQL Executions").locator("tbody")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("200 → ")
    rows.get_by_role("button").click()
    expect(rows.locator(".elastic-record h5").first).to_have_text(re.compile("^ranges to read: "))
    rows.get_by_role("link", name="7").first.click()
    expect(page.get_by_role("heading", name="SQL execution 7")).to_be_visible()
    expect(page.get_by_role("table", name="Batch Stages").locator("tbody")).to_have_count(2)
    # The stand-in has no plan, as Spark has none of an execution that it has dropped.
    expect(page.get_by_role("heading", name="Plan")).to_be_hidden()
    page.get_by_role("link", name="Overview").click()
    expect(chart(page)).to_be_visible()


def test_micro_batches_are_shown_with_their_query_alone(page: Page, policy: World) -> None:
    executions = page.get_by_role("table", name="SQL Executions")
    stages = Stages(policy.publisher)
    read = {"type": "Ranges", "exchanges": [{"id": "e", "bytes": [10, 10, 500_000]}]}
    for owner in ("100", *(f"{number}@{ID}" for number in range(101, 130))):
        stages.answer({"id": "h1", "questions": [{**read, "group": f"{owner}:a"}]})
    expect(executions.get_by_role("link", name="100", exact=True)).to_be_visible()
    numbers = [int(name) for name in executions.get_by_role("link").all_text_contents()]
    assert max(numbers) == 100
    page.get_by_role("table", name="Streaming queries").get_by_role("link", name="timed").click()
    expect(executions.get_by_role("link")).to_have_text([str(number) for number in range(129, 119, -1)])
    page.get_by_role("navigation", name="Pages of: SQL Executions").get_by_role(
        "button", name="Older"
    ).click()
    expect(executions.get_by_role("link").first).to_have_text("119")
    executions.get_by_role("button").first.click()
    expect(executions.locator(".elastic-record").get_by_role("link", name=ID)).to_be_visible()
    page.get_by_role("link", name="All queries").click()
    page.get_by_role("table", name="Streaming queries").get_by_role("link", name="waits").click()
    expect(page.get_by_role("heading", name="waits")).to_be_visible()
    expect(page.get_by_role("heading", name="SQL Executions", include_hidden=True)).to_be_hidden()


PLAN = """async ([nodes, edges]) => {
  const { plan } = await import("/elastic/static/plan.js");
  const drawn = plan({ nodes: nodes.map(([nodeId, nodeName]) => ({ nodeId, nodeName })),
                       edges: edges.map(([fromId, toId]) => ({ fromId, toId })) }, []);
  return [...drawn.querySelectorAll("g")].map((box) => {
    const at = (name) => Number(box.querySelector("rect").getAttribute(name));
    return [box.querySelector("text").textContent, at("x"), at("y")];
  });
}"""


def test_in_a_plan_each_node_stands_just_before_what_reads_it(page: Page) -> None:
    names = ["Write", "SortMergeJoin", "Exchange", "Scan early", "Exchange", "BroadcastHashJoin", "Scan late",
             "BroadcastExchange", "Range", "Project"]  # fmt: skip
    edges = [(1, 0), (2, 1), (3, 2), (4, 1), (5, 4), (6, 9), (9, 5), (7, 5), (8, 7)]
    found = page.evaluate(PLAN, [list(enumerate(names)), edges])
    places = {name: (x, y) for name, x, y in found if name != "Exchange"}
    columns = sorted({x for _, x, _ in found})
    expected = [
        {"Range"}, {"BroadcastExchange", "Scan late"}, {"BroadcastHashJoin", "Scan early"}, {"Exchange"},
        {"SortMergeJoin"}, {"Write"},
    ]  # fmt: skip
    assert [{name for name, x, _ in found if x == column} for column in columns] == expected
    # No two boxes are in one place, and lines do not cross.
    assert len({(x, y) for _, x, y in found}) == len(found) == 9
    assert places["Scan early"][1] < places["BroadcastHashJoin"][1]


@pytest.mark.parametrize("width", [400, 1280, 2560])
def test_no_width_makes_it_scroll_sideways(browser: Browser, site: Site, width: int) -> None:
    with watched(browser, site.url, width=width) as found:
        found.page.add_style_tag(content=style_of_spark())
        expect(chart(found.page).locator("path.line").first).to_be_attached()
        box = chart(found.page).bounding_box()
        assert box is not None
        assert box["x"] + box["width"] <= width
        assert box["width"] > width * 0.9
        assert found.fits()


def test_a_screen_reader_finds_headings_charts_and_tables(page: Page) -> None:
    expect(chart(page)).to_be_visible()
    expect(page.locator("main")).to_match_aria_snapshot(
        """
        - group:
          - heading "Timeline" [level=4]
          - 'button "Zoom in: Slots, load and lag"'
          - 'button "Zoom out: Slots, load and lag"'
          - 'button "Show the whole time: Slots, load and lag"'
          - application /Slots, load and lag.*/
        - group:
          - heading "Streaming Queries" [level=4]
          - region "Streaming queries":
            - table "Streaming queries"
        - group:
          - heading "SQL Executions" [level=4]
        - group:
          - heading "Decisions" [level=4]
          - region "Decisions":
            - table "Decisions"
        - group:
          - heading "Executors" [level=4]
          - region "Executors":
            - table "Executors"
        """
    )
