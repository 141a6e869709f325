"""Tests that a simulated source respects the limit on rows to read."""

from __future__ import annotations

from attrs import evolve

from spark_elastic_lab.simulator.source import SourceSpec
from tests.unit.lab.simulator.scenes import CLUSTER, only, query, scenario

SETTINGS = {
    "spark.elastic.schedulerMode": "adaptive",
    "spark.elastic.policy": "autoscale",
    "spark.elastic.autoscale.catchUp": "1min",
    "spark.elastic.maxExecutors": "8",
}
# The rows of five minutes arrive within six seconds.
OUTAGE = "outage:rate=1500,at=10,length=5,release=0.1"


def largest_batch(source: SourceSpec, **settings: str) -> int:
    found = only(
        scenario(
            query(load=OUTAGE, source=source),
            cluster=evolve(CLUSTER, initial=2),
            settings={**SETTINGS, **settings},
        )
    )
    commits = found.notes.queries["counts"].commits
    return max(one.before - one.after for one in commits)


def test_what_an_outage_has_left_is_read_in_parts() -> None:
    source = SourceSpec(partitions=100)
    without = largest_batch(source, **{"spark.elastic.autoscale.backpressure": "false"})
    assert without > 300_000
    assert largest_batch(source) < without / 3


def test_a_limit_that_the_user_has_set_stays() -> None:
    assert largest_batch(SourceSpec(partitions=100, most_rows=400_000)) > 300_000
