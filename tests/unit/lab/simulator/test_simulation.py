"""Tests of the scheduler against a simulated Spark, under loads whose results are easy to compute by hand."""

from __future__ import annotations

import pytest
from attrs import evolve

from spark_elastic.settings import SettingsError
from spark_elastic_lab.simulator.cluster import ClusterSpec
from spark_elastic_lab.simulator.load import Load
from spark_elastic_lab.simulator.simulation import simulate
from spark_elastic_lab.simulator.source import SourceSpec
from spark_elastic_lab.simulator.table import as_data
from tests.unit.lab.simulator.scenes import CLUSTER, PLAIN, only, query, scenario

pytestmark = pytest.mark.long

REACTIVE = {"spark.elastic.schedulerMode": "reactive"}
ADAPTIVE = {"spark.elastic.schedulerMode": "adaptive", "spark.elastic.query.counts.upperBound": "6"}


def test_the_same_seed_gives_the_same_metrics_to_the_last_digit() -> None:
    chancy = scenario(
        query(load="web:mean=2000", cost=evolve(PLAIN, jitter=0.1)),
        cluster=ClusterSpec(cores=2, initial=2, mtbf_h=0.3, refusals=0.2),
        settings=ADAPTIVE,
    )
    runs = [as_data(list(simulate(chancy, ["declared", "flink"]))) for _ in range(2)]
    assert runs[0] == runs[1]
    other = as_data(list(simulate(evolve(chancy, seed=2), ["declared", "flink"])))
    assert other != runs[0]


@pytest.mark.parametrize(("slots", "keeps_up"), [(1, False), (2, True), (4, True)])
def test_a_constant_load_needs_its_slots(slots: int, keeps_up: bool) -> None:
    """1,500 rows/s of one millisecond each keep one slot and a half busy."""
    load = query(load="constant:rate=1500")
    found = only(scenario(load, cluster=evolve(CLUSTER, initial=slots), settings=REACTIVE)).metrics
    if keeps_up:
        # A row waits for its trigger and for its micro-batch.
        assert found.largest_lag_s == pytest.approx(10 + 15 / slots, abs=0.1)
        assert found.outside_percent == 0
    else:
        assert found.largest_lag_s > 600
        assert found.outside_percent > 90


def test_a_micro_batch_is_committed_at_each_trigger() -> None:
    notes = only(scenario(settings=REACTIVE)).notes
    commits = notes.queries["counts"].commits
    # The first micro-batch reads a row or two; the last one ends the run.
    assert len(commits) == 361
    assert [commit.at for commit in commits[2:5]] == [22_500, 32_500, 42_500]
    assert [commit.after for commit in commits[2:5]] == [2_500] * 3


def test_a_trigger_that_has_passed_since_a_micro_batch_began_is_not_waited_for() -> None:
    rates = [1_000.0] * 60
    rates[15], rates[25] = 51_000, 14_000
    commits = only(scenario(query(load=Load(rates)), settings=REACTIVE)).notes.queries["counts"].commits
    # One runs from 20 s to 35 s, and the next follows at once until 42 s. The trigger at 40 s has passed, so
    # another one follows at once, too. The one after that waits for the trigger at 50 s.
    assert [commit.at for commit in commits[2:6]] == [35_000, 42_000, 43_750, 52_000]


def test_a_stateful_query_pauses_for_other_partitions_and_a_stateless_one_does_not() -> None:
    for stateful, pause in ((True, 3_000), (False, 0)):
        what = scenario(
            query(load="constant:rate=3500", stateful=stateful, move_s=3),
            cluster=evolve(CLUSTER, initial=1),
            settings=ADAPTIVE,
        )
        found = only(what)
        rescales = found.notes.queries["counts"].rescales
        assert rescales[-1].after == 6
        assert {rescaled.pause for rescaled in rescales} == {pause}
        assert found.metrics.rescales == (len(rescales) if stateful else 0)
        assert found.notes.there.values[-1] == 6


def test_a_copy_before_it_makes_the_pause_short() -> None:
    what = scenario(
        query(load="constant:rate=3500", move_s=0.2, copy_s=12),
        cluster=evolve(CLUSTER, initial=1),
        settings=ADAPTIVE,
    )
    found = only(what)
    reasons = found.notes.reasons
    moves = found.notes.queries["counts"].rescales
    assert moves[-1].after == 6
    assert {moved.pause for moved in moves} == {200}
    assert reasons["rescale_prepared"] == reasons["rescaled_prepared"] == len(moves)
    never = {**ADAPTIVE, "spark.elastic.adaptiveScheduler.prepareMoves": "false"}
    unprepared = only(evolve(what, settings=never)).notes
    assert {moved.pause for moved in unprepared.queries["counts"].rescales} == {12_200}
    assert unprepared.reasons["rescale_prepared"] == 0


