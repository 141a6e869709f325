"""Tests of the schedule and the figures of the bench with Nexmark's queries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from integration.bench import results
from integration.bench.nexmark.figures import (
    Late,
    Reading,
    Snapshot,
    committed,
    compared,
    covered,
    figures,
    lateness,
    percentile,
    readings,
    sustained,
)
from integration.bench.nexmark.picture import draw
from integration.bench.nexmark.schedule import Change, Schedule
from spark_elastic_lab.simulator.record import Steps

SCHEDULE = Schedule(rates=(10, 40, 10), step_s=4, settle_s=2)
BEGIN = 1_000_000


def read_each_second(late_ms: int, *, but: dict[int, int] | None = None) -> list[Reading]:
    """Return a micro-batch for each second's events, and how late it ends."""
    found = []
    for second, events in enumerate(SCHEDULE.arrived):
        late = (but or {}).get(second, late_ms)
        found.append(Reading(BEGIN + second * 1_000 + 500 + late, events))
    return found


def test_the_load_settles_at_its_first_rate_and_steps_then() -> None:
    assert [*SCHEDULE.load.rates] == [10] * 6 + [40] * 4 + [10] * 4
    assert SCHEDULE.arrived[5:8] == [60, 100, 140]
    assert SCHEDULE.arrived[-1] == 260
    assert SCHEDULE.measured == range(2, 14)
    assert SCHEDULE.steps == [(10, range(2, 6)), (40, range(6, 10)), (10, range(10, 14))]


def test_a_worker_comes_one_is_killed_and_one_takes_its_place() -> None:
    long = Schedule(rates=(1, 2, 1), step_s=10, settle_s=60)
    assert long.changes == [Change(69, "join"), Change(75, "kill"), Change(81, "join")]


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"rates": ()}, "rates"),
        ({"rates": (1, -1)}, "rates"),
        ({"step_s": 0}, "step_s"),
        ({"settle_s": -1}, "settle_s"),
    ],
)
def test_a_schedule_that_makes_no_load_is_refused(wrong: dict[str, Any], name: str) -> None:
    with pytest.raises(ValueError, match=name):
        Schedule(**{"rates": (1,), "step_s": 1, "settle_s": 0, **wrong})


def test_events_are_read_in_a_row_up_to_the_first_file_that_is_not() -> None:
    files = {10: "0.txt", 20: "10.txt", 30: "20.txt", 40: "30.txt"}
    assert covered(files, {"0.txt": 0, "10.txt": 1, "20.txt": 1}) == [10, 30]
    # The second file was listed after the third.
    assert covered(files, {"0.txt": 0, "20.txt": 0, "10.txt": 1, "30.txt": 2}) == [10, 30, 40]
    assert covered(files, {}) == []


def test_an_event_is_read_when_all_places_have_read_it() -> None:
    reports = [(1, (None, 0)), (2, (0, 0)), (3, (0, 1)), (4, (1, 1))]
    assert readings(reports, [[10, 30], [20, 30]]) == [
        Reading(1, 0),
        Reading(2, 10),
        Reading(3, 10),
        Reading(4, 30),
    ]


def test_a_checkpoint_has_what_its_tasks_have_read() -> None:
    snapshots = [
        Snapshot(1, "a", [(0, 10)]),
        Snapshot(1, "b", [(20, 25)]),
        # Given up; the next one has what these have read.
        Snapshot(2, "a", [(10, 20)]),
        Snapshot(2, "b", [(25, 30)]),
        Snapshot(3, "a", []),
        Snapshot(3, "b", [(30, 35), (40, 45)]),
        # Lost with a restart, after which c reads it again.
        Snapshot(4, "a", [(35, 40)]),
        Snapshot(5, "c", [(35, 38)]),
        Snapshot(6, "c", [(38, 40)]),
    ]
    assert committed(snapshots, {1: 100, 3: 300, 5: 500, 6: 600}) == [
        Reading(100, 10),
        Reading(300, 35),
        Reading(500, 38),
        Reading(600, 45),
    ]
    assert committed([], {}) == []


def test_events_are_late_from_when_they_were_written() -> None:
    assert lateness(SCHEDULE, BEGIN, read_each_second(700, but={6: 900}), range(5, 7)) == [
        Late(700, 10),
        Late(900, 40),
    ]
    with pytest.raises(ValueError, match="second 13"):
        lateness(SCHEDULE, BEGIN, read_each_second(0)[:-1], SCHEDULE.measured)


def test_a_percentile_counts_events_not_seconds() -> None:
    late = [Late(5_000, 1), Late(100, 98), Late(300, 1)]
    assert [percentile(late, percent) for percent in (50, 98, 99, 100)] == [100, 100, 300, 5_000]
    assert percentile([], 99) == 0


def test_a_rate_is_sustained_if_the_query_has_caught_up_in_each_of_its_steps() -> None:
    assert sustained(SCHEDULE, BEGIN, read_each_second(1_000)) == 40
    # Late at the beginning of the step only.
    assert sustained(SCHEDULE, BEGIN, read_each_second(1_000, but={6: 20_000})) == 40
    assert sustained(SCHEDULE, BEGIN, read_each_second(1_000, but={8: 20_000, 9: 19_000})) == 10
    assert sustained(SCHEDULE, BEGIN, read_each_second(20_000)) == 0


def test_only_the_measured_seconds_count() -> None:
    # 1 executor from the start, 3 from the middle of the measured seconds, 5 after them.
    executors = Steps([BEGIN - 5_000, BEGIN + 8_000, BEGIN + 14_000], [1, 3, 5])
    found = figures(SCHEDULE, BEGIN, read_each_second(700, but={0: 30_000}), [200, 400, 300], executors)
    assert found["executors"] == {"mean": 2.0, "most": 3}
    assert found["executor_hours"] == round(2 * 12 / 3_600, 4)
    assert found["late_ms"] == {"p50": 700, "p99": 700, "max": 700}
    assert found["batch_ms"] == {"p50": 300, "p99": 400}
    assert found["sustained_per_s"] == 40


def variant(late: int, hours: float) -> dict[str, Any]:
    return {"late_ms": {"p99": late}, "executor_hours": hours, "executors": {"mean": 2.0}}


def test_variants_are_shares_of_plain_spark() -> None:
    assert compared({"plain": variant(4_000, 0.2), "reactive": variant(2_000, 0.25)}) == {
        "reactive": {"late_p99": 0.5, "executor_hours": 1.25}
    }
    assert compared({"reactive": variant(2_000, 0.25)}) == {}


def test_the_picture_has_each_query_and_each_variant(tmp_path: Path) -> None:
    both = {"variants": {"plain": variant(4_000, 0.2), "reactive": variant(2_000, 0.25)}}
    draw({"queries": {"q5": both, "q11": both}}, tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text(encoding="utf-8")
    for word in (">q5<", ">q11<", ">Spark with dynamic allocation<", ">spark-elastic, reactive<"):
        assert word in text


def test_a_result_says_what_it_was_measured_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    monkeypatch.setattr(results, "__version__", "1.2.3")
    file = results.keep("nexmark", {"queries": {}})
    assert file == tmp_path / "1.2.3" / "nexmark.json"
    kept = json.loads(file.read_text(encoding="utf-8"))
    assert kept["queries"] == {}
    assert kept["measured_with"]["spark_elastic"] == "1.2.3"
    assert kept["measured_with"]["processors"] >= 1
