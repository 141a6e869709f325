"""Tests that a journal becomes a scenario: a simulation that is written and read again gives the same run."""

from __future__ import annotations

import pytest
from attrs import evolve

from spark_elastic.core.bounds.declared import WantedBounds
from spark_elastic.core.events import (
    FullestPartition,
    PolicyFileChanged,
    RequirementsDropped,
    RequirementsRequested,
    SourceFacts,
)
from spark_elastic.runtime.entries import Entry
from spark_elastic_lab.simulator.heard import AsRecorded, RecordedQuery
from spark_elastic_lab.simulator.load import Load
from spark_elastic_lab.simulator.recorded import NothingRecordedError, heard, load_of_samples, scenario_of
from spark_elastic_lab.simulator.recorded_run import recorded_run
from spark_elastic_lab.simulator.simulation import simulate
from spark_elastic_lab.simulator.source import SourceSpec
from tests.unit.lab.simulator.rivals_views import sample
from tests.unit.lab.simulator.scenes import CLUSTER, PLAIN, only, query, scenario
from tests.unit.lab.simulator.written import recorded

pytestmark = pytest.mark.long

ORDERED = {"divisible": True, "ordered": True}
SETTINGS = {"spark.elastic.schedulerMode": "adaptive", "spark.elastic.query.counts.upperBound": "6"}


def test_a_simulation_that_was_written_down_is_read_again() -> None:
    costs = evolve(PLAIN, fixed_ms=700)
    was = scenario(
        query(load="cosine:mean=2000,amplitude=1500,noise=0", trigger_s=5, move_s=3, cost=costs),
        query(
            name="enrich",
            load="ramp:start=100,slope=20",
            stateful=False,
            cost=evolve(costs, read_us=900, work_us=0),
        ),
        cluster=evolve(CLUSTER, initial=3),
        settings=SETTINGS,
    )
    found = scenario_of(heard(recorded(was)))
    counts, enrich = found.queries
    assert (counts.name, counts.trigger_s, counts.stateful, counts.move_s) == ("counts", 5, True, 3)
    assert counts.cost.fixed_ms == pytest.approx(700, rel=0.2)
    assert counts.cost.work_us == pytest.approx(1_000, rel=0.1)
    assert enrich.cost.read_us == pytest.approx(900, rel=0.25)
    assert not enrich.stateful
    assert (found.cluster.cores, found.cluster.initial) == (1, 3)
    assert found.cluster.startup_s == pytest.approx(20)
    assert found.hours == pytest.approx(1, abs=0.01)
    assert found.settings == SETTINGS
    for mine, theirs in zip(found.loads().values(), was.loads().values(), strict=True):
        for begin in range(60, 3_400, 300):
            assert mine.mean(begin, begin + 120) == pytest.approx(theirs.mean(begin, begin + 120), rel=0.05)


def test_copies_of_the_state_are_read_again_and_repeated() -> None:
    was = scenario(
        query(load="constant:rate=3500", move_s=0.2, copy_s=12),
        cluster=evolve(CLUSTER, initial=1),
        settings=SETTINGS,
    )
    found = scenario_of(heard(recorded(was)))
    (counts,) = found.queries
    assert (counts.move_s, counts.copy_s) == (0.2, 12)
    (again,) = simulate(found, ["as-set"])
    assert {moved.pause for moved in again.notes.queries["counts"].rescales} == {200}


def test_it_goes_as_it_went() -> None:
    was = scenario(query(load="cosine:mean=2500,amplitude=1500,noise=0"), settings=SETTINGS)
    before = only(was).metrics
    (again,) = simulate(scenario_of(heard(recorded(was))), ["as-set"])
    assert again.metrics.executor_hours == pytest.approx(before.executor_hours, rel=0.02)
    assert again.metrics.largest_lag_s == pytest.approx(before.largest_lag_s, rel=0.15)


def test_a_partition_that_is_fuller_than_others_is_so_again() -> None:
    hot = SourceSpec(partitions=4, hot=0.9)
    was = scenario(query(load="constant:rate=500", stateful=False, source=hot), settings=SETTINGS)
    (found,) = scenario_of(heard(recorded(was))).queries
    assert found.source.partitions == 4
    assert found.source.hot == pytest.approx(0.9, abs=0.01)


