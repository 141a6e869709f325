"""Tests of a source: the rows that arrived, the rows that were read, and the age of waiting rows."""

from __future__ import annotations

import math
from typing import Any

import pytest
from attrs import evolve

from spark_elastic.core.events import FullestPartition, OffsetsBehind
from spark_elastic_lab.simulator.load import Load
from spark_elastic_lab.simulator.source import Source, SourceSpec

SPEC = SourceSpec(partitions=4)


def test_rows_come_are_taken_and_committed() -> None:
    source = Source(SPEC, Load([10, 10, 0]))
    assert source.available(1_500) == 15
    assert source.take(1_500) == 15
    assert (source.available(1_500), source.uncommitted(1_500)) == (0, 15)
    assert source.waits_since == 100
    source.commit()
    assert source.uncommitted(2_000) == 5
    assert source.waits_since == source.next_unread == 1_600
    source.take(3_000)
    assert source.next_unread == math.inf


def test_what_is_there_at_the_begin_waits_since_then() -> None:
    source = Source(evolve(SPEC, backlog=7, most_rows=5), Load([2, 2]))
    assert source.take(1_000) == 5
    source.commit()
    assert source.waits_since == source.next_unread == 0
    assert source.take(1_000) == 4
    source.commit()
    assert source.waits_since == source.next_unread == 1_500


def test_rows_behind_lie_in_partitions() -> None:
    even = Source(SPEC, Load([1]))
    assert even.behind(8) == OffsetsBehind(avg=2, max=2, min=2)
    hot = Source(evolve(SPEC, hot=0.7), Load([1]))
    assert hot.behind(100) == OffsetsBehind(avg=25, max=70, min=10)
    assert Source(SourceSpec(partitions=1), Load([1])).behind(3) == OffsetsBehind(avg=3, max=3, min=3)


def test_the_fullest_partition_is_told_where_one_is_fuller() -> None:
    hot = Source(evolve(SPEC, hot=0.7), Load([1]))
    assert hot.fullest(100) == FullestPartition(name="0", rows=70, all_rows=100, partitions=4)
    assert hot.fullest(0) is None
    assert Source(SPEC, Load([1])).fullest(100) is None


@pytest.mark.parametrize(
    "wrong", [{"partitions": 0}, {"hot": 0}, {"hot": 1.1}, {"backlog": -1}, {"most_rows": 0}]
)
def test_what_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        evolve(SPEC, **wrong)
