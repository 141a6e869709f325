"""Tests that the rows of a micro-batch are shared among the sources whose reading can be limited."""

from __future__ import annotations

from spark_elastic.core.actions import SourceLimit
from spark_elastic.core.events import SourceFacts
from spark_elastic.core.policies.row_limits import differ, source_limits

KAFKA = SourceFacts(name="kafka", limitable=True)
FILES = SourceFacts(name="FileSource[/in]")


def rows(limits: tuple[SourceLimit, ...]) -> list[int]:
    return [limit.rows for limit in limits]


def test_one_source_has_all_of_them() -> None:
    assert rows(source_limits(1_000, (KAFKA,), (400,))) == [1_000]


def test_where_nothing_is_wanted_or_can_be_limited_there_are_no_limits() -> None:
    assert source_limits(None, (KAFKA,), (400,)) == ()
    assert source_limits(1_000, (FILES,), (400,)) == ()
    assert source_limits(1_000, (), ()) == ()


def test_sources_have_as_many_as_they_had_of_the_last_batch() -> None:
    assert rows(source_limits(1_000, (KAFKA, KAFKA), (600, 200))) == [750, 250]


def test_one_that_had_nothing_gets_a_part_all_the_same() -> None:
    assert rows(source_limits(1_000, (KAFKA, KAFKA), (600, 0))) == [1_000, 250]
    assert rows(source_limits(1_000, (KAFKA, KAFKA), ())) == [500, 500]
    assert rows(source_limits(1, (KAFKA, KAFKA), (1, 0))) == [1, 1]


def test_what_other_sources_read_is_left_out_and_they_are_not_limited() -> None:
    assert rows(source_limits(1_000, (FILES, KAFKA), (250, 750))) == [0, 750]


def test_a_little_more_or_less_is_no_other_limit() -> None:
    before = source_limits(1_000, (KAFKA,), ())
    assert not differ(before, source_limits(1_200, (KAFKA,), ()))
    assert differ(before, source_limits(1_400, (KAFKA,), ()))
    assert differ(before, source_limits(700, (KAFKA,), ()))
    assert differ(before, ())
    assert differ((), before)
    assert not differ((), ())
