"""Tests of the feed that delivers files to the demonstration's queries."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from spark_elastic_lab.demo.data import in_order
from spark_elastic_lab.demo.source import Feed, Steady


@pytest.fixture
def parts(tmp_path: Path) -> list[Path]:
    files = [tmp_path / f"lineitem.{number}.parquet" for number in (1, 2, 3)]
    for file in files:
        file.write_text(file.name)
    return files


def files_in(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.parquet"))


def test_parts_are_ordered_by_number_not_by_name() -> None:
    files = [Path(f"lineitem/lineitem.{number}.parquet") for number in (10, 9, 100, 1)]
    assert [file.name.split(".")[1] for file in in_order(files)] == ["1", "9", "10", "100"]


def test_files_go_round_and_have_names_of_their_own(parts: list[Path], tmp_path: Path) -> None:
    feed = Feed(parts, tmp_path / "incoming", interval_s=1)
    for _ in range(4):
        feed.deliver()
    delivered = files_in(tmp_path / "incoming")
    assert [file.read_text() for file in delivered] == [parts[i].read_text() for i in (0, 1, 2, 0)]


def test_the_time_of_arrival_is_now_and_never_goes_back(parts: list[Path], tmp_path: Path) -> None:
    feed = Feed(parts, tmp_path / "incoming", interval_s=1)
    before = time.time()
    for _ in range(3):
        feed.deliver()
    times = [file.stat().st_mtime for file in files_in(tmp_path / "incoming")]
    assert times == sorted(times)
    assert before - 1 <= times[0] <= time.time() + 1


def test_nothing_half_written_is_ever_in_the_folder(parts: list[Path], tmp_path: Path) -> None:
    feed = Feed(parts, tmp_path / "incoming", interval_s=1)
    feed.deliver()
    assert [file.name for file in (tmp_path / "incoming").iterdir()] == ["lineitem-000000.parquet"]
    assert list((tmp_path / "incoming-staging").iterdir()) == []


def test_the_end_is_a_late_file(parts: list[Path], tmp_path: Path) -> None:
    feed = Feed(parts, tmp_path / "incoming", interval_s=0.01)
    feed.start()
    while feed.delivered < 3:
        time.sleep(0.01)
    feed.finish()
    files = files_in(tmp_path / "incoming")
    assert len(files) == feed.delivered
    assert files[-1].stat().st_mtime > time.time() + 600
    time.sleep(0.05)
    assert len(list((tmp_path / "incoming").glob("*.parquet"))) == feed.delivered


def test_a_feed_without_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no files"):
        Feed([], tmp_path / "incoming", interval_s=1)


class Hurried(Steady):
    """Delivers once, and then far more often."""

    def __init__(self) -> None:
        super().__init__(interval_s=3600)
        self.third = threading.Event()
        self._delivered = 0

    def deliver(self) -> None:
        self.pace(0.001)
        self._delivered += 1
        if self._delivered == 3:
            self.third.set()


def test_another_pace_counts_from_the_next_one_on() -> None:
    hurried = Hurried()
    hurried.start()
    assert hurried.third.wait(10)
    hurried.stop()
