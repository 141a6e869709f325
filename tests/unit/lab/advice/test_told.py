"""Tests of what is added up from the events of a log; recorded runs have the whole story."""

from __future__ import annotations

from typing import Any

import pytest

from spark_elastic_lab.advice.advice import advise
from spark_elastic_lab.advice.journal import moves_state
from spark_elastic_lab.advice.stages import StagesSeen
from spark_elastic_lab.advice.told import Line, Told
from tests.unit.lab.advice.facts import line_of, told_of


def told(*events: dict[str, Any]) -> Told:
    found = Told(on_stage=lambda _: None)
    found.read(events)
    return found


def added(executor: str, at: int, cores: int) -> dict[str, Any]:
    info = {"Host": "h", "Total Cores": cores}
    return {
        "Event": "SparkListenerExecutorAdded",
        "Timestamp": at,
        "Executor ID": executor,
        "Executor Info": info,
    }


def test_slots_follow_executors_and_what_a_task_needs() -> None:
    conf = {"Event": "SparkListenerEnvironmentUpdate", "Spark Properties": {"spark.task.cpus": "2"}}
    gone = {"Event": "SparkListenerExecutorRemoved", "Timestamp": 5_000, "Executor ID": "1"}
    found = told(added("1", 1_000, 4), conf, added("2", 3_000, 8), gone)
    assert (found.slots.times, found.slots.values) == ([1_000, 3_000, 5_000], [2, 6, 4])
    assert (found.executors.values, found.lost) == ([1, 2, 1], 1)


def test_a_line_has_the_slope_of_its_points_and_none_if_they_are_alike() -> None:
    assert line_of((0, 10), (10, 30), (20, 50)).slope() == pytest.approx(2)
    assert line_of((5, 10), (5, 30)).slope() == 0
    assert line_of((0, 30), (10, 10)).slope() == 0
    joined = Line()
    for part in (line_of((0, 10)), line_of((10, 30))):
        joined.join(part)
    assert joined.slope() == pytest.approx(2)


def test_state_is_moved_from_spark_4_2_on() -> None:
    found = {version: moves_state(version) for version in ("3.5.9", "4.1.4", "4.2.0", "4.10.0", "5.0.0", "")}
    assert found == {
        "3.5.9": False, "4.1.4": False, "4.2.0": True, "4.10.0": True, "5.0.0": True, "": True
    }  # fmt: skip


@pytest.mark.long
def test_two_queries_of_one_name_are_told_apart() -> None:
    found, stages = told_of("stream")
    other, _ = told_of("stream")
    (query,) = other.queries.values()
    query.query = "00000000-other"
    found.queries[query.query] = query
    advice = advise(found, stages, log="twice")
    assert len({one.name for one in advice.queries}) == 2
    assert all(one.name.startswith("counts-") for one in advice.queries)
    assert advice.what_if is not None
    assert len(advice.what_if.costs) == 2


@pytest.mark.long
def test_an_older_spark_is_simulated_without_moves() -> None:
    found, stages = told_of("stream")
    found.spark = "3.5.9"
    advice = advise(found, stages, log="old")
    assert advice.what_if is not None
    reactive = {one.policy: one for one in advice.what_if.outcomes}["reactive"]
    assert reactive.rescales == 0
    # Four partitions for the slot that was there first, since their number is never changed.
    assert reactive.partitions["counts"].values == [4]


def test_an_empty_log_counts_no_stage() -> None:
    assert StagesSeen().kept == []
