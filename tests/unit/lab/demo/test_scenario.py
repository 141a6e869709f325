"""Tests of the demonstration's scenario and its steps."""

from __future__ import annotations

from spark_elastic_lab.demo.chronicle import Chronicle
from spark_elastic_lab.demo.scenario import Scenario
from spark_elastic_lab.demo.steps import Deed, Step
from tests.unit.lab.demo.facts import Ran, added, progress, removed, submitted

STEPS = (
    Step(title="start", deed=Deed.START, at_s=0, slots=1),
    Step(title="add", deed=Deed.ADD, at_s=10, slots=2),
    Step(title="kill", deed=Deed.KILL, at_s=20, slots=1),
)


def scenario(tasks: Ran | None = None) -> Scenario:
    return Scenario(queries=1, tasks=tasks or Ran(), steps=STEPS, end_s=30, quiet_s=2, timeout_s=5)


def board_with_one() -> Chronicle:
    chronicle = Chronicle()
    for event in (added("0", 0), submitted("q"), progress("q", 0, 1000, 1)):
        chronicle.follow(event)
    return chronicle


def test_a_step_begins_when_its_time_has_come_and_the_one_before_has_settled() -> None:
    played, chronicle = scenario(), board_with_one()
    assert played.begin_next(1000) == STEPS[0]
    assert played.begin_next(20_000) is None
    played.observe(chronicle, 20_000)
    assert played.begin_next(21_999) is None
    assert played.begin_next(22_000) == STEPS[1]
    assert played.outcomes[0].in_force == {"q": 1000}


def test_a_step_that_settled_early_waits_for_its_successors_time() -> None:
    played, chronicle = scenario(), board_with_one()
    played.begin_next(1000)
    played.observe(chronicle, 1000)
    assert played.begin_next(10_999) is None
    assert played.begin_next(11_000) == STEPS[1]


def test_more_slots_are_in_force_when_a_task_has_run_on_the_new_executor() -> None:
    tasks = Ran()
    played, chronicle = scenario(tasks), board_with_one()
    played.begin_next(1000)
    played.observe(chronicle, 1000)
    played.begin_next(11_000)
    chronicle.follow(added("1", 12_500))
    chronicle.follow(progress("q", 1, 12_550, 2))
    played.observe(chronicle, 12_600)
    assert played.outcomes[1].settled is None
    tasks.at["1"] = 13_000
    played.observe(chronicle, 13_400)
    assert played.outcomes[1].executor == "1"
    assert played.outcomes[1].in_force == {"q": 13_000}
    assert played.outcomes[1].settled == 13_400


def test_fewer_slots_are_in_force_with_the_first_batch_of_fewer_partitions() -> None:
    tasks = Ran()
    played, chronicle = scenario(tasks), board_with_one()
    played.begin_next(0)
    played.observe(chronicle, 0)
    played.begin_next(10_000)
    chronicle.follow(added("1", 10_500))
    tasks.at["1"] = 10_600
    played.observe(chronicle, 10_900)
    played.begin_next(20_000)
    chronicle.follow(progress("q", 1, 20_100, 1))
    chronicle.follow(removed("0", 20_500))
    played.observe(chronicle, 20_600)
    assert played.outcomes[2].settled is None
    chronicle.follow(progress("q", 2, 21_000, 1))
    played.observe(chronicle, 21_400)
    assert played.outcomes[2].in_force == {"q": 21_000}


def test_a_step_without_effect_is_marked_and_the_next_begins() -> None:
    played, chronicle = scenario(), board_with_one()
    played.begin_next(0)
    played.observe(chronicle, 0)
    played.begin_next(10_000)
    played.observe(chronicle, 15_001)
    assert played.outcomes[1].timed_out
    assert played.begin_next(20_000) == STEPS[2]


def test_a_change_before_the_deed_is_not_its_effect() -> None:
    tasks = Ran()
    played, chronicle = scenario(tasks), board_with_one()
    for now in (0, 10_000):
        played.begin_next(now)
        played.observe(chronicle, now)
    tasks.at["1"] = 10_600
    chronicle.follow(added("1", 10_500))
    played.observe(chronicle, 10_900)
    chronicle.follow(removed("0", 15_000))
    chronicle.follow(progress("q", 2, 15_600, 1))
    played.begin_next(20_000)
    played.observe(chronicle, 20_100)
    assert played.outcomes[2].executor is None


def test_the_bar_waits_for_a_late_step_and_the_end_for_the_last() -> None:
    played, chronicle = scenario(), board_with_one()
    assert played.progress(0) == 0.0
    played.begin_next(0)
    assert played.progress(25_000) == 10 / 30
    assert not played.ended(60_000)
    played.observe(chronicle, 0)
    for now in (10_000, 20_000):
        played.begin_next(now)
        played.observe(chronicle, now + 6000)
    assert not played.ended(29_000)
    assert played.ended(30_000)


def test_a_higher_bound_counts_from_when_it_was_written_and_waits_for_all_new_executors() -> None:
    steps = (STEPS[0], Step(title="raise", deed=Deed.BOUND, at_s=10, slots=3))
    tasks = Ran()
    played = Scenario(queries=1, tasks=tasks, steps=steps, end_s=30, quiet_s=2, timeout_s=5)
    chronicle = board_with_one()
    played.begin_next(1000)
    played.observe(chronicle, 1000)
    assert played.begin_next(11_000) == steps[1]
    for executor, at in (("1", 11_100), ("2", 11_200)):
        chronicle.follow(added(executor, at))
    tasks.at = {"0": 11_050, "1": 11_300}
    played.observe(chronicle, 11_500)
    assert played.outcomes[1].settled is None
    tasks.at["2"] = 11_600
    played.observe(chronicle, 12_000)
    assert played.outcomes[1].in_force == {"q": 11_600}
    assert played.outcomes[1].executor is None


def test_a_query_whose_count_stays_has_only_to_go_on() -> None:
    tasks = Ran()
    played = Scenario(queries=2, tasks=tasks, steps=STEPS, end_s=30, quiet_s=2, timeout_s=5)
    chronicle = board_with_one()
    chronicle.follow(submitted("kept", stateful=True, moves_state=False))
    chronicle.follow(progress("kept", 0, 1000, 4))
    played.begin_next(1000)
    played.observe(chronicle, 1400)
    played.begin_next(11_000)
    chronicle.follow(added("1", 12_500))
    tasks.at["1"] = 13_000
    played.observe(chronicle, 13_400)
    assert [outcome.settled for outcome in played.outcomes] == [1400, None]
    chronicle.follow(progress("kept", 1, 13_500, 4))
    played.observe(chronicle, 13_900)
    assert [outcome.settled for outcome in played.outcomes] == [1400, 13_900]
    assert played.outcomes[1].in_force == {"q": 13_000}
