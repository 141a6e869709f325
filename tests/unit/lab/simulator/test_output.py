"""Tests of a run shown as a table, as data and as a picture."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest
from attrs import evolve

from spark_elastic_lab.simulator.picture import _round_up, picture
from spark_elastic_lab.simulator.simulation import simulate
from spark_elastic_lab.simulator.table import _duration, as_data, table
from tests.unit.lab.simulator.scenes import CLUSTER, only, query, scenario

SCENE = scenario(
    query(name="<orders>", load="step:before=500,after=3000,at=10"),
    query(name="clicks"),
    cluster=evolve(CLUSTER, initial=1),
    hours=0.5,
)
RESULTS = list(simulate(SCENE, ["reactive", "autoscale"]))
SVG = "{http://www.w3.org/2000/svg}"


def test_a_table_has_a_line_for_each_policy_and_a_column_for_each_figure() -> None:
    heading, *rows = table(RESULTS).splitlines()
    assert heading.split()[:2] == ["policy", "executor-hours"]
    assert [row.split()[0] for row in rows] == ["reactive", "autoscale"]
    assert rows[0].split()[1] == "0.5"
    assert len({len(row) for row in rows}) == 1


def test_data_are_ready_for_json() -> None:
    found = json.loads(json.dumps(as_data(RESULTS)))
    assert list(found["policies"]) == ["reactive", "autoscale"]
    assert found["policies"]["reactive"]["executor_hours"] == 0.5
    assert found["policies"]["autoscale"]["elasticity"]["under"] >= 0
    assert found["fewestExecutorHours"] == pytest.approx((2 * 10 + 5 * 20) / 60, rel=0.1)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0.0 s"), (59.94, "59.9 s"), (60, "1 min 00 s"), (3_599, "59 min 59 s"), (7_260, "2 h 01 min")],
)
def test_durations_are_brief(seconds: float, shown: str) -> None:
    assert _duration(seconds) == shown


def test_a_picture_shows_load_lag_executors_and_rescales() -> None:
    root = ElementTree.fromstring(picture(RESULTS[1]))
    texts = [text.text for text in root.iter(f"{SVG}text")]
    for title in (
        "rows/s that arrive",
        "lag (s)",
        "executors",
        "partitions, and rescales",
        "<orders>",
        "there",
    ):
        assert title in texts
    paths = list(root.iter(f"{SVG}path"))
    # Two queries: load, lag with the objective, three lines of executors, partitions.
    assert len(paths) == 2 + 3 + 3 + 2
    marks = [line for line in root.iter(f"{SVG}line") if line.get("class") == "mark"]
    assert len(marks) == RESULTS[1].metrics.rescales > 0


def test_the_lines_are_where_their_values_are() -> None:
    result = only(scenario(hours=0.5), "fixed:executors=4")
    root = ElementTree.fromstring(picture(result))
    load, *_, wanted, there, _ = [path.get("d") or "" for path in root.iter(f"{SVG}path")]
    # 1,000 rows/s and 4 executors are the upper ends of their axes.
    assert load.split("L")[0] == "M70.0 72.0"
    assert there == "M70.0 400.0H940.0V400.0" == wanted


def test_a_picture_of_nothing_can_be_drawn() -> None:
    ElementTree.fromstring(picture(only(scenario(query(load="constant:rate=0"), hours=0.01))))


@pytest.mark.parametrize(("value", "end"), [(0, 1), (0.03, 0.04), (1, 1), (7, 10), (2_001, 4_000)])
def test_an_axis_ends_with_a_round_number(value: float, end: float) -> None:
    assert _round_up(value) == pytest.approx(end)
