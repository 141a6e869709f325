"""Tests of bounds in Flink's request format: what is read, and what is refused with its path."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_elastic.core.bounds.declared import Accepted, Refused, declare
from spark_elastic.http.bounds_body import read_body, write_body
from tests.unit.core.bounds.asked import codes, message, pair


def body(**bounds: Any) -> dict[str, Any]:
    return {"shuffle": {"parallelism": {"lowerBound": 1, "upperBound": 8, **bounds}}}


def test_what_was_put_is_what_is_got() -> None:
    wanted = read_body(body())
    assert wanted == {"shuffle": pair(1, 8)}
    declared = declare({"shuffle": 10}, {"shuffle": pair(1, 8)})
    assert isinstance(declared, Accepted)
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
            "$.shuffle.parallelism.upper is no field, allowed is lowerBound, upperBound and target: "
            "remove it",
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


@settings(max_examples=100)
@given(value=JSON)
def test_whatever_comes_is_read_or_refused(value: object) -> None:
    result = read_body(value)
    if isinstance(result, Refused):
        assert result.problems
    else:
        assert write_body(result) == value
