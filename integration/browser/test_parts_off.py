"""Tests, in a real browser, that the tab names what this Spark lacks, with the reason."""

from __future__ import annotations

import zipfile

import pytest
from playwright.sync_api import Browser, expect

from integration.browser.chromium import watched
from integration.browser.stand_in import serve
from spark_elastic.installation import Spark
from spark_elastic.lacks import lacks_of
from spark_elastic_lab.demo.cluster import spark_home
from tests.unit.http.world import world

pytestmark = pytest.mark.timeout(180)

NARROW = 400
TABLE = "Not available on this Spark"
MOVES = "not available on Spark 4.0.0"
WARM_UP = "this build of Spark has no org.apache.spark.sql.<Warm>.allOperatorStateMetadata"
PARTS = {"savepoints": "", "rescales of state": MOVES, "the warm-up of executors": WARM_UP}


def style_of_spark() -> str:
    """Return Spark's own style sheet, which the stand-in lacks and which makes tables scroll."""
    (jar,) = spark_home().glob("jars/spark-core_*.jar")
    with zipfile.ZipFile(jar) as archive:
        return archive.read("org/apache/spark/ui/static/bootstrap.min.css").decode()


@pytest.mark.parametrize("width", [1280, NARROW])
def test_what_this_spark_has_not_is_listed_once_with_the_reason(browser: Browser, width: int) -> None:
    with (
        world(parts=PARTS, spark="4.0.0") as policy,
        serve(policy) as site,
        watched(browser, site.url, width=width) as found,
    ):
        rows = found.page.get_by_role("table", name=TABLE).locator("tbody tr")
        off = [f"rescales of state{MOVES}", f"the warm-up of executors{WARM_UP}"]
        lacks = lacks_of(Spark("4.0.0"), off=PARTS)
        assert lacks
        expect(rows).to_have_text(off + [f"{lack.what}{lack.why}; {lack.instead}" for lack in lacks])
        found.page.add_style_tag(content=style_of_spark())
        assert found.fits()


@pytest.mark.parametrize("parts", [{"savepoints": ""}, {}], ids=["all on", "not told"])
def test_where_all_is_there_there_is_no_such_list(browser: Browser, parts: dict[str, str]) -> None:
    with world(parts=parts) as policy, serve(policy) as site, watched(browser, site.url) as found:
        expect(found.page.get_by_role("heading", name="Executors")).to_be_visible()
        heading = found.page.get_by_role("heading", name=TABLE, include_hidden=True)
        expect(heading).to_have_count(1)
        expect(heading).to_be_hidden()
