"""Tests of the chain `schedule,autoscale` on a cluster: executors of a window are up when it begins.

The load needs two executors. A window that begins some minutes after the application calls for four.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone

import pytest

from integration.cluster.application import Application, application, now
from integration.cluster.lines import Lines, autoscaled, start_slow, wait_for_executors
from integration.cluster.lines import lines as lines
from integration.streaming.driver import Driver
from integration.streaming.waiting import PATIENCE_S, eventually
from spark_elastic_lab.demo.cluster import Cluster
from spark_elastic_lab.demo.data import Tables

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(900)]

WORKERS = 4
WINDOW_S = 20
LEAD_S = 90
AHEAD = timedelta(minutes=7)
"""By then the autoscaler has settled, less the lead time."""
LENGTH = timedelta(minutes=2)


@pytest.fixture(scope="module")
def begin() -> datetime:
    return (datetime.now(timezone.utc) + AHEAD).replace(second=0, microsecond=0)


@pytest.fixture(scope="module")
def app(
    master: Cluster, jvm: Driver, tables: Tables, begin: datetime, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Application]:
    minutes = LENGTH // timedelta(minutes=1)
    conf = {
        **autoscaled(WORKERS, WINDOW_S),
        "spark.elastic.policy": "schedule,autoscale",
        "spark.elastic.schedule.leadTime": f"{LEAD_S}s",
        "spark.elastic.schedule.windows": f"{begin.minute} {begin.hour} * * * for {minutes}min name=peak "
        f"lowerBound={WORKERS}",
        "spark.elastic.adaptiveScheduler.submission.resourceStabilizationTimeout": "0",
    }
    with application(master, jvm, tables, tmp_path_factory.mktemp("schedule"), conf) as running:
        yield running


def ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000)


def test_before_its_window_the_load_decides(app: Application, lines: Lines, begin: datetime) -> None:
    app.have_workers(WORKERS)
    app.start("slow", start_slow(lines))
    wait_for_executors(app, 1, WORKERS - 1)
    assert now() < ms(begin) - LEAD_S * 1_000, "this machine is too slow for the time that was left"
    assert "slots_limited" not in app.story.reasons("slow")


def test_its_executors_are_requested_ahead_of_time_and_are_there_when_it_begins(
    app: Application, begin: datetime
) -> None:
    eventually(
        lambda: "slots_limited" in app.story.reasons("slow"),
        "the window is in force",
        timeout_s=AHEAD.total_seconds(),
        every_s=0.5,
    )
    (said,) = [one for one in app.story.said if one.reason == "slots_limited"]
    # A busy machine may be late, but only by a small part of the lead time.
    assert -LEAD_S * 1_000 <= said.at - ms(begin) < -LEAD_S * 1_000 + 30_000
    assert said.message == f"Slot limits: at least {WORKERS}, by the window peak."
    wait_for_executors(app, WORKERS, WORKERS)
    assert now() < ms(begin)


def test_they_stay_until_it_ends_and_go_after_it(app: Application, begin: datetime) -> None:
    end = ms(begin + LENGTH)
    eventually(
        lambda: "slots_not_limited" in app.story.reasons("slow", end - 1_000),
        "the window is over",
        timeout_s=LENGTH.total_seconds() + PATIENCE_S,
        every_s=0.5,
    )
    wait_for_executors(app, 1, WORKERS - 1)
    in_the_window = {seen.slots for seen in app.story.seen if ms(begin) <= seen.event.at < end}
    assert in_the_window == {WORKERS}


def test_the_journal_can_be_replayed(app: Application, lines: Lines) -> None:
    lines.__exit__()
    app.queries["slow"].stop()
    app.check_journal()
