"""Declared bounds: what is accepted, what is refused and how, and what a query has by them."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_elastic.core.declared import (
    Declared,
    Problem,
    Refused,
    WantedBounds,
    declare,
    declare_some,
    read_body,
    write_body,
)
from spark_elastic.core.events import PolicyFileChanged, QueryFacts
from spark_elastic.core.policies.declared import max_parallelism, requirements, wanted_by_file
from spark_elastic.core.requirements import SHUFFLE, Bounds
from spark_elastic.core.settings import CoreSettings
from tests.unit.core.builder import STATEFUL

QUERY = {"source-0": 16, "shuffle": 10}


def pair(lower: int = -1, upper: int = -1) -> WantedBounds:
    return WantedBounds(lower=lower, upper=upper)


def problems(result: object) -> tuple[Problem, ...]:
    assert isinstance(result, Refused)
    return result.problems


def codes(result: object) -> list[tuple[str, str]]:
    return [(problem.code, problem.where) for problem in problems(result)]


def message(result: object) -> str:
    (problem,) = problems(result)
    return problem.message


def test_no_bound_is_expanded_before_it_is_kept() -> None:
    declared = declare(QUERY, {"source-0": pair(), "shuffle": pair(upper=8)})
    assert declared == Declared(
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
    assert unknown.message == "'sort' is no vertex of this query, allowed is shuffle: remove it"
    assert '"shuffle": {"parallelism": {"lowerBound": -1, "upperBound": -1}}' in missing.message


def test_a_part_keeps_the_bounds_of_the_other_vertices() -> None:
    kept = {
        "source-0": Bounds(lower=2, upper=3),
        "shuffle": Bounds(lower=4, upper=5),
        "gone": Bounds(upper=9),
    }
    assert declare_some(QUERY, {"shuffle": pair(upper=6)}, kept) == Declared(
        vertices={"source-0": Bounds(lower=2, upper=3), "shuffle": Bounds(lower=1, upper=6)}
    )
    assert codes(declare_some(QUERY, {"sort": pair()}, kept)) == [("unknown_vertex", "sort")]
    assert codes(declare_some(QUERY, {"shuffle": pair()}, {})) == [("missing_vertex", "source-0")]


SOME = st.builds(WantedBounds, lower=st.integers(-3, 20), upper=st.integers(-3, 20))
NAMES = st.sampled_from(["source-0", "shuffle", "a.b", "c'd"])


@settings(max_examples=100, deadline=None)
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
        again = read_body(write_body(result.vertices))
        assert not isinstance(again, Refused)
        assert declare(known, again) == result


# Bodies


def body(**bounds: Any) -> dict[str, Any]:
    return {"shuffle": {"parallelism": {"lowerBound": 1, "upperBound": 8, **bounds}}}


def test_what_was_put_is_what_is_got() -> None:
    wanted = read_body(body())
    assert wanted == {"shuffle": pair(1, 8)}
    declared = declare({"shuffle": 10}, {"shuffle": pair(1, 8)})
    assert isinstance(declared, Declared)
    assert write_body(declared.vertices) == body()


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ([], "$ is an array, allowed is an object: write {…}"),
        (None, "$ is null, allowed is an object: write {…}"),
        ({}, '$ is {}, allowed is one entry for each vertex: write {"shuffle": {"parallelism": …}}'),
        ({"source-0": 4}, "$['source-0'] is 4, allowed is an object: write {…}"),
        ({"c'd\\": 4}, "$['c\\'d\\\\'] is 4, allowed is an object: write {…}"),
        (
            {"shuffle": {"parallelism": "all"}},
            "$.shuffle.parallelism is 'all', allowed is an object: write {…}",
        ),
        (
            {"shuffle": {}},
            '$.shuffle.parallelism is not there, but has to be: write "parallelism": '
            '{"lowerBound": -1, "upperBound": -1} for no bound',
        ),
        (
            {"shuffle": {"parallelism": {"lowerBound": 1}}},
            "$.shuffle.parallelism.upperBound is not there, but has to be: "
            'write "upperBound": -1 for no bound',
        ),
        (
            body(upper=3),
            "$.shuffle.parallelism.upper is no field, allowed is lowerBound and upperBound: remove it",
        ),
        (
            {**body(), "b": {**body()["shuffle"], "x": 1}},
            "$.b.x is no field, allowed is parallelism: remove it",
        ),
    ],
)
def test_another_form_is_refused_with_its_path(value: object, says: str) -> None:
    assert message(read_body(value)) == says


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (True, "true"),
        (1.0, "1.0"),
        ("4", "'4'"),
        (None, "null"),
        ({}, "an object"),
        ([], "an array"),
        (2**31, "a number of more than 32 bits"),
        ("x" * 100, f"'{'x' * 59}…"),
    ],
)
def test_only_whole_numbers_are_bounds(value: object, shown: str) -> None:
    assert message(read_body(body(lowerBound=value))) == (
        f"$.shuffle.parallelism.lowerBound is {shown}, "
        "allowed is a whole number from 1 up, or -1 for no bound: write -1"
    )


def test_all_of_a_body_is_looked_at() -> None:
    value = {"a": 1, "b": {"parallelism": {"lowerBound": "1", "upperBound": False, "x": 1}}}
    assert codes(read_body(value)) == [
        ("wrong_type", "$.a"),
        ("unknown_field", "$.b.parallelism.x"),
        ("wrong_type", "$.b.parallelism.lowerBound"),
        ("wrong_type", "$.b.parallelism.upperBound"),
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["shuffle", "parallelism", "lowerBound", "upperBound"]), inner)
    ),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None)
@given(value=JSON)
def test_whatever_comes_is_read_or_refused(value: object) -> None:
    result = read_body(value)
    if isinstance(result, Refused):
        assert result.problems
    else:
        assert write_body(result) == value


# What a query has

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
    found = requirements(facts, core, None)
    assert requirements(facts, core, {}) == found
    (vertex,) = found.vertices
    assert (vertex.bounds.lower, vertex.bounds.upper) == bounds
    assert found.bound_by == by
    assert (vertex.id, vertex.group) == (SHUFFLE, facts.query)


@pytest.mark.parametrize("explicit", ["ignore", "upperBound", "fixed"])
def test_a_declaration_replaces_the_defaults_but_not_the_maximum(explicit: Any) -> None:
    core = CoreSettings(explicit_parallelism=explicit, max_parallelism=100)
    wider = requirements(EXPLICIT, core, {"shuffle": Bounds(lower=30, upper=40)})
    assert wider.vertices[0].bounds == Bounds(lower=30, upper=40)
    assert wider.bound_by == "the declared upper bound"
    older = requirements(EXPLICIT, core, {"shuffle": Bounds(lower=200, upper=400)})
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
