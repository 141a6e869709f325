"""Tests that YARN replaces an executor that is decommissioned, as by the notice for a spot instance."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from functools import partial

import psutil
import pytest

from integration.streaming.launch import AT_ONCE
from integration.streaming.waiting import eventually
from integration.yarn.application import Application, application
from integration.yarn.hadoop import Yarn

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(600)]

CONF = {
    "spark.elastic.schedulerMode": "adaptive",
    "spark.elastic.query.*.upperBound": "1",
    "spark.decommission.enabled": "true",
    **AT_ONCE,
}
"""Two queries of one slot each need the two executors."""


@pytest.fixture(scope="module")
def app(yarn: Yarn, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    with application(yarn, tmp_path_factory.mktemp("decommissioned"), CONF) as running:
        yield running


def reasons(app: Application) -> list[str]:
    return [decision["reason"] for decision in app.client.get("/decisions").json["decisions"]]


def is_executor(process: psutil.Process, app: Application, executor: str) -> bool:
    words = process.info["cmdline"] or []
    return "java" in "".join(words[:1]) and {app.id, executor} <= {*words} and "--executor-id" in words


def test_another_one_is_asked_for_before_it_is_gone(app: Application) -> None:
    eventually(partial(app.ran_with, counts=1, spread=1), "both run")
    before = app.executors()
    assert len(before) == 2
    going = max(before)
    (process,) = [one for one in psutil.process_iter(["cmdline"]) if is_executor(one, app, going)]
    process.send_signal(signal.SIGPWR)  # the signal that Spark's executors treat as a notice
    eventually(lambda: "executors_replaced" in reasons(app), "another one is asked for")
    eventually(lambda: going not in (now := app.executors()) and len(now) == 2, "it is there")
    eventually(partial(app.ran_with, counts=1, spread=1), "both run on")


def test_no_more_are_kept_than_are_needed(app: Application) -> None:
    eventually(lambda: app.slots() == 2, "two slots")
    assert reasons(app).count("executors_replaced") == 1
