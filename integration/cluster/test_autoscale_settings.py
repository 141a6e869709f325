"""Tests of the settings of the policy `autoscale`, one query for each, over the same input.

Each row makes its task wait for a while and needs no processor: 110 rows/s take 5.5 s of slot time in each
interval of 10 s; partitions, planning and commit take up to 3 s more on a busy machine.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from integration.cluster.application import Application, application, now
from integration.cluster.lines import SETTLED_S, Lines, autoscaled, start_slow
from integration.cluster.loaded import just_met
from integration.streaming.driver import Driver
from integration.streaming.waiting import eventually
from spark_elastic.core.actions import Decision, RequestExecutors
from spark_elastic.runtime.entries import read_journal
from spark_elastic_lab.demo.cluster import Cluster
from spark_elastic_lab.demo.data import Tables
from spark_elastic_lab.simulator.recorded import heard
from spark_elastic_lab.simulator.recorded_run import recorded_run
from spark_elastic_lab.simulator.simulation import simulate

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(600)]

TRIGGER_S = 10.0
ROWS_PER_S = 110
SETTINGS = {
    # This allows 9 s of each interval, for which one slot is enough.
    "loose": {"load": "0.9"},
    # This allows 4 s, for which it is not.
    "tight": {"load": "0.4"},
    # The first allows 5.5 s, which the additional time exceeds, the second 10 s.
    "narrow": {"load": "0.5", "loadBand": "0.05"},
    "wide": {"load": "0.5", "loadBand": "0.5"},
    # A row may wait for a whole interval, so this leaves 4 s.
    "prompt": {"load": "0.9", "maxLag": "14s"},
}
ONE_IS_ENOUGH, MORE = ("loose", "wide"), ("tight", "narrow", "prompt")
UP = {"autoscale_up", "autoscale_up_backlog", "autoscale_falls_behind", "autoscale_first_batch"}


@pytest.fixture(scope="module")
def app(
    master: Cluster, jvm: Driver, tables: Tables, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Application]:
    conf = {
        **autoscaled(most=5, window_s=20),
        # One slot per query: waiting tasks need no processor of their own.
        "spark.executor.cores": str(len(SETTINGS)),
        "spark.elastic.adaptiveScheduler.submission.resourceStabilizationTimeout": "0",
        # One executor, and too little left for a second one.
        "spark.elastic.quota.cores": str(2 * len(SETTINGS) - 1),
        **{
            f"spark.elastic.query.{name}.autoscale.{key}": value
            for name, own in SETTINGS.items()
            for key, value in own.items()
        },
    }
    with application(master, jvm, tables, tmp_path_factory.mktemp("settings"), conf) as running:
        yield running


@pytest.fixture(scope="module")
def lines(app: Application) -> Iterator[Lines]:
    with Lines(app.places.output.with_name("lines"), rows_per_s=1) as writing:
        yield writing


def raised(app: Application, name: str, since: int) -> Decision | None:
    """Return the first decision from `since` (epoch ms) on that gives a query more slots."""
    app.check_alive()
    query = app.story.named(name).query
    found = (one for one in app.story.said if one.query == query and one.at >= since and one.reason in UP)
    return next(found, None)


def wait_raised(app: Application, name: str, since: int) -> Decision:
    found = eventually(lambda: raised(app, name, since), f"{name} wants more", SETTLED_S)
    assert found is not None
    return found


def run(app: Application, name: str, count: int) -> None:
    """Wait until a query has run this many more micro-batches."""
    before = len(app.story.named(name).batches)
    eventually(lambda: len(app.story.named(name).batches) >= before + count, f"batches of {name}", SETTLED_S)


def test_each_query_wants_what_its_own_settings_say(app: Application, lines: Lines) -> None:
    app.have_workers(1, cores=len(SETTINGS))
    for name in SETTINGS:
        app.start(name, start_slow(lines, trigger_s=TRIGGER_S))
    eventually(lambda: {query.name for query in app.story.queries.values()} >= {*SETTINGS}, "all are there")
    for name in SETTINGS:
        run(app, name, 2)
    since = now()
    lines.rows_per_s = ROWS_PER_S
    for name in MORE:
        said = wait_raised(app, name, since)
        assert (said.after or 0) > 1
        assert said.numbers["target_percent"] == 100 * float(SETTINGS[name]["load"])
    for name in ONE_IS_ENOUGH:
        run(app, name, 2)
    assert {name: raised(app, name, since) for name in ONE_IS_ENOUGH} == dict.fromkeys(ONE_IS_ENOUGH)


def test_no_more_executors_are_requested_than_the_quota_of_cores_allows(app: Application) -> None:
    """Three queries want a second slot or more, and one executor has one slot for each query."""
    limited = eventually(
        lambda: [one for one in app.story.said if one.reason == "executors_limited"], "it is said", SETTLED_S
    )[0]
    assert (limited.numbers["wanted"], limited.after) == (2, 1)
    assert limited.numbers["setting"] == "spark.elastic.quota.cores"
    requests = [order.total for order in app.story.orders if isinstance(order, RequestExecutors)]
    assert all(total <= 1 for total in requests)


def test_the_journal_can_be_replayed(app: Application, lines: Lines) -> None:
    lines.__exit__()
    for name in SETTINGS:
        app.queries[name].stop()
    app.check_journal()


def test_the_simulation_as_set_goes_as_it_went(app: Application) -> None:
    told = heard(entry for _, entry in read_journal(app.journal))
    scenario = just_met(told)
    was = recorded_run(told, scenario)
    (again,) = simulate(scenario, ["as-set"])
    assert was.metrics.outside_percent == again.metrics.outside_percent == 0
    assert again.metrics.largest_lag_s == pytest.approx(was.metrics.largest_lag_s, abs=TRIGGER_S)
