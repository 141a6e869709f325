"""Tests of which name or pattern applies to a query."""

from __future__ import annotations

import time

import pytest

from spark_elastic.core.name_patterns import is_pattern, matching, merged


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("orders", "orders", True),
        ("orders", "orders-eu", False),
        ("orders-*", "orders-eu", True),
        ("orders-*", "orders-", True),
        ("orders-*", "Orders-eu", False),
        ("*", "any.thing at all", True),
        ("order?", "orders", True),
        ("order?", "order", False),
        ("a.c", "abc", False),
        ("[ab]*", "ab", False),
        ("[ab]*", "[ab]c", True),
        ("*-eu", "orders-eu\n", False),
        ("a*c", "a\nc", True),
    ],
)
def test_a_star_is_any_text_a_question_mark_one_character_and_nothing_else_is_special(
    pattern: str, name: str, fits: bool
) -> None:
    assert (matching(name, [pattern]) == (pattern,)) is fits


def test_an_exact_name_counts_most_then_the_longest_literal_text_then_what_was_written_first() -> None:
    written = ["*", "orders-*", "*-eu", "orders-eu", "orders-??", "unrelated"]
    assert matching("orders-eu", written) == ("*", "*-eu", "orders-??", "orders-*", "orders-eu")
    said = {"ord*-eu": {"a": 1, "b": 1}, "orders-*": {"b": 2, "c": 2}, "*ders-eu": {"c": 3}}
    assert merged("orders-eu", said) == {"a": 1, "b": 2, "c": 2}
    assert merged("orders-eu", dict(reversed(said.items()))) == {"a": 1, "b": 2, "c": 3}


def test_a_query_without_a_name_is_meant_by_no_pattern() -> None:
    assert matching(None, ["*"]) == ()
    assert merged(None, {"*": {"a": 1}}) == {}


def test_a_name_is_no_pattern_without_a_star_or_a_question_mark() -> None:
    assert [is_pattern(name) for name in ("a", "a[b]", "a*", "?")] == [False, False, True, True]


def test_many_stars_take_no_longer_than_one() -> None:
    began = time.perf_counter()
    assert matching("a" * 500, ["*" * 500 + "b"]) == ()
    assert time.perf_counter() - began < 1
