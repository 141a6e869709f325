"""Tests of the share of task time that is lost to a lack of memory."""

from __future__ import annotations

import pytest
from attrs import evolve

from spark_elastic.core.policies.autoscale.measured import memory_pressure
from tests.unit.core.policies.seen import batches, sample, work


def test_it_is_the_part_of_the_time_of_tasks_that_is_garbage_collection() -> None:
    found = memory_pressure(batches(3, 1_000, 4, work=work(run_ms=1_000, gc_ms=400)))
    assert found is not None
    assert (found.share, found.gc_share, found.spilled_bytes) == (0.4, 0.4, 0)


def test_spill_counts_as_the_time_that_a_disk_takes_for_it() -> None:
    # A disk writes 125 MB per second: 25 MB take 200 ms.
    found = memory_pressure(
        batches(3, 1_000, 4, work=work(run_ms=1_000, gc_ms=200, spilled_bytes=25_000_000))
    )
    assert found is not None
    assert found.share == pytest.approx(0.4)
    assert found.gc_share == 0.2
    assert found.spilled_bytes == 25_000_000


def test_a_usual_part_is_no_pressure() -> None:
    assert memory_pressure(batches(3, 1_000, 4, work=work(run_ms=1_000, gc_ms=200))) is None
    assert memory_pressure(batches(3, 1_000, 4, work=work(run_ms=0, gc_ms=0))) is None


def test_one_batch_tells_nothing() -> None:
    calm, short = work(run_ms=1_000, gc_ms=10), work(run_ms=1_000, gc_ms=900)
    assert (
        memory_pressure([sample(number, work=one) for number, one in enumerate((calm, calm, short))]) is None
    )
    assert memory_pressure(batches(1, 1_000, 4, work=short)) is None


def test_what_is_not_told_is_not_known() -> None:
    told = batches(3, 1_000, 4, work=work(run_ms=1_000, gc_ms=900))
    assert memory_pressure(()) is None
    assert memory_pressure(batches(3, 1_000, 4)) is None
    assert memory_pressure((told[0], *(evolve(one, work=None) for one in told[1:]))) is None
