"""Tests of a run shown as a table, as data and as a picture."""

from __future__ import annotations

import json
import sys
from xml.etree import ElementTree

import numpy as np
import pytest
from attrs import evolve
from matplotlib.axes import Axes

from spark_elastic_lab.simulator.picture import NoMatplotlibError, _moment, _ticks, figure, picture
from spark_elastic_lab.simulator.simulation import simulate
from spark_elastic_lab.simulator.table import _duration, as_data, table
from tests.unit.lab.simulator.scenes import CLUSTER, only, query, scenario

SCENE = scenario(
    query(name="<orders>", load="step:before=500,after=4000,at=10"),
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
    assert found["fewestExecutorHours"] == pytest.approx((2 * 10 + 6 * 20) / 60, rel=0.1)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0, "0.0 s"), (59.94, "59.9 s"), (60, "1 min 00 s"), (3_599, "59 min 59 s"), (7_260, "2 h 01 min")],
)
def test_durations_are_brief(seconds: float, shown: str) -> None:
    assert _duration(seconds) == shown


def lines(axes: Axes) -> dict[str, list[tuple[float, float]]]:
    """Return the points of each line by its label."""
    found = {}
    for line in axes.lines:
        xs, ys = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
        found[str(line.get_label())] = list(zip(xs.tolist(), ys.tolist(), strict=True))
    return found


def test_a_picture_shows_load_lag_executors_partitions_and_rescales() -> None:
    result = RESULTS[1]
    drawn = figure(result)
    load, lag, executors, partitions = drawn.axes
    assert [axes.get_ylabel() for axes in drawn.axes] == [
        "load (rows/s)",
        "lag (s)",
        "executors",
        "partitions",
    ]
    assert partitions.get_xlabel() == "time (h:mm)"
    assert list(lines(load)) == ["<orders>", "clicks"]
    assert list(lines(lag)) == ["<orders>", "clicks", "objective, 30 s"]
    assert list(lines(executors)) == ["fewest that would do", "there", "wanted"]
    assert list(lines(partitions)) == ["<orders>", "clicks", "rescale"]
    assert len(lines(partitions)["rescale"]) == result.metrics.rescales > 0
    for axes in drawn.axes:
        legend = axes.get_legend()
        assert legend is not None
        assert [text.get_text() for text in legend.get_texts()] == list(lines(axes))
    assert drawn.get_suptitle().startswith("autoscale\n")


def test_the_lines_have_the_values_of_the_run() -> None:
    result = RESULTS[1]
    load, lag, executors, partitions = map(lines, figure(result).axes)
    assert {value for at, value in load["<orders>"] if at < 600} == {500}
    assert {value for at, value in load["<orders>"] if at > 610} == {4_000}
    assert lag["objective, 30 s"] == [(0, 30), (1_800, 30)]
    for commit in result.notes.queries["clicks"].commits:
        behind = (commit.at - commit.since) / 1_000
        # A slice of the picture is 3.6 s wide, and shows the highest of its points.
        near = [value for at, value in lag["clicks"] if abs(at - commit.at / 1_000) <= 3.6]
        assert max(near) > behind - 1e-6
    for name, steps in (("there", result.notes.there), ("wanted", result.notes.wanted)):
        *points, last = executors[name]
        assert points == [(at / 1_000, value) for at, value in zip(steps.times, steps.values, strict=True)]
        assert last == (1_800, steps.values[-1])
    assert {line.get_drawstyle() for line in figure(result).axes[2].lines} == {"steps-post"}
    moves = [move.at / 1_000 for query in result.notes.queries.values() for move in query.moves]
    assert [at for at, _ in partitions["rescale"]] == moves


def test_the_same_run_gives_the_same_file_with_its_texts_as_they_are() -> None:
    result = only(scenario(query(name="_a $b$ <c>"), hours=0.1), "fixed:executors=4")
    text = picture(result)
    assert text == picture(result)
    assert "dc:date" not in text
    texts = ["".join(found.itertext()).strip() for found in ElementTree.fromstring(text).iter(f"{SVG}text")]
    assert "_a $b$ <c>" in texts


def test_a_picture_of_nothing_can_be_drawn() -> None:
    result = only(scenario(query(load="constant:rate=0"), hours=0.01))
    load, *_ = figure(result).axes
    assert load.get_ylim()[0] == 0
    ElementTree.fromstring(picture(result))


def test_without_matplotlib_it_is_said_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(NoMatplotlibError, match=r"type `pip install 'spark-elastic\[pictures\]'`"):
        picture(RESULTS[0])


@pytest.mark.parametrize(
    ("seconds", "count", "last"), [(36, 8, "0:00:35"), (1_800, 7, "0:30"), (86_400, 13, "24:00")]
)
def test_the_time_axis_has_round_moments(seconds: float, count: int, last: str) -> None:
    ticks = _ticks(seconds)
    assert (len(ticks), _moment(ticks[-1])) == (count, last)
