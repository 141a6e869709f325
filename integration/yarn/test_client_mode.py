"""Tests of deploy mode client in adaptive mode: executors of YARN, and requests through YARN's proxy."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from playwright.sync_api import Browser, expect

from integration.browser.chromium import watched
from integration.streaming.command import spark_elastic
from integration.streaming.http import Client
from integration.streaming.launch import AT_ONCE
from integration.streaming.waiting import PATIENCE_S, eventually
from integration.yarn.application import API, Application, application
from integration.yarn.hadoop import Yarn

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(600)]

CONF = {
    "spark.elastic.schedulerMode": "adaptive",
    "spark.elastic.slotIdleTimeout": "2s",
    "spark.elastic.savepoint.allowedPrefixes": "/",
    "spark.elastic.adaptiveScheduler.rescalePolicy": "always",
    **AT_ONCE,
}


@pytest.fixture(scope="module")
def app(yarn: Yarn, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    with application(yarn, tmp_path_factory.mktemp("client"), CONF) as running:
        yield running


def bounds(lower: int, upper: int) -> Any:
    return {"shuffle": {"parallelism": {"lowerBound": lower, "upperBound": upper}}}


def run(app: Application, *arguments: str) -> str:
    result = spark_elastic(app.url, *arguments)
    assert result.returncode == 0, result.stderr
    return result.stdout


def path_of(app: Application, name: str) -> str:
    return f"/queries/{app.shown(name)['id']}/resource-requirements"


def test_queries_use_the_executors_that_yarn_gives(app: Application) -> None:
    eventually(partial(app.ran_with, counts=2, spread=2), "both run with two")
    assert app.slots() == 2


def test_an_executor_that_is_lost_is_replaced(app: Application) -> None:
    before = app.executors()
    lost = max(before)
    killed = [process for process in psutil.process_iter(["cmdline"]) if is_executor(process, app.id, lost)]
    assert killed
    for process in killed:
        process.kill()
    eventually(lambda: lost not in (now := app.executors()) and len(now) == 2, "there is another one")
    eventually(partial(app.ran_with, counts=2, spread=2), "both run with two")


def is_executor(process: psutil.Process, application: str, executor: str) -> bool:
    words = process.info["cmdline"] or []
    return "java" in "".join(words[:1]) and {application, executor} <= {*words} and "--executor-id" in words


def test_the_tab_shows_what_happens_and_its_buttons_work(app: Application, browser: Browser) -> None:
    with watched(browser, f"{app.url}/elastic/") as found:
        page = found.page
        page.get_by_role("link", name="spread").click()
        page.get_by_label("Most partitions of shuffle").fill("1")
        page.keyboard.press("Enter")
        said = page.get_by_role("status").filter(has_text="New bounds of shuffle: 1 to 1.")
        expect(said).to_be_attached()
        # The way back is a link in Spark's header, not on the page.
        page.get_by_role("link", name="Elastic").click()
        expect(page.get_by_role("row").filter(has_text="spread")).to_contain_text("1 – 1")
        # The page is not reloaded.
        assert app.client.put(path_of(app, "spread"), bounds(1, 2)).status == 200
        expect(page.get_by_role("row").filter(has_text="spread")).to_contain_text("1 – 2")


def test_executors_are_asked_for_and_given_back(app: Application) -> None:
    for name, count in {"counts": 1, "spread": 2}.items():
        assert app.client.put(path_of(app, name), bounds(count, count)).status == 200
    eventually(lambda: app.slots() == 3, "YARN gives a third executor")
    eventually(partial(app.ran_with, counts=1, spread=2), "both keep to their bounds")
    assert app.client.put(path_of(app, "spread"), bounds(1, 1)).status == 200
    eventually(lambda: app.slots() == 2, "one is given back")
    eventually(partial(app.ran_with, counts=1, spread=1), "both keep to their bounds")


def test_pages_of_other_origins_change_nothing(app: Application) -> None:
    path = path_of(app, "spread")
    assert app.client.put(path, bounds(1, 2), Origin=app.proxy).status == 200
    refused = app.client.put(path, bounds(1, 3), Origin="http://evil.example")
    assert (refused.status, f"open the page at {app.url}/elastic/" in refused.text) == (403, True)


def test_what_yarns_proxy_leaves_out(app: Application) -> None:
    # The README documents both.
    assert app.client.put(path_of(app, "spread"), bounds(1, 2), If_Match='"old"').status == 200
    assert app.client.post(f"/queries/{app.shown('spread')['id']}/stop").status == 405


def test_who_asked_is_whom_yarn_knows(app: Application) -> None:
    # Hadoop's name for a user who has not logged in.
    app.process.wait_for_line("New bounds from dr.who", PATIENCE_S)


def test_large_answers_come_whole(app: Application) -> None:
    assert app.client.get("/openapi.json").json["openapi"].startswith("3.")
    assert 'id="elastic"' in Client(app.proxy, f"/proxy/{app.id}/elastic").get("/").text


def test_who_asks_the_driver_itself_is_sent_to_the_proxy(app: Application) -> None:
    port = app.process.wait_for_line(r"Successfully started service 'SparkUI' on port (\d+)", 1)[1]
    direct = f"http://127.0.0.1:{port}"
    assert Client(direct, API).get("/overview").status == 302
    assert Client(direct, API).put(path_of(app, "spread"), bounds(1, 2)).status == 302
    result = spark_elastic(direct, "status")
    assert result.returncode == 3
    typed = re.search(r"type --url (\S+)", result.stderr)
    assert typed is not None, result.stderr
    assert typed[1] == app.url


def test_the_command_line_does_all_it_can_do(app: Application, tmp_path: Path) -> None:
    assert "rates on Spark" in run(app, "status")
    assert run(app, "rescale", "spread", "--lower", "1", "--upper", "2").startswith("spread: bounds 1–2")
    run(app, "rescale", "spread", "--up")
    eventually(partial(app.ran_with, spread=2), "it runs with two")
    assert "why it was rescaled" in run(app, "explain", "spread")
    run(app, "history", "counts")
    taken = Path(run(app, "savepoint", "counts", str(tmp_path)).strip().removeprefix("file:"))
    assert (taken / "offsets").is_dir()
    run(app, "stop", "spread", "--no-wait")
    assert app.process.wait(60) == 0, app.process.log_tail()
