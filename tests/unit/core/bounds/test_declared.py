"""Tests of declared bounds: what is accepted, what is refused and how, and the resulting slots of a query."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_elastic.core.bounds.declared import (
    Accepted,
    Refused,
    WantedBounds,
    declare,
    declare_some,
)
from spark_elastic.core.bounds.requirements import SHUFFLE, Bounds
from spark_elastic.core.declarations import adaptive_requirements, max_parallelism, wanted_by_file
from spark_elastic.core.events import PolicyFileChanged, QueryFacts
from spark_elastic.core.settings import CoreSettings
from tests.unit.core.bounds.asked import codes, message, pair, problems
from tests.unit.core.builder import STATEFUL

QUERY = {"source-0": 16, "shuffle": 10}


def test_bounds_defend_themselves() -> None:
    with pytest.raises(ValueError, match="lower bound 3 is above upper bound 2"):
        Bounds(lower=3, upper=2)
    with pytest.raises(ValueError, match="must be >= 1"):
        Bounds(lower=0, upper=2)


def test_no_bound_is_expanded_before_it_is_kept() -> None:
    declared = declare(QUERY, {"source-0": pair(), "shuffle": pair(upper=8)})
    assert declared == Accepted(
        vertices={"source-0": Bounds(lower=1, upper=16), "shuffle": Bounds(lower=1, upper=8)}
    )


def test_everything_that_is_wrong_is_said_at_once() -> None:
    asked = {"shufle": pair(0, 0), "source-0": pair(20, 18), "shuffle": pair(0, 99)}
    assert codes(declare({**QUERY, "source-1": 1, "source-2": 1}, asked)) == [
        ("unknown_vertex", "shufle"),
        ("lower_above_upper", "source-0"),
        ("above_max_parallelism", "source-0"),
        ("not_positive", "shuffle"),
        ("missing_vertex", "source-1"),
        ("missing_vertex", "source-2"),
    ]


def test_nothing_declared_leaves_all_vertices_out() -> None:
    assert codes(declare(QUERY, {})) == [("missing_vertex", "source-0"), ("missing_vertex", "shuffle")]


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (
            pair(0, 5),
            "lowerBound of vertex shuffle is 0, "
            "allowed is a whole number from 1 up, or -1 for no bound: write 1",
        ),
        (
            pair(-1, -2),
            "upperBound of vertex shuffle is -2, "
            "allowed is a whole number from 1 up, or -1 for no bound: write 1",
        ),
        (
            pair(12, -1),
            "lowerBound of vertex shuffle is 12, allowed is up to its upperBound, 10: write 10 or less",
        ),
        (
            pair(1, 11),
            "upperBound of vertex shuffle is 11, allowed is up to its max parallelism, 10: "
            "write 10, or -1 for no bound",
        ),
    ],
)
def test_a_refusal_says_what_was_found_what_is_allowed_and_what_to_write(
    asked: WantedBounds, says: str
) -> None:
    assert message(declare({"shuffle": 10}, {"shuffle": asked})) == says


def test_vertices_are_named_in_a_refusal() -> None:
    (unknown, missing) = problems(declare({"shuffle": 10}, {"sort": pair()}))
    assert unknown.message == "'sort' is not a vertex of this query, allowed is shuffle: remove it"
    assert '"shuffle": {"parallelism": {"lowerBound": -1, "upperBound": -1}}' in missing.message


def test_a_part_keeps_the_bounds_of_the_other_vertices() -> None:
    kept = {
        "source-0": Bounds(lower=2, upper=3),
        "shuffle": Bounds(lower=4, upper=5),
        "gone": Bounds(upper=9),
    }
    assert declare_some(QUERY, {"shuffle": pair(upper=6)}, kept) == Accepted(
        vertices={"source-0": Bounds(lower=2, upper=3), "shuffle": Bounds(lower=1, upper=6)}
    )
    assert codes(declare_some(QUERY, {"sort": pair()}, kept)) == [("unknown_vertex", "sort")]
    assert codes(declare_some(QUERY, {"shuffle": pair()}, {})) == [("missing_vertex", "source-0")]


SOME = st.builds(WantedBounds, lower=st.integers(-3, 20), upper=st.integers(-3, 20))
NAMES = st.sampled_from(["source-0", "shuffle", "a.b", "c'd"])


@settings(max_examples=100)
@given(known=st.dictionaries(NAMES, st.integers(1, 12)), asked=st.dictionaries(NAMES, SOME))
def test_what_is_accepted_can_be_run_and_written_down(
    known: dict[str, int], asked: dict[str, WantedBounds]
) -> None:
    result = declare(known, asked)
    if isinstance(result, Refused):
        assert result.problems
        return
    assert result.vertices.keys() == known.keys()
    assert all(bounds.upper <= known[vertex] for vertex, bounds in result.vertices.items())
    if known:
        again = {vertex: pair(bounds.lower, bounds.upper) for vertex, bounds in result.vertices.items()}
        assert declare(known, again) == result


# The slots of a query

EXPLICIT = evolve(STATEFUL, explicit_partitions=24)


@pytest.mark.parametrize(
    ("facts", "explicit", "bounds", "by"),
    [
        (STATEFUL, "upperBound", (1, 100), "spark.elastic.maxParallelism"),
        (STATEFUL, "fixed", (1, 100), "spark.elastic.maxParallelism"),
        (EXPLICIT, "ignore", (1, 100), "spark.elastic.maxParallelism"),
        (EXPLICIT, "upperBound", (1, 24), "spark.sql.shuffle.partitions, as an upper bound,"),
        (
            EXPLICIT,
            "fixed",
            (24, 24),
            "spark.sql.shuffle.partitions, which spark.elastic.explicitParallelism fixes,",
        ),
        (evolve(STATEFUL, explicit_partitions=200), "upperBound", (1, 100), "spark.elastic.maxParallelism"),
        (evolve(STATEFUL, explicit_partitions=200), "fixed", (100, 100), "spark.elastic.maxParallelism"),
    ],
)
def test_without_a_declaration_a_query_has_what_it_was_configured_with(
    facts: QueryFacts, explicit: Any, bounds: tuple[int, int], by: str
) -> None:
    core = CoreSettings(explicit_parallelism=explicit, max_parallelism=100)
    found = adaptive_requirements(facts, core, None)
    assert adaptive_requirements(facts, core, {}) == found
    (vertex,) = found.vertices
    assert (vertex.bounds.lower, vertex.bounds.upper) == bounds
    assert found.bound_by == by
    assert (vertex.id, vertex.group) == (SHUFFLE, "default")


@pytest.mark.parametrize("explicit", ["ignore", "upperBound", "fixed"])
def test_a_declaration_replaces_the_defaults_but_not_the_maximum(explicit: Any) -> None:
    core = CoreSettings(explicit_parallelism=explicit, max_parallelism=100)
    wider = adaptive_requirements(EXPLICIT, core, {"shuffle": Bounds(lower=30, upper=40)})
    assert wider.vertices[0].bounds == Bounds(lower=30, upper=40)
    assert wider.bound_by == "the declared upper bound"
    older = adaptive_requirements(EXPLICIT, core, {"shuffle": Bounds(lower=200, upper=400)})
    assert older.vertices[0].bounds == Bounds(lower=100, upper=100)
    assert older.bound_by == "spark.elastic.maxParallelism"


def test_a_file_speaks_of_a_query_by_its_name_and_else_by_its_defaults() -> None:
    core = CoreSettings(max_parallelism=100)
    file = PolicyFileChanged(
        id="r1",
        at=1,
        path="policy.yaml",
        defaults=pair(1, 8),
        bounds={"counts": {"shuffle": pair(2, 6)}, "orders": {"source-0": pair(2, 3)}},
    )
    silent = evolve(file, defaults=None)

    def says(name: str | None, file: PolicyFileChanged) -> object:
        return wanted_by_file(evolve(STATEFUL, name=name), file)

    assert says("counts", file) == says("counts", silent) == {"shuffle": pair(2, 6)}
    assert says("orders", file) == {"shuffle": pair(1, 8), "source-0": pair(2, 3)}
    assert says("orders", silent) == {"source-0": pair(2, 3)}
    assert says("another", file) == says(None, file) == {"shuffle": pair(1, 8)}
    assert says("another", silent) == says(None, silent) == {}
    result = declare_some(
        max_parallelism(STATEFUL, core), file.bounds["orders"], {"shuffle": Bounds(upper=8)}
    )
    assert codes(result) == [("unknown_vertex", "source-0")]
