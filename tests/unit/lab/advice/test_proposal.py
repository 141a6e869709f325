"""Tests of what an application is advised to begin with."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from attrs import evolve

from spark_elastic.settings import load
from spark_elastic_lab.advice.proposal import propose
from spark_elastic_lab.advice.told import QueryLog, Told
from spark_elastic_lab.advice.what_if import Outcome, WhatIf
from spark_elastic_lab.simulator.record import Steps
from tests.unit.lab.advice.facts import batch

HOUR_MS = 3_600_000


def told(name: str | None = "counts", hours: float = 8, conf: Mapping[str, str] | None = None) -> Told:
    found = Told(on_stage=lambda _: None, begin=0, end=round(hours * HOUR_MS), conf=dict(conf or {}))
    found.queries["q1"] = QueryLog("q1", name, 0, stateful=True, batches=[batch(0)])
    return found


def outcome(policy: str, hours: float, outside: float = 0) -> Outcome:
    return Outcome(
        policy=policy, executor_hours=hours, core_hours=hours, outside_percent=outside, largest_lag_s=1,
        rescales=0, batch_ms={}, executors=Steps(), partitions={},
    )  # fmt: skip


def what(*, was: float = 10, scaled: float = 6, outside: float = 0) -> WhatIf:
    return WhatIf(
        objective_s=45,
        outcomes=(outcome("recorded", was), outcome("autoscale", scaled, outside)),
        costs={},
        bounds={"counts": 5},
        loads={},
        left_out=(),
    )


def test_autoscale_that_takes_less_is_proposed_with_bounds_and_objective() -> None:
    found = propose(told(), what())
    assert found.mode == "adaptive"
    assert found.why.startswith("autoscale would have taken 40% fewer executor-hours")
    assert any("adviseOnly" in note for note in found.notes)
    settings = load({"spark.elastic.schedulerMode": found.mode, **found.settings})
    assert settings.core().bounds["counts"].upper == 5
    assert found.settings["spark.elastic.autoscale.maxLag"] == "45s"


@pytest.mark.parametrize(
    ("log", "simulated", "why"),
    [
        (told(), what(scaled=9.5), "would not have taken many fewer"),
        (told(), what(outside=3), "behind its objective for longer"),
        (told(hours=0.4), what(), "is too short to show how its load"),
        (told(conf={"spark.master": "local[4]"}), what(), "a local master has no executors"),
        (told(), what(was=0, scaled=0.1), "would not have taken many fewer"),
    ],
)
def test_else_reactive_mode_is_and_it_says_why(log: Told, simulated: WhatIf, why: str) -> None:
    found = propose(log, simulated)
    assert (found.mode, found.settings) == ("reactive", {})
    assert why in found.why
    assert found.policy_file is not None


def test_without_a_simulation_nothing_is_measured() -> None:
    found = propose(told(), None)
    assert (found.mode, found.policy_file) == ("reactive", None)


def test_queries_without_a_name_have_no_bounds_and_are_named() -> None:
    found = propose(told(None), evolve(what(), bounds={"q1": 5}))
    assert found.policy_file is None
    assert not any("query" in name for name in found.settings)
    assert any("1 of its queries have no name" in note for note in found.notes)


def test_what_to_know_first_is_said() -> None:
    dynamic = {
        "spark.dynamicAllocation.enabled": "true",
        "spark.plugins": "org.apache.spark.elastic.ElasticPlugin",
    }
    notes = " ".join(propose(told(conf=dynamic), what()).notes)
    for words in ("dynamicAllocation.enabled is true", "was on in this run", "checkpoint inspect"):
        assert words in notes
