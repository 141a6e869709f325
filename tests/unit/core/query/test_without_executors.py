"""Tests of a running query without any executor: how long it waits, and what ends the wait."""

from __future__ import annotations

from typing import Any

import pytest

from spark_elastic.core.actions import FailQuery
from spark_elastic.settings import load
from tests.unit.core.builder import STATEFUL, Scene, decisions, only, orders, reasons

WAIT = "spark.elastic.adaptiveScheduler.submission.resourceWaitTimeout"
ADAPTIVE = {"spark.elastic.schedulerMode": "adaptive"}


def left_alone(conf: dict[str, str], **spark: Any) -> Scene:
    """Let a query run, then lose its only executor."""
    scene = Scene(load(conf).core())
    scene.start(2, **spark)
    scene.submit()
    scene.advance(20_000)
    scene.started(2)
    scene.advance(60_000)
    scene.lose("0")
    return scene


@pytest.mark.parametrize("conf", [{WAIT: "60s"}, {WAIT: "60s", **ADAPTIVE}])
def test_a_wait_that_was_set_ends_the_query_with_the_reason(conf: dict[str, str]) -> None:
    scene = left_alone(conf)
    assert not [action for action in scene.advance(59_999) if isinstance(action, FailQuery)]
    actions = scene.advance(1)
    assert only(actions, FailQuery).message == decisions(actions)[-1].message
    assert "needs 1 slot, has 0 after 1 min" in decisions(actions)[-1].message
    assert scene.query().state == "Failing"
    scene.check()


@pytest.mark.parametrize("conf", [{}, ADAPTIVE, {WAIT: "-1"}])
def test_otherwise_it_waits_as_plain_spark_does(conf: dict[str, str]) -> None:
    scene = left_alone(conf)
    scene.advance(24 * 3_600_000)
    assert scene.query().state == "Executing"


def test_an_executor_in_time_begins_the_wait_anew() -> None:
    scene = left_alone({WAIT: "60s"})
    scene.advance(59_999)
    scene.executor("1", cores=2)
    scene.advance(600_000)
    assert scene.query().state == "Executing"
    scene.lose("1")
    assert "failure_no_resources" in reasons(scene.advance(60_000))


def test_idle_executors_that_dynamic_allocation_removes_end_nothing() -> None:
    scene = left_alone({WAIT: "60s"}, spark_dynamicAllocation_enabled="true")
    scene.advance(24 * 3_600_000)
    assert scene.query().state == "Executing"


def test_a_trigger_that_is_left_to_spark_is_not_ended() -> None:
    scene = Scene(load({WAIT: "60s"}).core())
    scene.start(2)
    scene.running(2, STATEFUL, trigger="continuous")
    scene.lose("0")
    assert not [action for action in orders(scene.advance(60_000)) if isinstance(action, FailQuery)]


def test_a_query_of_its_own_settings_has_its_own_wait() -> None:
    name = "spark.elastic.query.counts.adaptiveScheduler.submission.resourceWaitTimeout"
    assert "failure_no_resources" in reasons(left_alone({name: "60s"}).advance(60_000))
