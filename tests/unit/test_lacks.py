"""Tests of the features that earlier versions of Spark lack."""

from __future__ import annotations

import pytest

import spark_versions
from spark_elastic.installation import Spark
from spark_elastic.lacks import LACKS, lacks_of
from tests.unit.docs.pages import read


@pytest.mark.parametrize(
    ("version", "since"),
    [
        ("3.5.5-amzn-0", ["4.2", "4.1", "4.0"]),
        ("4.0.0", ["4.2", "4.1"]),
        ("4.1.4", ["4.2"]),
        ("4.2.0", []),
        ("4.10.0", []),
        ("(unknown)", []),
    ],
)
def test_a_version_is_without_what_came_after_it(version: str, since: list[str]) -> None:
    assert [lack.since for lack in lacks_of(Spark(version))] == since


def test_a_part_that_is_off_is_left_out() -> None:
    assert [lack.since for lack in lacks_of(Spark("4.0.5"), off={"rescales of state"})] == ["4.1"]


def test_each_tells_some_of_the_supported_versions_from_others() -> None:
    lacks = [set(lacks_of(Spark(row.spark))) for row in spark_versions.supported()]
    assert set.union(*lacks) == set(LACKS)
    assert not set.intersection(*lacks)


@pytest.mark.parametrize("page", ["README.md", "docs/getting-started.md"])
def test_pages_say_the_same(page: str) -> None:
    words = " ".join(read(page).text.split())
    assert [lack for lack in LACKS if str(lack)[1:] not in words] == []
