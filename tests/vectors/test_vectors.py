"""Tests the production code against the behaviour of the model, vector by vector."""

from __future__ import annotations

from typing import Any

import pytest

from tests.vectors.adapters import ADAPTERS, PROSE
from tests.vectors.adapters.fields import NotRunError
from tests.vectors.differences import DIFFERENCES, differs


def test_vector(group: str, vector: dict[str, Any], own: bool) -> None:
    given, expected = vector["input"], vector["expected"]
    skipped = {field: entry for field in expected if (entry := differs(group, given, field))}
    wanted = {field: value for field, value in expected.items() if field not in skipped}
    if not wanted:
        pytest.skip("; ".join(f"{field}: {entry.why}" for field, entry in skipped.items()))
    try:
        found = ADAPTERS[group](given)
    except NotRunError as error:
        if own:
            raise
        pytest.skip(str(error))
    for field in [field for field in wanted if (group, field) in PROSE]:
        words = wanted.pop(field)
        assert PROSE[group, field](words, found[field]), f"{words!r}, but {found[field]}"
    assert {field: found[field] for field in wanted} == wanted


def test_every_group_is_run(groups: set[str]) -> None:
    assert groups <= ADAPTERS.keys()


def test_every_difference_is_about_a_group_that_is_run() -> None:
    assert {entry.group for entry in DIFFERENCES} <= ADAPTERS.keys()
