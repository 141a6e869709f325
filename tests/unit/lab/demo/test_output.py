"""Tests of the commits in a sink's log, and of the gaps between them."""

from __future__ import annotations

import os
from pathlib import Path

from spark_elastic_lab.demo.summary import commits, longest_gap


def test_commits_are_the_times_of_the_sinks_log_compacted_or_not(tmp_path: Path) -> None:
    log = tmp_path / "_spark_metadata"
    log.mkdir()
    for name, seconds in {"9.compact": 3, "8": 2, "10": 4, ".8.crc": 9, ".10.tmp": 9}.items():
        (log / name).touch()
        os.utime(log / name, (seconds, seconds))
    assert commits(tmp_path) == (2000, 3000, 4000)


def test_a_sink_that_never_wrote_has_no_commits(tmp_path: Path) -> None:
    assert commits(tmp_path) == ()


def test_a_gap_counts_if_any_part_of_it_lies_in_the_time_asked_for() -> None:
    times = (0, 1000, 5000, 6000, 9000)
    assert longest_gap(times, 4900, 5900) == 4000
    assert longest_gap(times, 5100, 5900) == 1000
    assert longest_gap(times, 5100, 6001) == 3000
    assert longest_gap(times, 9000, 9500) is None
    assert longest_gap((), 0, 1) is None
