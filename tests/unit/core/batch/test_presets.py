"""Tests of every vector in which our own preset differs from the preset flink, and why it does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spark_elastic.core.keys.batch import ELASTIC
from tests.vectors.adapters import ADAPTERS, batch
from tests.vectors.differences import differs

DATA = Path(__file__).parents[3] / "vectors" / "data"
GROUPS = ("batch_parallelism_decision", "balanced_ranges")

BY_VOLUME = "what is split by count gets the number of tasks that its bytes ask for, not the most allowed"

OUR_OWN = {
    "balanced_ranges.edge_zero_bytes_min3": BY_VOLUME,
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
    monkeypatch.setattr(batch, "PRESET", ELASTIC)
    found = ADAPTERS[group](vector["input"])
    same = {field: found[field] for field in vector["expected"]} == vector["expected"]
    assert same != (vector["id"] in OUR_OWN)
