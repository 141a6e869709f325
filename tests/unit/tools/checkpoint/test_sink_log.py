"""Tests of what is known about the log of Spark's file sink from the names of its entries."""

from __future__ import annotations

import pytest

from spark_elastic_tools.checkpoint.sink_log import cannot_end, later, unfit

LOG = ["7", "8", "9.compact", "10", "11", ".11.crc", ".12.1f0a.tmp"]


@pytest.mark.parametrize(
    ("names", "batch", "said"),
    [
        (LOG, 11, None),
        (LOG, 12, None),
        (LOG, 10, "its log has batch 11, and the checkpoint ends with 10"),
        ([".1.crc"], 1, "no folder _spark_metadata with entries"),
    ],
)
def test_a_log_fits_a_checkpoint_that_is_as_far(names: list[str], batch: int, said: str | None) -> None:
    reason = unfit(names, batch)
    assert reason is None if said is None else said in (reason or "")


@pytest.mark.parametrize(
    ("names", "batch", "said"),
    [
        (LOG, 9, None),
        (LOG, 10, None),
        (LOG, 8, "cannot go back to batch 8: it has no entry of 0"),
        (["0", "1", "2"], 1, None),
        (["0", "2"], 2, "it has no entry of 1"),
        (["0", "1"], 2, "it has no entry of 2"),
        ([], 2, "no folder _spark_metadata"),
    ],
)
def test_a_log_ends_earlier_if_all_before_is_there(names: list[str], batch: int, said: str | None) -> None:
    reason = cannot_end(names, batch)
    assert reason is None if said is None else said in (reason or "")


def test_what_is_later_goes_from_its_end() -> None:
    assert later(LOG, 8) == ["11", "10", "9.compact"]
    assert later(LOG, 11) == []
