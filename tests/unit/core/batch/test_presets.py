"""The vectors hold in the preset flink; these are all of them in which our own rules differ, and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spark_elastic.core.batch.presets import ELASTIC
from tests.vectors.adapters import ADAPTERS, batch, batch_parallelism, batch_ranges
from tests.vectors.differences import differs

DATA = Path(__file__).parents[3] / "vectors" / "data"
GROUPS = ("batch_parallelism_decision", "balanced_ranges", "pointwise_ranges")

BROADCAST = "broadcast bytes take no share of the other inputs' volume"
DECIDED = "what is split by count gets the decided number of tasks, not the most that are allowed"

OUR_OWN = {
    "batch_parallelism_decision.pointwise_plus_broadcast_6": BROADCAST,
    "pointwise_ranges.with_broadcast": BROADCAST,
    "balanced_ranges.edge_zero_bytes_min3": DECIDED,
}


def vectors() -> list[Any]:
    return [
        pytest.param(group, vector, id=vector["id"])
        for group in GROUPS
        for vector in json.loads((DATA / f"{group}.json").read_text())["vectors"]
        if not any(differs(group, vector["input"], field) for field in vector["expected"])
    ]


@pytest.mark.parametrize(("group", "vector"), vectors())
def test_our_own_rules_differ_only_where_it_is_said(
    group: str, vector: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (batch, batch_parallelism, batch_ranges):
        monkeypatch.setattr(module, "PRESET", ELASTIC)
    found = ADAPTERS[group](vector["input"])
    same = {field: found[field] for field in vector["expected"]} == vector["expected"]
    assert same != (vector["id"] in OUR_OWN)