def test_declared_bounds_ask_for_executors_which_come_after_their_start() -> None:
    found = only(scenario(cluster=evolve(CLUSTER, initial=1), settings=ADAPTIVE))
    assert list(zip(found.notes.there.times, found.notes.there.values, strict=True)) == [(0, 1), (20_000, 6)]
    assert found.notes.wanted.values == [6]
    assert found.metrics.executor_hours == pytest.approx(6)


def test_nothing_to_read_is_no_lag_and_ends_with_the_first_row() -> None:
    found = only(scenario(query(load="step:before=0,after=100,at=30"), settings=REACTIVE))
    assert found.metrics.outside_percent == 0
    assert found.metrics.largest_lag_s < 11
    assert found.notes.queries["counts"].commits[0].at >= 30 * 60_000


def test_a_query_without_an_interval_runs_as_fast_as_it_can() -> None:
    found = only(scenario(query(trigger_s=0, cost=evolve(PLAIN, fixed_ms=500)), settings=REACTIVE))
    # Each takes its half second, plus a quarter of its predecessor's duration: four slots process the rows
    # that arrived during that.
    gaps = [
        after.at - before.at
        for before, after in zip(
            found.notes.queries["counts"].commits[9:19],
            found.notes.queries["counts"].commits[10:20],
            strict=True,
        )
    ]
    assert gaps == [pytest.approx(500 / (1 - 1 / 4), abs=20)] * 10


def test_a_backlog_is_read_in_the_parts_that_are_allowed() -> None:
    source = SourceSpec(partitions=100, backlog=100_000, most_rows=20_000)
    found = only(scenario(query(load="constant:rate=0", source=source), settings=REACTIVE))
    commits = found.notes.queries["counts"].commits
    assert [commit.after for commit in commits[:5]] == [80_000, 60_000, 40_000, 20_000, 0]
    assert found.metrics.largest_lag_rows == 100_000
    # On four slots each takes 5 s, and one begins every 10 s.
    assert found.metrics.drain_s == pytest.approx(45 - 30)


def test_a_hot_partition_is_slow_whatever_the_slots() -> None:
    hot = query(source=SourceSpec(partitions=10, hot=0.9), cost=evolve(PLAIN, read_us=1_000, work_us=0))
    found = only(scenario(hot, cluster=evolve(CLUSTER, initial=32), settings=REACTIVE))
    assert found.metrics.largest_lag_s == pytest.approx(10 + 9, abs=0.1)


def test_executors_that_fail_are_replaced_and_the_rows_are_read_all_the_same() -> None:
    cluster = evolve(CLUSTER, initial=8, mtbf_h=0.5)
    found = only(scenario(query(load="constant:rate=2000"), cluster=cluster, settings=REACTIVE))
    assert found.metrics.lost > 5
    assert found.metrics.executor_hours == pytest.approx(8, rel=0.01)
    assert found.notes.queries["counts"].commits[-1].after < 60_000


def test_a_cluster_that_refuses_is_asked_again() -> None:
    cluster = evolve(CLUSTER, initial=1, refusals=0.5)
    found = only(scenario(cluster=cluster, settings=ADAPTIVE, seed=3))
    assert found.metrics.refused > 0
    assert found.notes.there.values[-1] == 6


def test_more_than_the_quota_never_comes() -> None:
    found = only(scenario(cluster=evolve(CLUSTER, initial=1, quota=3), settings=ADAPTIVE))
    assert max(found.notes.there.values) == max(found.notes.wanted.values) == 3


def test_settings_that_cannot_be_are_refused_before_anything_runs() -> None:
    wrong = scenario(settings={"spark.elastic.schedulerMode": "reaktive"})
    with pytest.raises(SettingsError, match="reaktive"):
        only(wrong)


def test_a_scenario_names_each_query_once() -> None:
    with pytest.raises(ValueError, match="two queries are called 'counts'"):
        scenario(query(), query())
    with pytest.raises(ValueError, match="without a query"):
        evolve(scenario(), queries=())


def test_with_notice_successors_are_requested_before_spot_instances_are_gone() -> None:
    asked = []
    for notice in (0, 120):
        what = scenario(
            query(load="constant:rate=3000"),
            cluster=evolve(CLUSTER, startup_s=60, mtbf_h=0.5, notice_s=notice),
            settings={"spark.elastic.query.counts.upperBound": "8"},
            hours=4,
        )
        found = only(what, "autoscale")
        asked.append(found.notes.reasons["executors_replaced"])
    assert asked[0] == 0
    assert asked[1] > 5
