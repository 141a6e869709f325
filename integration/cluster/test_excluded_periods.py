"""Tests that executors ignore the load in an excluded period, and follow it afterwards up to the quota."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone

import pytest

from integration.cluster.application import Application, application
from integration.cluster.lines import SETTLED_S, Lines, autoscaled, start_slow
from integration.streaming.driver import Driver
from integration.streaming.waiting import PATIENCE_S, eventually
from spark_elastic.core.actions import Decision, RequestExecutors
from spark_elastic_lab.demo.cluster import Cluster
from spark_elastic_lab.demo.data import Tables

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]

LENGTH = timedelta(minutes=4)
"""Counts from the minute in which the application starts: long enough to show a lack of slots."""
TRIGGER_S = 10.0
# 22.5 s of work in each interval: at least three slots, whatever else takes time on a busy machine.
ROWS_PER_S = 450
WORKERS = 3
MOST = 2


@pytest.fixture(scope="module")
def begin() -> datetime:
    return datetime.now(timezone.utc).replace(second=0, microsecond=0)


@pytest.fixture(scope="module")
def app(
    master: Cluster, jvm: Driver, tables: Tables, begin: datetime, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Application]:
    minutes = LENGTH // timedelta(minutes=1)
    conf = {
        **autoscaled(most=5, window_s=20),
        "spark.elastic.policy": "schedule,autoscale",
        "spark.elastic.schedule.excludedPeriods": f"{begin.minute} {begin.hour} * * * for {minutes}min "
        "name=freeze",
        # One executor takes 640 MiB: a worker counts no overhead.
        "spark.elastic.quota.memory": f"{MOST * 640 + 100}m",
        "spark.elastic.adaptiveScheduler.submission.resourceStabilizationTimeout": "0",
    }
    with application(master, jvm, tables, tmp_path_factory.mktemp("excluded"), conf) as running:
        yield running


def ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000)


def wanted(app: Application) -> list[Decision]:
    """Return the decisions that want more than one slot for the query, granted or not."""
    app.check_alive()
    return [one for one in app.story.said if one.query is not None and int(one.numbers.get("wanted", 0)) > 1]


def requested(app: Application) -> list[int]:
    return [order.total for order in app.story.orders if isinstance(order, RequestExecutors)]


def test_in_an_excluded_period_a_query_that_falls_behind_keeps_what_it_has(
    app: Application, begin: datetime
) -> None:
    end = ms(begin + LENGTH)
    app.have_workers(1)
    with Lines(app.places.output.with_name("lines"), rows_per_s=ROWS_PER_S) as lines:
        app.start("slow", start_slow(lines, trigger_s=TRIGGER_S))

        held = eventually(
            lambda: [one for one in wanted(app) if one.at < end], "it wants more", SETTLED_S, every_s=0.5
        )[0]
        assert held.after == 1
        assert "Limited to 1 by the excluded period freeze" in held.message
        # Now there is room for more; executors that come unrequested are given back.
        while len(app.workers) < WORKERS:
            app.workers.append(app.cluster.start_worker(1))
        raised = eventually(
            lambda: [one for one in wanted(app) if (one.after or 0) > 1],
            "the period is over, and it has more",
            LENGTH.total_seconds() + PATIENCE_S,
            every_s=0.5,
        )[0]
    assert raised.at >= end
    assert [seen.slots for seen in app.story.seen if seen.event.at < end][-1] == 1
    asked = (one for one in app.story.said if one.reason == "executors_wanted")
    assert all(one.at >= end for one in asked)


def test_no_more_executors_come_than_the_quota_of_memory_allows(app: Application) -> None:
    limited = eventually(
        lambda: [one for one in app.story.said if one.reason == "executors_limited"], "it is said", SETTLED_S
    )[0]
    assert (limited.numbers["setting"], limited.after) == ("spark.elastic.quota.memory", MOST)
    app.wait_for_slots(MOST)
    assert max(requested(app)) == MOST


def test_the_journal_can_be_replayed(app: Application) -> None:
    app.queries["slow"].stop()
    app.check_journal()
