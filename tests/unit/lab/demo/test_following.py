"""Tests of when executors and micro-batches have settled after a step of the demonstration."""

from __future__ import annotations

import pytest

from spark_elastic_lab.demo.chronicle import Chronicle
from spark_elastic_lab.demo.steps import Deed, Outcome, Step, Trend
from spark_elastic_lab.demo.task_log import STEADY_MS, executors_at, follow
from tests.unit.lab.demo.facts import Ran, added, decommissioning, progress, removed, submitted

ACTED = 10_000


@pytest.fixture
def chronicle() -> Chronicle:
    told = Chronicle()
    for event in (added("0", 100), added("1", 200), submitted("q"), progress("q", 0, 1000, 2)):
        told.follow(event)
    return told


@pytest.fixture
def tasks() -> Ran:
    ran = Ran()
    ran.at = {"0": 1000, "1": 1000}
    return ran


def outcome(trend: Trend, deed: Deed = Deed.LOAD) -> Outcome:
    return Outcome(Step(title="step", deed=deed, at_s=0, slots=trend), ACTED)


def looked(told: Outcome, chronicle: Chronicle, tasks: Ran, now: int) -> Outcome:
    assert isinstance(told.step.slots, Trend)
    follow(told, told.step.slots, chronicle, tasks, now)
    return told


def test_one_that_takes_no_more_tasks_is_not_there(chronicle: Chronicle) -> None:
    chronicle.follow(decommissioning("0", 3000))
    chronicle.follow(removed("0", 4000))
    assert executors_at(chronicle.changes, 150) == {"0"}
    assert executors_at(chronicle.changes, 2999) == {"0", "1"}
    assert executors_at(chronicle.changes, 3500) == executors_at(chronicle.changes, 9000) == {"1"}


def test_more_have_settled_when_all_were_used_and_nothing_has_changed_for_a_while(
    chronicle: Chronicle, tasks: Ran
) -> None:
    told = outcome(Trend.MORE)
    chronicle.follow(added("2", 20_000))
    tasks.at["2"] = 21_000
    chronicle.follow(added("3", 22_000))
    assert looked(told, chronicle, tasks, 22_000 + STEADY_MS).settled is None
    tasks.at["3"] = 23_000
    assert looked(told, chronicle, tasks, 22_000 + STEADY_MS - 1).settled is None
    assert looked(told, chronicle, tasks, 22_000 + STEADY_MS).settled == 22_000 + STEADY_MS
    assert (told.before, told.after, told.executor, told.executor_at) == (2, 4, "2", 20_000)
    assert told.in_force == {"q": 21_000}


def test_it_has_not_settled_while_a_micro_batch_takes_longer_than_its_interval(
    chronicle: Chronicle, tasks: Ran
) -> None:
    told = outcome(Trend.MORE)
    chronicle.follow(added("2", 20_000))
    tasks.at["2"] = 21_000
    chronicle.queries["q"].trigger_ms = 200
    assert looked(told, chronicle, tasks, 60_000).settled is None
    chronicle.queries["q"].trigger_ms = 300
    assert looked(told, chronicle, tasks, 60_000).settled == 60_000


def test_fewer_count_from_when_one_takes_no_more_tasks(chronicle: Chronicle, tasks: Ran) -> None:
    told = outcome(Trend.FEWER)
    chronicle.follow(decommissioning("0", 20_000))
    chronicle.follow(progress("q", 1, 24_000, 1))
    chronicle.follow(removed("0", 25_000))
    assert looked(told, chronicle, tasks, 60_000).settled == 60_000
    assert (told.before, told.after, told.executor_at) == (2, 1, 20_000)
    assert told.in_force == {"q": 24_000}


def test_one_that_comes_and_goes_again_is_no_trend(chronicle: Chronicle, tasks: Ran) -> None:
    for trend in Trend:
        told = outcome(trend)
        chronicle.follow(added("2", 20_000))
        tasks.at["2"] = 21_000
        chronicle.follow(removed("2", 30_000))
        assert looked(told, chronicle, tasks, 90_000).settled is None
        assert (told.before, told.after) == (2, 2)


def test_at_the_start_fewer_are_fewer_than_have_ever_been_there(chronicle: Chronicle, tasks: Ran) -> None:
    told = outcome(Trend.FEWER, Deed.START)
    chronicle.follow(added("2", ACTED + 500))
    chronicle.follow(decommissioning("0", 20_000))
    assert looked(told, chronicle, tasks, 90_000).settled is None  # no task has run on executor 2 yet
    tasks.at["2"] = 21_000
    assert looked(told, chronicle, tasks, 90_000).settled == 90_000
    assert (told.before, told.after) == (3, 2)
