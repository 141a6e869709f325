"""Tests of the gaps and of the summary of the bench that compares rescales with Flink's."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from attrs import define, field

from integration.bench import flink_sides
from integration.bench.flink import ratios, summarized, table
from integration.bench.flink_outputs import Output, behind_ms, in_force_since, longest_gap, outputs_in
from integration.bench.flink_sides import Change, run


def out(at: int, subtask: int, parallelism: int, due_ms: int | None = None) -> Output:
    return Output(at, subtask, parallelism, 1_000 * (at if due_ms is None else due_ms))


BOTH = [out(at, subtask, 2) for at in range(0, 100, 10) for subtask in (0, 1)]


def test_lines_of_the_sink_are_read() -> None:
    assert outputs_in(["1700000000123 2 3 1700000000120500"]) == [
        Output(at=1_700_000_000_123, subtask=2, parallelism=3, due=1_700_000_000_120_500)
    ]


def test_a_gap_is_that_of_the_keys_that_wait_longest() -> None:
    # One subtask goes on after 50 ms, the other after 400 ms.
    outputs = [*BOTH, out(140, 0, 2), out(150, 0, 2), out(490, 1, 2), out(495, 0, 2)]
    assert longest_gap(outputs, 0, 1_000) == 400
    assert longest_gap(outputs, 0, 200) == 50
    assert longest_gap(outputs, 0, 90) == 10
    assert longest_gap(outputs, 500, 1_000) == 0
    assert longest_gap([], 0, 1_000) == 0


def test_keys_keep_their_gap_when_they_go_to_another_subtask() -> None:
    # The last third of the keys had belonged to the second half.
    outputs = [*BOTH, out(300, 0, 3), out(320, 1, 3), out(700, 2, 3)]
    assert longest_gap(outputs, 100, 1_000) == 610
    assert longest_gap(outputs[:-1], 100, 1_000) == 230


def test_rows_that_come_again_do_not_end_the_gap_of_new_ones() -> None:
    again = [out(300, 0, 2, 20), out(310, 1, 2, 20), out(350, 0, 2, 90), out(360, 1, 2, 90)]
    new = [out(400, 0, 2, 95), out(500, 1, 2, 100)]
    outputs = [*BOTH, *again, *new]
    assert longest_gap(outputs, 0, 1_000) == 220
    assert longest_gap(outputs, 0, 1_000, new=True) == 410


def test_outputs_are_taken_in_the_order_of_time() -> None:
    assert longest_gap(list(reversed(BOTH)), 0, 1_000) == 10


def test_a_parallelism_is_in_force_when_all_of_its_subtasks_have_rows() -> None:
    outputs = [*BOTH, out(200, 0, 3), out(250, 2, 3), out(260, 0, 3)]
    assert in_force_since(outputs, 3, 0) is None
    outputs.append(out(270, 1, 3))
    assert in_force_since(outputs, 3, 0) == 270
    assert in_force_since(outputs, 2, 5) == 10
    assert in_force_since(outputs, 2, 95) is None


def test_a_job_is_as_far_behind_as_its_slowest_subtask() -> None:
    outputs = [out(80, 1, 3, 0), *BOTH, out(200, 0, 2, 198), out(190, 1, 2, 60)]
    assert behind_ms(outputs) == 140


@define
class Staged:
    """A side on which nothing runs: its clock advances by a second with each act."""

    now: int = 0
    acts: list[str] = field(factory=list)
    follows: bool = True

    def _act(self, what: str) -> int | None:
        self.acts.append(what)
        self.now += 1_000
        return self.now if self.follows else None

    def join(self) -> int | None:
        return self._act("join")

    def stop(self) -> int | None:
        return self._act("stop")

    def kill(self) -> int | None:
        return self._act("kill")

    def settle(self) -> None:
        self._act("settle")

    def gaps(self, begin: int, end: int) -> Mapping[str, float]:
        return {"gap_ms": begin / 10, "new_gap_ms": end / 10}

    def state_mb(self) -> int:
        return 48


@pytest.fixture
def side(monkeypatch: pytest.MonkeyPatch) -> Staged:
    staged = Staged()
    monkeypatch.setattr(flink_sides, "now_ms", lambda: staged.now)
    monkeypatch.setattr(flink_sides, "into_interval", lambda part: staged.acts.append(f"{part:g}"))
    return staged


def test_a_round_joins_twice_stops_and_kills_and_all_settles_between(side: Staged) -> None:
    changes = run(side, 2)
    round_ = "settle settle join settle {0} stop settle join settle {0} kill settle "
    assert side.acts == (round_.format("0") + round_.format("0.5")).split()
    assert [change.case for change in changes] == ["steady", "join", "stop", "join", "kill"] * 2
    assert changes[1] == Change(case="join", began=2_000, in_force=3_000, ended=4_000)


def test_gaps_are_summarized_by_case(side: Staged) -> None:
    summary = summarized(side, run(side, 1))
    assert summary["state_mb"] == 48
    assert summary["steady"] == {
        "rounds": 1,
        "gap_ms": {"p50": 0, "max": 0},
        "new_gap_ms": {"p50": 200, "max": 200},
    }
    assert summary["join"] == {
        "rounds": 2,
        "gap_ms": {"p50": 400, "max": 600},
        "new_gap_ms": {"p50": 600, "max": 800},
        "in_force_ms": {"p50": 1_000, "max": 1_000},
        "not_in_force": 0,
    }
    told = {"case": "join", "began": 2_000, "in_force": 3_000, "ended": 4_000}
    assert summary["changes"][1] == {**told, "gap_ms": 200, "new_gap_ms": 400}


def test_changes_that_never_took_effect_are_counted(side: Staged) -> None:
    side.follows = False
    summary = summarized(side, run(side, 1))
    assert (summary["join"]["not_in_force"], summary["kill"]["not_in_force"]) == (2, 1)
    assert summary["kill"]["in_force_ms"] == {"p50": 0, "max": 0}


def measured(gap: float, new: float) -> dict[str, object]:
    times = {"gap_ms": {"p50": gap, "max": 2 * gap}, "new_gap_ms": {"p50": new, "max": 2 * new}}
    return dict.fromkeys(("steady", "join", "stop", "kill"), times)


def test_ratios_are_of_medians_and_need_both_systems() -> None:
    both = {"spark": measured(1_500, 1_500), "flink": measured(600, 750)}
    assert ratios(both)["spark_to_flink"]["kill"] == {"gap_ms": 2.5, "new_gap_ms": 2.0}
    assert ratios({"spark": both["spark"]}) == {}
    none = ratios({"spark": measured(1, 1), "flink": measured(0, 1)})
    assert none["spark_to_flink"]["join"] == {"gap_ms": None, "new_gap_ms": 1.0}


def test_the_table_has_a_row_for_each_size_and_case() -> None:
    both = {"spark": measured(1_500, 1_500), "flink": measured(600, 750)}
    lines = table({"50": both | ratios(both), "1200": {"flink": both["flink"]}}).splitlines()
    assert len(lines) == 2 + 2 * 4
    assert lines[5] == "| 50 MB, kill | 1,500 (3,000) | 600 (1,200) | 750 (1,500) | 2.5 / 2.0 |"
    assert lines[7] == "| 1,200 MB, join | – | 600 (1,200) | 750 (1,500) | – |"
