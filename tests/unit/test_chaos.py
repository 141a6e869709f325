"""Tests that the chaos run counts what its faults have hit, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import attrs
import pytest

from integration.chaos import table
from integration.chaos.phases import ILL, PHASES, PHASES_OF, RUNNING, WAITING
from integration.chaos.plan import FAULTS, Plan, Step, is_there, of_mode
from integration.chaos.report import Happened, Report, broken, read_happened
from integration.chaos.rows import STATEFUL, Feeder, Tail, differences
from integration.chaos.run import chosen
from integration.chaos.settings import EAGER, NO_RESTARTS, OF_MODE, RESTARTS, STATEFUL_AT, Mode, Where
from integration.chaos.shrink import TIMES, again, shrink, what_broke
from spark_elastic.core.failures.strategy import NoRestart
from spark_elastic.settings import load

ON_STANDALONE = {name: fault for name, fault in FAULTS.items() if fault.where != "kubernetes"}
STEP = Step(faults=("executor_killed", "savepoint"), query="totals", phase="moving", seconds=1.0, seed=7)


def happened(*hits: str | None) -> Happened:
    return Happened(step=STEP, phase="running", hits=hits, struck=1, healed=2, recovered=3, seconds=2.5)


@pytest.mark.parametrize("where", ["standalone", "kubernetes"])
def test_all_faults_meet_all_phases_in_turn(where: Where) -> None:
    plan = Plan(1, where=where)
    met: set[tuple[str, str]] = set()
    # The plan's clock jumps, so that its limit on lost policy processes is never reached.
    for number in range(3 * len(FAULTS) * len(PHASES)):
        step = plan.next(number * 10_000.0)
        plan.met((name, step.phase) for name in step.faults)
        met |= {(name, step.phase) for name in step.faults}
    there = [name for name in FAULTS if is_there(name, "adaptive", where)]
    assert met == {(name, phase) for name in there for phase in PHASES}


def test_a_fault_lasts_as_long_as_it_may() -> None:
    plan = Plan(3)
    lasted: dict[str, list[float]] = {name: [] for name in ON_STANDALONE}
    for number in range(2000):
        step = plan.next(number * 10_000.0)
        plan.met((name, step.phase) for name in step.faults)
        for name in step.faults:
            lasted[name].append(step.seconds)
    # Of two faults in one step, the one with the longer minimum decides.
    longest_least = max(fault.shortest for fault in ON_STANDALONE.values())
    for name, seconds in lasted.items():
        fault = FAULTS[name]
        assert min(seconds) >= fault.shortest
        if fault.longest:
            assert fault.longest / 2 < max(seconds) <= max(fault.longest, longest_least)


def test_four_policy_processes_of_a_driver_are_lost_at_most() -> None:
    plan = Plan(1)
    lost: list[float] = []
    for number in range(400):
        step = plan.next(number * 20.0)
        losing = [FAULTS[name] for name in step.faults if FAULTS[name].loses_policy]
        assert len(losing) <= 1
        if any(fault.ends_driver for fault in losing):
            lost = []
        elif losing:
            lost = [*(at for at in lost if at > number * 20.0 - 600.0), number * 20.0]
        assert len(lost) <= 4


def test_only_the_kinds_that_are_named_are_chosen() -> None:
    kinds = {"driver_killed", "query_stopped"}
    plan = Plan(1, kinds)
    assert {name for number in range(50) for name in plan.next(float(number)).faults} == kinds


def test_steps_are_chosen_until_there_are_enough_faults_or_time_is_up() -> None:
    steps = list(chosen(Plan(1), 20))
    assert 20 <= sum(len(step.faults) for step in steps) <= 21
    assert not list(chosen(Plan(1), 20, minutes=0.0))


def test_all_has_to_be_well_after_each_burst() -> None:
    plan = Plan(1, burst=3)
    lasted, steps = [], 0
    for number in range(200):
        step = plan.next(float(number))
        steps += 1
        if not step.goes_on:
            assert steps == 3 or any(FAULTS[name].ends_burst for name in step.faults)
            lasted.append(steps)
            steps = 0
    assert set(lasted) == {1, 2, 3}
    assert not any(step.goes_on for step in chosen(Plan(1), 20))


def test_steps_of_a_burst_differ_in_nothing_else() -> None:
    one_by_one, burst = Plan(1), Plan(1, burst=5)
    for number in range(50):
        step = burst.next(float(number))
        assert attrs.evolve(step, goes_on=False) == one_by_one.next(float(number))


def chosen_by(plan: Plan) -> tuple[set[str], set[str]]:
    """Return the kinds of faults and the phases that a plan chooses."""
    steps = []
    for number in range(1000):
        steps.append(plan.next(number * 10_000.0))
        plan.met((name, steps[-1].phase) for name in steps[-1].faults)
    return {name for step in steps for name in step.faults}, {step.phase for step in steps}


def test_without_restarts_nothing_fails_that_plain_spark_would_not_survive() -> None:
    kinds, phases = chosen_by(Plan(1, restarts=False))
    assert kinds == {
        name for name in ON_STANDALONE if not name.startswith("storage_") or name == "storage_slow"
    }
    assert phases == set(PHASES) - set(ILL)


def test_the_plain_twin_meets_what_plain_spark_has_while_its_queries_run() -> None:
    kinds, phases = chosen_by(Plan(1, mode="plain"))
    assert kinds == {
        n for n, fault in ON_STANDALONE.items() if not (fault.needs_plugin or fault.ends_queries)
    }
    assert phases == {RUNNING}


def test_in_reactive_mode_there_are_no_bounds_to_set() -> None:
    kinds, phases = chosen_by(Plan(1, mode="reactive"))
    assert kinds == {name for name, fault in ON_STANDALONE.items() if not fault.needs_bounds}
    assert phases == set(PHASES_OF["reactive"])


def test_of_a_script_is_left_what_the_mode_has() -> None:
    two = Step(faults=("bounds_set", "savepoint"), query="pairs", phase="held", seconds=1.0, seed=1)
    others = attrs.evolve(two, faults=("master_killed", "bounds_set"), phase="backoff")
    script = [two, others]
    assert list(of_mode(script, "adaptive")) == script
    assert list(of_mode(script, "reactive")) == [
        attrs.evolve(two, faults=("savepoint",), phase=RUNNING),
        attrs.evolve(others, faults=("master_killed",)),
    ]
    assert list(of_mode(script, "plain")) == [attrs.evolve(others, faults=("master_killed",), phase=RUNNING)]


@pytest.mark.parametrize("mode", ["adaptive", "reactive"])
def test_without_restarts_a_query_ends_with_a_batch_that_fails(mode: Mode) -> None:
    assert load({**OF_MODE[mode], **NO_RESTARTS}).core().restart == NoRestart()
    assert load({**OF_MODE[mode], **RESTARTS}).core().restart != NoRestart()


def test_the_eager_query_is_not_aimed_at_while_others_wait_for_a_rescale() -> None:
    plan = Plan(1)
    steps = [plan.next(number * 10_000.0) for number in range(500)]
    assert {step.query for step in steps if step.phase in WAITING} == set(STATEFUL) - {EAGER}
    assert {step.query for step in steps if step.phase not in WAITING} == set(STATEFUL)


def test_on_kubernetes_pods_are_lost_and_no_workers() -> None:
    plan = Plan(1, where="kubernetes")
    kinds, phases = chosen_by(plan)
    assert {"pod_deleted", "node_drained", "policy_killed", "executor_killed"} <= kinds
    assert kinds.isdisjoint({"worker_killed", "master_killed", "storage_away", "driver_killed"})
    assert phases == set(PHASES)
    assert {plan.next(number * 10_000.0).query for number in range(100)} == set(STATEFUL_AT["kubernetes"])


def test_of_a_script_is_left_what_the_place_has() -> None:
    two = Step(faults=("pod_evicted", "worker_killed"), query="pairs", phase="held", seconds=1.0, seed=1)
    assert list(of_mode([two], "adaptive")) == [attrs.evolve(two, faults=("worker_killed",))]
    assert list(of_mode([two], "adaptive", "kubernetes")) == [attrs.evolve(two, faults=("pod_evicted",))]


def test_without_links_none_is_cut_or_slow() -> None:
    plan = Plan(1, links=False)
    kinds = {name for number in range(1000) for name in plan.next(number * 10_000.0).faults}
    assert kinds == {name for name, fault in ON_STANDALONE.items() if not fault.needs_links}
    with pytest.raises(ValueError, match="no fault"):
        Plan(1, ["link_cut"], links=False)


def test_the_rows_of_a_file_sink_are_those_of_its_log(tmp_path: Path) -> None:
    feeder = Feeder(tmp_path / "incoming")
    feeder.deliver()
    values = list(range(60))
    sink = tmp_path / "sink"
    log = sink / "_spark_metadata"
    log.mkdir(parents=True)
    for number, part in enumerate((values[:20], values[20:40], values[40:], [7])):
        (sink / f"part-{number}.json").write_text("".join(f'{{"value":{value}}}\n' for value in part))

    def write(name: str, *parts: int) -> None:
        paths = (json.dumps({"path": f"away:///x/part-{part}.json"}) for part in parts)
        (log / name).write_text("\n".join(["v1", *paths]))

    write("0", 0)
    write("1", 1)
    write("1.compact", 0, 1)
    tail = Tail(tmp_path, sink)
    assert tail.counts()["copies"] == 2
    assert differences(tmp_path, sink, tmp_path / "incoming", "copies")[1] != []
    write("2", 2)
    (log / ".3.tmp").touch()
    assert tail.counts()["copies"] == 3
    # Rows that no micro-batch has committed do not count as written.
    assert differences(tmp_path, sink, tmp_path / "incoming", "copies") == (60, [])
    write("3", 3)
    assert differences(tmp_path, sink, tmp_path / "incoming", "copies")[1] == [
        "copies: 1 rows too many or wrong, such as [(7,)]"
    ]


def test_a_phase_that_is_never_met_is_not_tried_for_ever() -> None:
    plan = Plan(1, ["savepoint", "executor_killed"])
    phases = []
    for number in range(8 * 2 * len(PHASES)):
        step = plan.next(number * 10_000.0)
        phases.append(step.phase)
        plan.met((name, "running" if step.phase == "held" else step.phase) for name in step.faults)
    assert phases.count("held") < len(phases) / 2


def test_a_fault_that_has_missed_does_not_count(tmp_path: Path) -> None:
    report = Report(7, tmp_path, happened=[happened("executor 1", None), happened("executor 2", "totals")])
    result = report.close([])
    assert (result["steps"], result["faults"], result["missed"]) == (2, 3, 1)
    assert result["by_fault_and_phase"] == {"executor_killed": {"running": 2}, "savepoint": {"running": 1}}
    assert result["recover_s_by_fault"]["savepoint"] == {"p50": 2.5, "max": 2.5}
    assert "savepoint (nothing)" in report.happened[0].line()


def test_a_step_after_which_the_next_came_at_once_has_no_time_of_recovery(tmp_path: Path) -> None:
    first = attrs.evolve(happened("executor 1", None), recovered=None, seconds=None)
    report = Report(7, tmp_path, happened=[first])
    assert report.close([])["recover_s"] == {"p50": None, "max": None}
    report.happened.append(happened("executor 2", None))
    assert report.close([])["recover_s_by_fault"]["executor_killed"] == {"p50": 2.5, "max": 2.5}
    report.happened[-1] = attrs.evolve(report.happened[-1], steps=2)
    found = report.close([])
    assert found["recover_s"] == {"p50": 2.5, "max": 2.5}
    assert found["recover_s_by_fault"]["executor_killed"] == {"p50": None, "max": None}
    row = table.table(report.happened).splitlines()[-1]
    assert row == "| executor_killed | 2 |" + "  |" * (len(PHASES) + 2)
    assert "the next at once" in first.line()
    assert read_happened(tmp_path) == report.happened


def test_a_fault_that_always_misses_is_said(tmp_path: Path) -> None:
    report = Report(7, tmp_path, happened=[happened("executor 1", None)] * 5)
    assert report.never_hit({"executor_killed"}) == ["savepoint has hit nothing in 5 tries"]
    # Hit in this run, or in an earlier one.
    assert report.never_hit({"executor_killed", "savepoint"}) == []
    report.happened = [happened("executor 1", None)] * 4
    assert report.never_hit({"executor_killed"}) == []


FOUND = {"rescales": {"moved": 3, "in_place": 1}, "rows_compared": 40, "batch_jobs": 2, "unknown_errors": {}}


def test_runs_add_up(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, hits in {"one": ("executor 1", None), "other": ("executor 2", "totals")}.items():
        (tmp_path / name).mkdir()
        Report(7, tmp_path / name, happened=[happened(*hits)], found=FOUND).close([])
    assert table.main([str(tmp_path / "one"), str(tmp_path / "other")]) == 0
    *rows, last = capsys.readouterr().out.splitlines()
    assert rows[2] == "| executor_killed | 2 |  |  |  |  |  |  |  |  | 2.5 | 2.5 |"
    assert rows[3] == "| savepoint | 1 |  |  |  |  |  |  |  |  | 2.5 | 2.5 |"
    assert {len(row.split("|")) for row in rows} == {len(PHASES) + 6}
    assert json.loads(last) == {
        "runs": 2, "seeds": [7, 7], "steps": 2, "faults": 3, "recover_s": {"p50": 2.5, "max": 2.5},
        "rescales": {"moved": 6, "in_place": 2}, "rows_compared": 80, "batch_jobs": 4, "broken": 0,
    }  # fmt: skip
    assert table.main([]) == 2


def test_a_run_that_comes_after_another_meets_what_that_has_not_met(tmp_path: Path) -> None:
    kinds = ("savepoint", "executor_killed")
    earlier = [attrs.evolve(STEP, faults=(name,)) for name in kinds]
    done = [attrs.evolve(happened("it"), step=step, phase=phase) for step in earlier for phase in PHASES[1:]]
    Report(7, tmp_path, happened=done, found=FOUND).close([])
    plan = Plan(1, kinds)
    plan.met(pair for one in read_happened(tmp_path) for pair in one.pairs)
    assert {plan.next(number * 10_000.0).phase for number in range(4)} == {PHASES[0]}


def test_what_is_left_over_or_unknown_is_broken(tmp_path: Path) -> None:
    report = Report(7, tmp_path)
    assert not broken(report.close([]))
    assert broken(report.close(["worker-1"]))
    report.found = {"unknown_errors": {"Foo: bar": 1}}
    assert broken(report.close([]))


STEPS = [attrs.evolve(STEP, seed=seed) for seed in range(9)]
BROKEN = {"failures": [{"what": "after 60 s totals has written 1 batches"}]}
OTHER = {"failures": [{"what": "totals has failed: 7"}]}


class Runs:
    """Stands for the runs: they break if the steps `needed` are there, but not those numbered `spared`."""

    def __init__(self, *needed: int, spared: Sequence[int] = ()) -> None:
        self.needed, self.spared = set(needed), spared
        self.done: list[list[int]] = []

    def __call__(self, steps: Sequence[Step]) -> dict[str, object]:
        self.done.append([step.seed for step in steps])
        broke = self.needed <= set(self.done[-1]) and len(self.done) not in self.spared
        return dict(BROKEN if broke else OTHER)


def seeds(steps: Sequence[Step]) -> list[int]:
    return [step.seed for step in steps]


def test_what_breaks_is_done_three_times_more_and_shrunk() -> None:
    runs = Runs(2, 7)
    found = again(STEPS, what_broke(BROKEN), runs)
    assert (found.times, seeds(found.shortest)) == (TIMES, [2, 7])
    assert runs.done[:TIMES] == [seeds(STEPS)] * TIMES
    assert len(runs.done) > TIMES


def test_what_breaks_now_and_then_is_shrunk_too() -> None:
    found = again(STEPS, what_broke(BROKEN), Runs(4, spared=(1, 3)))
    assert (found.times, seeds(found.shortest)) == (1, [4])


def test_what_breaks_differently_is_not_shrunk() -> None:
    runs = Runs(99)
    found = again(STEPS, what_broke(BROKEN), runs)
    assert (found.times, found.shortest, len(runs.done)) == (0, STEPS, TIMES)


def test_the_shortest_script_has_a_step_at_least() -> None:
    assert seeds(shrink(STEPS, lambda fewer: True)) == [8]
    assert seeds(shrink(STEPS[:1], lambda fewer: True)) == [0]
    assert shrink([], lambda fewer: True) == []


def test_what_broke_is_named_without_its_numbers() -> None:
    said = "after {} s totals has written {} batches"
    one, other = ({"failures": [{"what": said.format(*n)}]} for n in ((60, 1), (180, 0)))
    assert what_broke(one) == what_broke(other) == {"totals has written "}
    assert what_broke({"unknown_errors": {"Foo: bar 7": 1}}) == {"unknown error Foo: bar "}
    assert what_broke({"left_over": ["worker-12"]}) == {"left over: worker-"}
    assert what_broke({"failures": [], "unknown_errors": {}, "left_over": []}) == set()