def test_a_partition_that_several_tasks_share_is_not_one_task() -> None:
    was = scenario(query(source=SourceSpec(partitions=8)), settings=SETTINGS)
    told = heard(recorded(was))
    (id_,) = told.queries
    full = FullestPartition(name="words-2", rows=90, all_rows=100, partitions=4)
    samples = [evolve(sample, fullest=full) for sample in told.queries[id_].samples]
    (found,) = scenario_of(evolve(told, queries={id_: evolve(told.queries[id_], samples=samples)})).queries
    assert (found.source.partitions, found.source.hot) == (8, None)


def test_what_is_left_behind_has_come_as_well() -> None:
    samples = [
        sample(10_000, 1_000, 0, gap_ms=None, behind=500),
        sample(20_000, 1_000, 0, behind=4_500),
        sample(30_000, 1_000, 0, behind=3_500),
    ]
    found = load_of_samples(samples, 0, 40_000)
    assert len(found.rates) == 40
    assert [found.rate(second) for second in (8, 9, 10, 19, 20, 29, 30)] == [
        *(0, 1_500, 500, 500, pytest.approx(0), pytest.approx(0), 0)
    ]
    assert found.total == pytest.approx(6_500)


def test_the_rows_of_a_batch_at_the_begin_are_not_lost() -> None:
    assert load_of_samples([sample(0, 70, 0, gap_ms=None)], 0, 5_000).total == pytest.approx(70)


def test_a_limit_on_what_is_read_hides_no_load() -> None:
    source = SourceSpec(partitions=100, most_rows=15_000)
    was = scenario(query(load="step:before=1000,after=2000,at=20", source=source), settings=SETTINGS)
    (mine,) = scenario_of(heard(recorded(was))).loads().values()
    assert isinstance(mine, Load)
    assert mine.mean(1_500, 3_000) == pytest.approx(2_000, rel=0.05)


def test_nothing_recorded_is_no_scenario() -> None:
    with pytest.raises(NothingRecordedError, match="no micro-batch with rows"):
        heard(recorded(scenario())[:1])
    short = scenario(hours=0.01)
    with pytest.raises(NothingRecordedError, match="shorter than a minute"):
        heard(recorded(short))


def test_what_was_recorded_has_the_metrics_that_it_had() -> None:
    was = scenario(
        query(load="cosine:mean=2500,amplitude=1500,noise=0"),
        query(name="enrich", stateful=False),
        cluster=evolve(CLUSTER, initial=4, mtbf_h=0.5),
        settings=SETTINGS,
    )
    before = only(was).metrics
    found = heard(recorded(was))
    run = recorded_run(found, scenario_of(found))
    again = run.metrics
    assert run.policy == "recorded"
    assert before.lost == again.lost > 0
    assert before.rescales == again.rescales > 0
    assert again.paused_s == before.paused_s
    assert again.steps == before.steps
    assert again.largest_lag_s == pytest.approx(before.largest_lag_s, abs=1.5)
    assert again.outside_percent == pytest.approx(before.outside_percent, rel=0.1)
    # The journal does not show what was paid for an executor before it started.
    assert 0.95 * before.executor_hours < again.executor_hours < before.executor_hours


def test_a_part_of_what_was_recorded_has_the_metrics_of_that_part() -> None:
    was = scenario(
        query(load="cosine:mean=2500,amplitude=1500,noise=0"),
        cluster=evolve(CLUSTER, initial=4, mtbf_h=0.5),
        settings=SETTINGS,
    )
    found = heard(recorded(was))
    made = scenario_of(found)
    whole = recorded_run(found, made).metrics
    before = only(evolve(was, hours=was.hours / 2)).metrics
    part = recorded_run(found, evolve(made, hours=made.hours / 2))
    again = part.metrics
    assert part.policy == "recorded"
    assert whole.lost > again.lost == before.lost
    assert again.steps == before.steps
    assert whole.rescales > again.rescales == before.rescales
    assert again.paused_s == before.paused_s
    assert again.executor_hours == pytest.approx(before.executor_hours, rel=0.05)
    longer = recorded_run(found, evolve(made, hours=2 * made.hours))
    assert longer.policy == f"recorded, {made.hours:.4g} h"
    assert longer.metrics == whole


def test_executors_that_are_decommissioned_take_no_more_tasks() -> None:
    was = scenario(
        query(load="step:before=4000,after=1000,at=20"),
        cluster=evolve(CLUSTER, initial=6, decommission_s=30),
        settings={"spark.elastic.schedulerMode": "adaptive", "spark.elastic.policy": "autoscale"},
    )
    there = only(was).notes.there
    assert there.values[-1] < there.values[0]
    found = heard(recorded(was))
    assert (found.there.times, found.there.values) == (there.times, there.values)
    assert found.queries["counts"].samples[-1].slots == there.values[-1]


