"""Tests, in a real browser, that + and − request the same as the command line, by the same golden file."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser

from integration.browser.chromium import watched
from integration.browser.stand_in import serve
from tests.contract.test_python_contract import read
from tests.unit.http.world import world

pytestmark = pytest.mark.timeout(120)

STEPS = """async (cases) => {
  const { stepped } = await import("/elastic/static/step.js");
  return cases.map(({ bounds, now, most }) => [1, -1].map((step) => stepped(bounds, now, step, most)));
}"""


def test_the_tab_moves_the_bounds_that_are_agreed(browser: Browser) -> None:
    cases = read("steps.json")
    with world() as policy, serve(policy) as site, watched(browser, site.url) as found:
        moved = found.page.evaluate(STEPS, cases)
    assert moved == [[case["up"], case["down"]] for case in cases]
