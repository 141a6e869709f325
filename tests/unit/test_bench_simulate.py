"""Tests that the bench of policies runs, prints what other programs read, and judges by its goals."""

from __future__ import annotations

import json

import pytest
from attrs import evolve

from integration.bench import simulate
from integration.bench.simulate_loads import HELD_BACK, LOADS
from spark_elastic_lab.simulator.load import SHAPES, load_of
from spark_elastic_lab.simulator.run_metrics import RunMetrics, elasticity

pytestmark = pytest.mark.long

USUAL = RunMetrics(
    executor_hours=10, elasticity=elasticity([1], [1]), outside_percent=0.5, largest_lag_s=9,
    largest_lag_rows=9, drain_s=0, rescales=4, paused_s=8, steps=3, oscillations=0, lost=0, refused=0,
)  # fmt: skip


def judged(**ours: float) -> dict[str, bool]:
    """Judge our metrics; the oracle takes 9 hours, and Flink's autoscaler 12 hours with 8 rescales."""
    flink = evolve(USUAL, executor_hours=12, rescales=8)
    oracle = evolve(USUAL, executor_hours=9)
    mine = evolve(USUAL, **ours)  # type: ignore[arg-type]
    policies = {"autoscale": mine, "flink": flink, "dynamic-allocation": flink, "oracle": oracle}
    goals: dict[str, bool] = simulate.summary({"cosine": policies})["goals_met"]
    return goals


def test_a_quick_run_prints_its_metrics(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["simulate", "--quick"])
    assert simulate.main() == 0
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert set(result["loads"]) == {"cosine", "step"}
    assert set(result["loads"]["step"]["policies"]) > {"autoscale", "flink", "dynamic-allocation", "oracle"}
    assert set(result["goals_met"]) == set(judged())
    assert result["policies"]["oracle"]["executor_hours_by_oracle"] == 1
    assert set(result["policies"]) == set(result["loads"]["step"]["policies"])


@pytest.mark.parametrize(
    ("ours", "goal"),
    [
        ({"executor_hours": 10.4}, "executor_hours_by_oracle"),
        ({"outside_percent": 1.01}, "outside_percent"),
        ({"rescales": 5}, "rescales"),
        ({"oscillations": 1}, "oscillations"),
        ({"executor_hours": 12.1}, "beaten_by"),
    ],
)
def test_each_goal_can_be_missed(ours: dict[str, float], goal: str) -> None:
    assert all(judged().values())
    assert not judged(**ours)[goal]


def test_what_a_policy_comes_to_on_all_loads() -> None:
    oracle = evolve(USUAL, executor_hours=5)
    one = {"flink": USUAL, "oracle": oracle}
    other = {"flink": evolve(USUAL, executor_hours=40, outside_percent=2, drain_s=80), "oracle": oracle}
    assert simulate.overall({"cosine": one, "step": other})["flink"] == {
        "executor_hours_by_oracle": 4,
        "outside_percent": 1.25,
        "most_outside_percent": 2,
        "drain_s": 80,
        "moves": 8,
        "steps": 6,
        "oscillations": 0,
    }


def test_every_shape_is_among_the_loads_and_half_of_them_are_for_tuning() -> None:
    assert {load.text.partition(":")[0] for load in LOADS.values()} == set(SHAPES)
    assert sum(load.tuned for load in LOADS.values()) * 2 == len(LOADS)
    for load in LOADS.values():
        load_of(load.text, 60, "1")


def test_what_is_held_back_is_neither_tuned_on_nor_among_the_loads() -> None:
    assert len(HELD_BACK) >= 3
    assert not any(load.tuned for load in HELD_BACK.values())
    assert not {load.text for load in HELD_BACK.values()} & {load.text for load in LOADS.values()}
    for load in HELD_BACK.values():
        load_of(load.text, 60, "1")
