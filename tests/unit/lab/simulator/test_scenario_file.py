"""Tests that a scenario file is read as written, and that errors name their place."""

from __future__ import annotations

import re

import pytest

from spark_elastic_lab.simulator import scenario_file
from spark_elastic_lab.simulator.batches import BatchCost, BatchSpec
from spark_elastic_lab.simulator.cluster import ClusterSpec
from spark_elastic_lab.simulator.query import QuerySpec
from spark_elastic_lab.simulator.scenario import Scenario
from spark_elastic_lab.simulator.scenario_file import ScenarioError, read_scenario
from spark_elastic_lab.simulator.source import SourceSpec

QUERIES = "queries: {counts: {}}\n"


def test_the_example_of_the_documentation_is_read() -> None:
    example = re.sub(r"(?m)^    ", "", (scenario_file.__doc__ or "").split("\n\n")[1])
    assert read_scenario(example) == Scenario(
        queries=(
            QuerySpec(
                name="counts",
                load="two-peaks:first=50000",
                trigger_s=10,
                source=SourceSpec(partitions=16, hot=0.2),
                cost=BatchCost(fixed_ms=300, work_us=80),
            ),
        ),
        batch=(BatchSpec(name="report", at_s=3600, every_s=14400, stages=3, tasks=400, task_s=12),),
        cluster=ClusterSpec(cores=4, initial=2, quota=64, startup_s=30),
        settings={"spark.elastic.query.counts.upperBound": "16"},
        hours=24,
        seed=1,
        max_lag_s=30,
    )


def test_what_is_left_out_has_its_default_and_what_is_said_of_all_counts_for_each() -> None:
    found = read_scenario(
        "defaults: {trigger_s: 5, source: {partitions: 8, backlog: 9}}\n"
        "queries:\n  one:\n  two: {trigger_s: 7, source: {partitions: 3}}\n"
        "settings: {spark.elastic.adviseOnly: true}"
    )
    assert found.queries == (
        QuerySpec(name="one", trigger_s=5, source=SourceSpec(partitions=8, backlog=9)),
        QuerySpec(name="two", trigger_s=7, source=SourceSpec(partitions=3, backlog=9)),
    )
    assert found.cluster == ClusterSpec()
    assert found.settings == {"spark.elastic.adviseOnly": "true"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the scenario is None: write names"),
        ("a: [", "this is no YAML"),
        ("houres: 1", "has no 'houres', but hours, .*: write hours"),
        ("hours: x\n" + QUERIES, "hours is 'x': write a finite number"),
        ("hours: 0\n" + QUERIES, "'hours' must be > 0"),
        ("hours: .inf\n" + QUERIES, "hours is inf: write a finite number"),
        ("maxLagSeconds: .nan\n" + QUERIES, "maxLagSeconds is nan: write a finite number"),
        ("queries: {counts: {trigger_s: .inf}}", "queries.counts.trigger_s is inf: write a finite number"),
        ("cluster: {startup_s: .inf}\n" + QUERIES, "cluster.startup_s is inf: write a finite number"),
        ("seed: 1.5\n" + QUERIES, "seed is 1.5: write a whole number"),
        ("hours: 1", "a scenario without a query"),
        ("queries: [counts]", "queries is .*: write names"),
        ("queries: {counts: 3}", "queries.counts is 3: write names"),
        ("queries: {counts: {lode: web}}", "queries.counts has no 'lode'.*write load"),
        ("queries: {counts: {load: 3}}", "queries.counts.load is 3: write a text"),
        ("queries: {counts: {stateful: 3}}", "queries.counts.stateful is 3: write true or false"),
        ("queries: {counts: {source: {hot: 2}}}", "queries.counts.source: 'hot' must be"),
        ("queries: {counts: {cost: {task_ms: true}}}", "cost.task_ms is True: write a finite number"),
        ("cluster: {zzz: 1}\n" + QUERIES, "cluster has no 'zzz'.*leave it out"),
        ("cluster: {initial: 9, quota: 2}\n" + QUERIES, "cluster: initial 9 is more than quota 2"),
        ("settings: {a: [1]}\n" + QUERIES, "settings.a is .*: write one value"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, said: str) -> None:
    with pytest.raises(ScenarioError, match=said):
        read_scenario(text)


def test_none_is_a_value_where_it_means_something() -> None:
    found = read_scenario("cluster: {mtbf_h: null}\nqueries: {counts: {source: {most_rows: null}}}")
    assert found.cluster.mtbf_h is None
    assert found.queries[0].source.most_rows is None