@pytest.mark.parametrize(("source", "tasks"), [({}, 7), ({"divisible": True}, 64), (ORDERED, 7)])
def test_a_source_that_is_divided_as_slots_need_it_is_not_short_of_tasks(
    source: dict[str, bool], tasks: int
) -> None:
    was = scenario(query(source=SourceSpec(partitions=7)), settings=SETTINGS)
    found = heard(recorded(was))
    heard_of = found.queries["counts"]
    heard_of.facts = evolve(heard_of.facts, sources=(SourceFacts(name="files", **source),))
    assert scenario_of(found).queries[0].source.partitions == tasks


def test_a_stateless_query_that_shuffles_does_its_work_there() -> None:
    was = scenario(query(load="ramp:start=100,slope=40", stateful=False), settings=SETTINGS)
    (found,) = scenario_of(heard(recorded(was))).queries
    assert found.cost.read_us == 0
    assert found.cost.work_us == pytest.approx(1_000, rel=0.2)


def came_and_went(counts: list[tuple[int, int]]) -> list[Entry]:
    """Write the journal of a reactive run on an initially empty cluster that grants what it has."""
    was = scenario(
        query(load="constant:rate=1500"),
        cluster=evolve(CLUSTER, recorded=((0, 0), *counts)),
        settings=REACTIVE,
    )
    return recorded(was)


REACTIVE = {"spark.elastic.schedulerMode": "reactive"}


def test_a_run_in_which_nobody_asks_for_executors_has_those_that_it_had() -> None:
    counts = [(5_000, 3), (1_200_000, 1), (2_400_000, 4)]
    found = heard(came_and_went(counts))
    (again,) = simulate(scenario_of(found), ["as-set"])
    was = recorded_run(found, scenario_of(found))
    assert [
        (at, count) for at, count in zip(again.notes.there.times, again.notes.there.values, strict=True)
    ] == [
        (0, 0),
        *counts,
    ]
    assert again.metrics.executor_hours == pytest.approx(was.metrics.executor_hours, rel=0.01)
    assert again.metrics.outside_percent == pytest.approx(was.metrics.outside_percent, abs=1)


def test_reactive_mode_has_the_executors_that_came_and_went_whatever_scaled_them() -> None:
    counts = [(5_000, 3), (1_200_000, 1), (2_400_000, 4)]
    found = scenario_of(heard(came_and_went(counts)))
    (reactive,) = simulate(found, ["reactive"])
    there = reactive.notes.there
    assert list(zip(there.times, there.values, strict=True)) == [(0, 0), *counts]
    scaled = scenario(
        query(load="step:before=1000,after=3500,at=20"),
        settings={**SETTINGS, "spark.elastic.policy": "autoscale"},
    )
    found_scaled = heard(recorded(scaled))
    (as_it_went,) = simulate(scenario_of(found_scaled), ["reactive"])
    assert as_it_went.notes.there == found_scaled.there
    assert len(found_scaled.there.values) > 1


def test_who_asks_for_executors_begins_with_those_of_the_first_micro_batch() -> None:
    found = heard(came_and_went([(5_000, 3), (1_200_000, 1)]))
    assert found.initial == 3
    (other,) = simulate(scenario_of(found), ["fixed:executors=5"])
    assert other.notes.there.at(1_300_000) == 5


def test_what_a_policy_file_has_said_is_said_again() -> None:
    was = scenario(query(load="constant:rate=100"), settings={"spark.elastic.schedulerMode": "adaptive"})
    bounds = {"counts": {"shuffle": WantedBounds(lower=1, upper=2)}}
    file = PolicyFileChanged(id="f", at=0, path="/p.yaml", bounds=bounds)
    was = evolve(was, recorded=AsRecorded(said=((1_000, file),)))
    found = scenario_of(heard(recorded(was)))
    assert found.recorded is not None
    assert [(at, evolve(said, id="f", at=0)) for at, said in found.recorded.said] == [(1_000, file)]
    (again,) = simulate(found, ["as-set"])
    assert again.notes.reasons["policy_file_read"] == 1
    for ours in ("reactive", "declared", "autoscale"):
        (other,) = simulate(found, [ours])
        assert other.notes.reasons["policy_file_read"] == 1
    (rival,) = simulate(found, ["fixed:executors=2"])
    assert not rival.notes.reasons["policy_file_read"]


