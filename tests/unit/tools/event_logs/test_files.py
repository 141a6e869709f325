"""Tests that logs are found in files and folders, and that what cannot be read is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spark_elastic_tools.event_logs.files import LogError, find_logs
from tests.unit.tools.event_logs.written import zstd


def lines(*numbers: int) -> bytes:
    return b"".join(json.dumps({"Event": f"E{number}"}).encode() + b"\n" for number in numbers)


def read(place: Path) -> list[list[str]]:
    return [[event["Event"] for event in log.events()] for log in find_logs(place)]


def test_a_file_is_a_log(tmp_path: Path) -> None:
    file = tmp_path / "app-1.zstd"
    file.write_bytes(zstd(lines(1, 2)))
    (log,) = find_logs(file)
    assert (log.name, log.unfinished) == ("app-1.zstd", False)
    assert read(file) == [["E1", "E2"]]


def test_only_wanted_events_are_read(tmp_path: Path) -> None:
    file = tmp_path / "app-1"
    file.write_bytes(lines(1) + b'{"Event":"E2", this is skipped unread}\n' + lines(3))
    (log,) = find_logs(file)
    assert [event["Event"] for event in log.events({"E1", "E3"}.__contains__)] == ["E1", "E3"]


def test_the_parts_of_a_rolled_log_are_read_in_order(tmp_path: Path) -> None:
    folder = tmp_path / "eventlog_v2_app-1"
    folder.mkdir()
    for number in (10, 2, 1):
        (folder / f"events_{number}_app-1.zstd").write_bytes(zstd(lines(number)))
    (folder / "appstatus_app-1.inprogress").touch()
    assert read(folder) == read(tmp_path) == [["E1", "E2", "E10"]]
    assert find_logs(folder)[0].unfinished


def test_a_compacted_part_stands_for_those_before_it(tmp_path: Path) -> None:
    folder = tmp_path / "eventlog_v2_app-1"
    folder.mkdir()
    for name, number in {"1": 1, "2": 2, "2.compact": 20, "3": 3}.items():
        file, _, compact = name.partition(".")
        (folder / f"events_{file}_app-1{'.compact' if compact else ''}").write_bytes(lines(number))
    assert read(folder) == [["E20", "E3"]]


def test_a_folder_has_logs_of_both_kinds(tmp_path: Path) -> None:
    (tmp_path / "eventlog_v2_app-2").mkdir()
    (tmp_path / "eventlog_v2_app-2" / "events_1_app-2").write_bytes(lines(2))
    (tmp_path / "app-1.inprogress").write_bytes(lines(1))
    (tmp_path / ".app-1.crc").write_bytes(b"crc")
    assert read(tmp_path) == [["E1"], ["E2"]]
    assert [log.unfinished for log in find_logs(tmp_path)] == [True, False]


def test_an_incomplete_last_line_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "app-1.inprogress"
    file.write_bytes(lines(1, 2) + b'{"Event":"E3","Time')
    assert read(file) == [["E1", "E2"]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (lines(1) + b'{"Event":"E2",\n' + lines(3), r"is damaged: line 2 is no JSON .*copy the log again"),
        (b"# Changelog\n\nText\n", r"no event log of Spark: line 1 is no JSON but starts with b'# Change"),
        (b'{"journal": 1}\n', r"no event log of Spark: line 1 is no event"),
        (b"[1, 2]\n", r"no event log of Spark: line 1 is no event"),
        (b"BZh91AY", r"is bzip2, .*decompress it first"),
    ],
)
def test_what_is_no_log_is_named(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "app-1"
    file.write_bytes(content)
    with pytest.raises(LogError, match=message):
        read(file)


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(LogError, match=r"nothing is not there: name an event log, or the folder in spark"):
        find_logs(tmp_path / "nothing")
    with pytest.raises(LogError, match="has no event log"):
        find_logs(tmp_path)
    rolled = tmp_path / "eventlog_v2_app-1"
    rolled.mkdir()
    with pytest.raises(LogError, match=r"has no part events_1_…: copy the whole folder"):
        find_logs(rolled)
    part = rolled / "events_1_app-1"
    part.touch()
    with pytest.raises(LogError, match=r"is one part of a rolled log: name its folder"):
        find_logs(part)
