"""Tests that a rival sees the state of the cluster, and that its wishes are carried out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

import pytest
from attrs import define, evolve, field

from spark_elastic.core.policies.policy import QueryWish, Wish
from spark_elastic.core.policies.view import ClusterView
from spark_elastic.core.scheduler import Scheduler
from spark_elastic.settings import load
from spark_elastic_lab.simulator.driver import EPOCH_MS, Driver
from spark_elastic_lab.simulator.outside import Outside
from spark_elastic_lab.simulator.rivals.rival import ADAPTIVE, REACTIVE, TaskView
from spark_elastic_lab.simulator.scenario import Scenario
from tests.unit.lab.simulator.scenes import CLUSTER, PLAIN, query, scenario


@define
class Looking:
    """Looks once a minute, keeps the views, and has a scripted wish."""

    settings: ClassVar[Mapping[str, str]] = REACTIVE
    interval_s: ClassVar[float] = 60.0

    want: Callable[[TaskView], Wish] = lambda view: Wish()
    seen: list[TaskView] = field(factory=list)

    def decide(self, view: ClusterView) -> Wish:
        assert isinstance(view, TaskView)
        self.seen.append(view)
        return self.want(view)


def run(what: Scenario, rival: Looking, settings: Mapping[str, str] = REACTIVE) -> Driver:
    driver = Driver(what, Scheduler(load(settings).core()), what.loads())
    Outside(rival, driver).begin()
    driver.run()
    return driver


def test_it_sees_executors_queries_and_what_runs() -> None:
    rival = Looking()
    run(scenario(query(load="constant:rate=3600"), cluster=evolve(CLUSTER, initial=4), hours=0.2), rival)
    first, *_, last = rival.seen
    assert (first.at, len(first.executors), first.slots) == (EPOCH_MS, 4, 4)
    assert first.queries == {}
    shown = last.queries["counts"]
    assert (shown.slots, shown.partitions, last.mode) == (4, 4, "reactive")
    assert [sample.input_rows for sample in shown.samples[-3:]] == [36_000] * 3
    assert shown.samples[-1].gap_ms == 10_000
    assert last.uncommitted["counts"] >= 36_000


def test_a_batch_that_runs_is_seen_with_the_tasks_that_are_left() -> None:
    rival = Looking()
    load_of_work = query(load="constant:rate=4000", cost=evolve(PLAIN, fixed_ms=40_000))
    run(scenario(load_of_work, hours=0.1), rival)
    (batch,) = rival.seen[1].running
    assert (batch.query, batch.tasks, batch.slots) == ("counts", 104, 4)
    assert 0 < batch.left < batch.tasks
    assert EPOCH_MS <= batch.begun < rival.seen[1].at


def test_samples_older_than_any_window_are_forgotten() -> None:
    rival = Looking()
    run(scenario(hours=1), rival)
    assert len(rival.seen[-1].queries["counts"].samples) == 121


@pytest.mark.parametrize("decommissions", [True, False])
def test_a_wish_for_executors_is_done_at_the_cluster(decommissions: bool) -> None:
    def want(view: TaskView) -> Wish:
        return Wish(executors=7 if view.at < EPOCH_MS + 600_000 else 2)

    cluster = evolve(CLUSTER, decommissions=decommissions, decommission_s=5)
    driver = run(scenario(cluster=cluster, hours=0.5), Looking(want))
    there = driver.notes.there
    assert list(zip(there.times, there.values, strict=True)) == [(0, 4), (20_000, 7), (600_000, 2)]
    # The oldest ones stay; a decommissioned one is paid for until it is gone.
    assert driver.cluster.live == ["1", "2"]
    assert driver.notes.paid.at(603_000) == (7 if decommissions else 2)


def test_a_refusal_changes_nothing_and_is_asked_again() -> None:
    cluster = evolve(CLUSTER, refusals=0.7)
    driver = run(scenario(cluster=cluster, hours=0.5), Looking(lambda view: Wish(executors=2)))
    assert driver.notes.refused > 0
    assert driver.cluster.usable == 2


def test_a_wish_for_a_query_is_its_upper_bound() -> None:
    def want(view: TaskView) -> Wish:
        return Wish(queries={query: QueryWish(slots=6, reason="a test") for query in view.queries})

    driver = run(scenario(hours=0.5), Looking(want), ADAPTIVE)
    assert driver.scheduler.queries["counts"].requirements.upper == 6
    assert driver.notes.there.values[-1] == 6
    # The wish is not repeated: one request for bounds, and one for executors.
    assert driver.notes.reasons["bounds_requested"] == 1