def test_bounds_of_a_policy_file_count_for_each_of_our_policies() -> None:
    was = scenario(query(load="constant:rate=3500"), settings={"spark.elastic.schedulerMode": "adaptive"})
    bounds = {"counts": {"shuffle": WantedBounds(lower=1, upper=2)}}
    settings = {"counts": {"policy": "reactive-to-nothing:Class"}}
    file = PolicyFileChanged(id="f", at=0, path="/p.yaml", bounds=bounds, settings=settings)
    was = evolve(was, recorded=AsRecorded(said=((0, file),)))
    for ours in ("declared", "autoscale"):
        (limited,) = simulate(was, [ours])
        assert max(limited.notes.queries["counts"].partitions.values) == 2
    (free,) = simulate(evolve(was, recorded=None), ["autoscale"])
    assert max(free.notes.queries["counts"].partitions.values) > 2


ADAPTIVE = {"spark.elastic.schedulerMode": "adaptive", "spark.elastic.query.counts.upperBound": "1"}


def asked(at: int, upper: int) -> tuple[int, RequirementsRequested]:
    return at, RequirementsRequested(id="q", at=0, query="counts", bounds={"shuffle": (1, upper)}, by="me")


def test_bounds_that_were_set_while_it_ran_are_set_again() -> None:
    said = (asked(20_000, 4), (1_800_000, RequirementsDropped(id="d", at=0, query="counts", by="me")))
    was = scenario(query(load="constant:rate=1500"), settings=ADAPTIVE, recorded=AsRecorded(said=said))
    found = heard(recorded(was))
    (again,) = simulate(scenario_of(found), ["as-set"])
    run = recorded_run(found, scenario_of(found))
    assert again.notes.reasons["bounds_requested"] == 1
    assert again.notes.queries["counts"].partitions == run.notes.queries["counts"].partitions
    assert again.metrics.largest_lag_s == pytest.approx(run.metrics.largest_lag_s, rel=0.01)
    (other,) = simulate(scenario_of(found), ["declared"])
    assert not other.notes.reasons["bounds_requested"]


def test_queries_come_and_go_as_they_did() -> None:
    first = RecordedQuery(facts=query().facts, ends=1_500_000)
    second = RecordedQuery(facts=query(name="late").facts, begins=1_200_000)
    was = scenario(
        query(load="step:before=300,after=0,at=24"),
        query(name="late", load="step:before=0,after=700,at=21"),
        settings=REACTIVE,
        recorded=AsRecorded(queries={"counts": first, "late": second}),
    )
    found = heard(recorded(was))
    (again,) = simulate(scenario_of(found), ["as-set"])
    run = recorded_run(found, scenario_of(found))
    assert run.notes.queries["late"].partitions.times[0] >= 1_200_000
    for name in ("counts", "late"):
        assert again.notes.queries[name].partitions == run.notes.queries[name].partitions
        ran, runs = run.notes.queries[name].commits, again.notes.queries[name].commits
        assert runs[-2].at == pytest.approx(ran[-2].at, abs=50)
    assert again.metrics.outside_percent == run.metrics.outside_percent == 0


def test_each_micro_batch_takes_as_long_as_it_took() -> None:
    uneven = evolve(PLAIN, fixed_ms=500, jitter=0.3)
    was = scenario(query(load="cosine:mean=2500,amplitude=1500,noise=0", cost=uneven), settings=SETTINGS)
    found = heard(recorded(evolve(was, seed=7)))
    (again,) = simulate(scenario_of(found), ["as-set"])
    run = recorded_run(found, scenario_of(found))
    ran, runs = run.notes.queries["counts"].commits, again.notes.queries["counts"].commits
    # The start-up times of the executors requested at the start are random.
    apart = [abs(one.at - other.at) for one, other in zip(ran, runs, strict=True) if one.at > 60_000]
    assert len(apart) > 300
    assert max(apart) < 100


def test_a_cluster_of_its_own_kind_is_one_again() -> None:
    conf = {"spark.master": "spark://here:7077", "spark.executor.cores": "8", "spark.task.cpus": "2"}
    told = heard(recorded(scenario(settings=SETTINGS)))
    found = scenario_of(evolve(told, spark=conf))
    assert found.spark_conf["spark.master"] == "spark://here:7077"
    # A simulated executor has one slot per core.
    assert found.spark_conf["spark.executor.cores"] == str(found.cluster.cores)
    assert "spark.task.cpus" not in found.spark_conf
