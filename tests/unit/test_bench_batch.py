"""Tests of the summary of the bench of batch queries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from integration.bench.batch import FIXED, candidates
from integration.bench.batch_driver import Run
from integration.bench.batch_picture import draw
from integration.bench.batch_summary import first_executions, machine, summary


def run(query: str, count: int | None, began: int, ms: int) -> Run:
    return Run(query, count, began, began + ms)


def stage(at: int, ratio: float | None, last_us: int, unanswered: int = 0) -> dict[str, Any]:
    numbers = {} if ratio is None else {"ratio": ratio}
    return {
        "at": at,
        "answer": {"record": {"numbers": numbers}},
        "last_us": last_us,
        "unanswered": unanswered,
    }


def test_ratios_say_how_many_times_as_long_the_others_take() -> None:
    shipped = [run("q1", None, 0, 4_000), run("q2", None, 0, 1_000)]
    fixed = [run("q1", count, 0, 2_000 + abs(count - 16)) for count in FIXED]
    fixed += [run("q2", count, 0, 1_000 + count) for count in FIXED]
    elastic = [run("q1", None, at, ms) for at, ms in ((0, 900), (10_000, 1_000), (20_000, 9_000))]
    elastic.append(run("q2", None, 40_000, 2_000))
    decided = [stage(500, 1.05, 0), stage(20_500, 1.3, 1_500, 1), stage(35_000, 7.0, 2_500, 1)]
    decided.append(stage(41_000, None, 3_500, 2))
    result = summary(shipped, fixed, elastic, decided)
    assert result["queries"] == {
        "q1": {
            "shipped_s": 4.0,
            "best_fixed_s": 2.0,
            "best_fixed_n": 16,
            "elastic_s": 1.0,
            "max_over_mean_bytes": 1.3,
        },
        "q2": {
            "shipped_s": 1.0,
            "best_fixed_s": 1.004,
            "best_fixed_n": 4,
            "elastic_s": 2.0,
            "max_over_mean_bytes": None,
        },
    }
    assert (result["geomean_vs_shipped"], result["worst_vs_shipped"]) == (1.414, 0.5)
    assert result["geomean_vs_best_fixed"] == 1.002
    assert result["noise"] is None
    assert result["decisions"] == 4
    assert (result["decision_ms"], result["unanswered"]) == ({"p50": 2.5, "p99": 3.5}, 2)


def test_first_executions_are_told_apart_from_those_of_plans_that_have_run() -> None:
    shipped = [run("q1", None, 0, ms) for ms in (3_000, 4_000, 9_000)] + [run("q2", None, 0, 1_000)]
    elastic = [run("q1", None, 0, 1_000), run("q2", None, 0, 2_000)]
    result = first_executions(shipped, elastic)
    assert result["first_queries"] == {
        "q1": {"shipped_s": 4.0, "elastic_s": 1.0},
        "q2": {"shipped_s": 1.0, "elastic_s": 2.0},
    }
    assert (result["first_geomean_vs_shipped"], result["first_worst_vs_shipped"]) == (1.414, 0.5)


def test_noise_is_what_halves_of_the_same_differ_by() -> None:
    shipped = [run("q1", None, 0, ms) for ms in (1_000, 2_000, 1_000, 2_000)]
    shipped += [run("q2", None, 0, 500) for _ in range(4)]
    ours = [run("q1", None, 0, 1_000), run("q2", None, 0, 500)]
    fixed = [run("q1", 4, 0, 1_000), run("q2", 4, 0, 500)]
    assert summary(shipped, fixed, ours, [])["noise"] == {"geomean": 1.414, "worst": 2.0}


def test_the_best_count_is_chosen_by_other_runs_than_those_that_say_what_it_takes() -> None:
    # Each is fast in one of its two runs by chance; neither is really that fast.
    fixed = [run("q1", 4, 0, ms) for ms in (500, 1_000)] + [run("q1", 8, 0, ms) for ms in (1_100, 600)]
    ours = [run("q1", None, 0, 1_050)]
    result = summary(ours, fixed, ours, [])
    queries: Any = result["queries"]
    assert (queries["q1"]["best_fixed_s"], queries["q1"]["best_fixed_n"]) == (1.05, 4)
    assert result["geomean_vs_best_fixed"] == 1.0


def test_the_two_fastest_counts_of_each_query_are_measured() -> None:
    tries = [
        [run("q1", 4, 0, 900), run("q2", 4, 0, 300)],
        [run("q1", 8, 0, 700), run("q2", 8, 0, 400)],
        [run("q1", 200, 0, 800), run("q2", 200, 0, 500)],
    ]
    assert candidates(tries) == [{"q1": 8, "q2": 4}, {"q1": 200, "q2": 8}]


def test_what_warming_up_has_cost_the_machine_is_left_out() -> None:
    def cost(cpu_s: int, slots_s: int, shuffled: int) -> dict[str, int]:
        return {"cpu_ns": cpu_s * 10**9, "slots_ms": slots_s * 1000, "shuffle_bytes": shuffled}

    before = [cost(10, 20, 100), cost(30, 40, 200), cost(50, 60, 300)]
    after = [cost(14, 29, 150), cost(38, 50, 290), cost(53, 65, 310)]
    assert machine(before, after) == {
        "shipped": {"cpu_s": 4.0, "slots_s": 9.0, "shuffle_bytes": 50},
        "fixed": {"cpu_s": 8.0, "slots_s": 10.0, "shuffle_bytes": 90},
        "elastic": {"cpu_s": 3.0, "slots_s": 5.0, "shuffle_bytes": 10},
    }


def test_the_picture_has_a_row_for_each_query(tmp_path: Path) -> None:
    query = {"shipped_s": 4.0, "best_fixed_s": 2.0, "elastic_s": 1.0}
    result = {"suite": "tpcds", "sf": 1.0, "queries": {"q1": query, "q22": query}}
    draw({**result, "geomean_vs_shipped": 4.0, "geomean_vs_best_fixed": 2.0}, tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert ">q1<" in text
    assert ">q22<" in text
    assert "as shipped (4.0 ×" in text
    assert "TPC-DS scale 1" in text
