"""The chaos run counts what its faults have hit, and nothing else."""

from __future__ import annotations

from pathlib import Path

from integration.chaos.phases import PHASES
from integration.chaos.plan import FAULTS, Plan, Step
from integration.chaos.report import Happened, Report, broken

STEP = Step(faults=("executor_killed", "savepoint"), query="totals", phase="moving", seconds=1.0, seed=7)


def happened(*hits: str | None) -> Happened:
    return Happened(step=STEP, phase="running", hits=hits, struck=1, healed=2, recovered=3, seconds=2.5)


def test_all_faults_meet_all_phases_in_turn() -> None:
    plan = Plan(1)
    met: set[tuple[str, str]] = set()
    # The clock leaps, so that the limit on lost policy processes does not count.
    for number in range(3 * len(FAULTS) * len(PHASES)):
        step = plan.next(number * 10_000.0)
        plan.met(step.phase, step.faults)
        met |= {(name, step.phase) for name in step.faults}
    assert met == {(name, phase) for name in FAULTS for phase in PHASES}


def test_a_phase_that_is_never_met_is_not_tried_for_ever() -> None:
    plan = Plan(1, ["savepoint", "executor_killed"])
    phases = []
    for number in range(8 * 2 * len(PHASES)):
        step = plan.next(number * 10_000.0)
        phases.append(step.phase)
        plan.met("running" if step.phase == "held" else step.phase, step.faults)
    assert phases.count("held") < len(phases) / 2


def test_a_fault_that_has_missed_does_not_count(tmp_path: Path) -> None:
    report = Report(7, tmp_path, happened=[happened("executor 1", None), happened("executor 2", "totals")])
    result = report.close([])
    assert (result["steps"], result["faults"], result["missed"]) == (2, 3, 1)
    assert result["by_fault_and_phase"] == {"executor_killed": {"running": 2}, "savepoint": {"running": 1}}
    assert result["recover_s_by_fault"]["savepoint"] == {"p50": 2.5, "max": 2.5}
    assert "savepoint (nothing)" in report.happened[0].line()


def test_what_is_left_over_or_unknown_is_broken(tmp_path: Path) -> None:
    report = Report(7, tmp_path)
    assert not broken(report.close([]))
    assert broken(report.close(["worker-1"]))
    report.found = {"unknown_errors": {"Foo: bar": 1}}
    assert broken(report.close([]))
