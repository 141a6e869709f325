"""Tests of the target of a query over HTTP: set, kept, hidden from Flink's clients, removed, refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.http.test_requirements import FLINK, SHUFFLE_ID
from tests.unit.http.world import ADAPTIVE, REQUIREMENTS, World, world


@pytest.fixture
def api() -> Iterator[World]:
    with world(ADAPTIVE) as running:
        yield running


def test_a_target_is_set_kept_where_it_is_left_out_and_taken_away(api: World) -> None:
    def put(path: str, vertex: str = "shuffle", **bounds: int) -> int:
        return int(api.put(path, {vertex: {"parallelism": bounds}}).status)

    def shown() -> Any:
        return api.get(REQUIREMENTS).json["shuffle"]["parallelism"]

    assert put(REQUIREMENTS, lowerBound=1, upperBound=8, target=4) == 200
    assert shown() == {"lowerBound": 1, "upperBound": 8, "target": 4}
    # Flink's clients know no target: it is hidden from them and stays as it is.
    seen = api.get(FLINK).json[SHUFFLE_ID]["parallelism"]
    assert seen == {"lowerBound": 1, "upperBound": 8}
    assert put(FLINK, SHUFFLE_ID, lowerBound=2, upperBound=6) == 200
    assert shown() == {"lowerBound": 2, "upperBound": 6, "target": 4}
    assert put(REQUIREMENTS, lowerBound=2, upperBound=6, target=-1) == 200
    assert shown() == {"lowerBound": 2, "upperBound": 6}
    # A target that the new bounds do not allow is removed with the old bounds.
    assert put(REQUIREMENTS, lowerBound=2, upperBound=6, target=5) == 200
    assert put(REQUIREMENTS, lowerBound=2, upperBound=4) == 200
    assert shown() == {"lowerBound": 2, "upperBound": 4}


def test_a_target_outside_of_the_bounds_is_refused_with_what_to_write(api: World) -> None:
    reply = api.put(
        REQUIREMENTS, {"shuffle": {"parallelism": {"lowerBound": 2, "upperBound": 6, "target": 7}}}
    )
    assert reply.status == 400
    assert reply.json["errors"] == [
        "target of vertex shuffle is 7, allowed is from 2 to 6, or -1 for none: write 6"
    ]
