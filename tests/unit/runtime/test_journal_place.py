"""Tests of where the journal is written."""

from __future__ import annotations

import getpass
import logging
import os
import tempfile
from pathlib import Path

import pytest

from spark_elastic.runtime.journal import JournalPlace, journal_name, journal_place, open_journal
from spark_elastic.settings import load
from tests.unit.runtime.support import snapshot

DAY_S = 24 * 3_600


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files; the user's name is anna."""
    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(getpass, "getuser", lambda: "anna")
    return tmp_path


def place(**conf: str) -> JournalPlace | None:
    given = {name.replace("_", "."): value for name, value in conf.items()}
    return journal_place(load(given), snapshot(given))


LOGS = {"spark_eventLog_enabled": "true"}


@pytest.mark.parametrize(
    ("conf", "folder"),
    [
        ({"spark_elastic_journal_dir": "/j"}, "/j"),
        ({"spark_elastic_journal_dir": "file:///a%20b"}, "/a b"),
        ({"spark_elastic_journal_dir": "none"}, None),
        ({"spark_elastic_journal_dir": "none", **LOGS}, None),
        ({**LOGS, "spark_eventLog_dir": "/l", "spark_elastic_journal_dir": "/j"}, "/j"),
    ],
)
def test_the_journal_goes_where_somebody_has_said(conf: dict[str, str], folder: str | None) -> None:
    name = "spark-elastic-app-1.jsonl"
    assert place(**conf) == (None if folder is None else JournalPlace(path=Path(folder, name), own=False))


@pytest.mark.parametrize(
    ("conf", "logs"),
    [
        (LOGS, "/tmp/spark-events"),
        ({**LOGS, "spark_eventLog_dir": "/logs"}, "/logs"),
        ({**LOGS, "spark_eventLog_dir": "file:/logs"}, "/logs"),
    ],
)
def test_else_it_goes_to_a_folder_of_the_user_among_local_event_logs(
    temporary: Path, conf: dict[str, str], logs: str
) -> None:
    path = Path(logs, "spark-elastic-anna/spark-elastic-app-1.jsonl")
    assert place(**conf) == JournalPlace(path=path, own=True, kept=True)


@pytest.mark.parametrize(
    "conf",
    [
        {},
        {"spark_elastic_journal_dir": "auto"},
        {"spark_eventLog_dir": "/logs"},
        {**LOGS, "spark_eventLog_dir": "hdfs://name/logs"},
    ],
)
def test_else_it_goes_to_a_folder_of_the_user_among_temporary_files(
    temporary: Path, conf: dict[str, str]
) -> None:
    path = temporary / "spark-elastic-anna/spark-elastic-app-1.jsonl"
    assert place(**conf) == JournalPlace(path=path, own=True, kept=False)


def test_temporary_files_are_where_spark_has_its_own(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def folder(**conf: str) -> Path:
        found = place(**conf)
        assert found is not None
        return found.path.parent

    assert folder(spark_local_dir="/fast, /slow") == Path("/fast/spark-elastic-anna")
    assert folder(spark_local_dir="hdfs://name/x") == temporary / "spark-elastic-anna"
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/by/env,/b")
    assert folder(spark_local_dir="/fast") == Path("/by/env/spark-elastic-anna")


def test_without_any_folder_to_write_to_there_is_no_journal(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    assert place() is None


def test_a_user_without_a_name_has_a_number(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> str:
        raise KeyError("uid not found")

    monkeypatch.setattr(getpass, "getuser", nobody)
    found = place()
    assert found is not None
    assert found.path.parent == temporary / f"spark-elastic-{os.geteuid()}"


def test_the_name_of_a_journal_is_a_file_name() -> None:
    assert journal_name("app-20261121-0001") == "spark-elastic-app-20261121-0001.jsonl"
    assert journal_name("../etc/x y") == "spark-elastic-.._etc_x_y.jsonl"


def test_our_own_folder_is_for_us_alone_and_old_journals_leave_it(
    temporary: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = temporary / "spark-elastic-anna"
    folder.mkdir(0o755)
    for name, days in (("old", 8), ("new", 6)):
        for file in (f"spark-elastic-{name}.jsonl", f"spark-elastic-{name}.jsonl.1"):
            (folder / file).touch()
            stamp = (folder / file).stat().st_mtime - days * DAY_S
            os.utime(folder / file, (stamp, stamp))
    (folder / "something else").touch()
    os.utime(folder / "something else", (0, 0))
    with caplog.at_level(logging.INFO, "spark_elastic"):
        journal = open_journal(load({}), snapshot({}))
    journal.close()
    assert folder.stat().st_mode & 0o777 == 0o700
    names = {"spark-elastic-new.jsonl", "spark-elastic-new.jsonl.1", "spark-elastic-app-1.jsonl"}
    assert {file.name for file in folder.iterdir()} == names | {"something else"}
    assert caplog.messages == [f"each decision is written to {folder / 'spark-elastic-app-1.jsonl'}"]


def test_users_share_a_folder_of_event_logs_and_no_journal_leaves_it(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": str(temporary)}
    old = temporary / "spark-elastic-anna/spark-elastic-old.jsonl"
    old.parent.mkdir()
    old.touch()
    os.utime(old, (0, 0))
    for user in ("anna", "bert"):
        monkeypatch.setattr(getpass, "getuser", lambda: user)  # noqa: B023
        journal = open_journal(load(conf), snapshot(conf))
        assert journal.path == temporary / f"spark-elastic-{user}/spark-elastic-app-1.jsonl"
        assert journal.path.parent.stat().st_mode & 0o777 == 0o700
        journal.close()
    assert old.exists()


def test_a_folder_that_somebody_has_named_is_left_as_it_is(tmp_path: Path) -> None:
    old = tmp_path / "spark-elastic-old.jsonl"
    old.touch()
    os.utime(old, (0, 0))
    conf = {"spark.elastic.journal.dir": str(tmp_path)}
    open_journal(load(conf), snapshot(conf)).close()
    assert old.exists()


@pytest.mark.parametrize("trap", ["link", "of another user", "no folder"])
def test_what_somebody_else_has_put_there_is_no_error_and_not_used(
    temporary: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, trap: str
) -> None:
    folder, elsewhere = temporary / "spark-elastic-anna", temporary / "elsewhere"
    elsewhere.mkdir()
    if trap == "link":
        folder.symlink_to(elsewhere)
    elif trap == "no folder":
        folder.touch()
    else:
        folder.mkdir()
        monkeypatch.setattr(os, "geteuid", lambda: 12_345)
    with caplog.at_level(logging.WARNING, "spark_elastic"):
        journal = open_journal(load({}), snapshot({}))
    assert journal.path is None
    assert not journal.failed, "nobody has asked for one, so nothing is refused for want of it"
    (said,) = caplog.messages
    assert said.startswith(f"no decision journal: {folder}: ")
    assert list(elsewhere.iterdir()) == []


def test_one_that_nobody_has_asked_for_may_end(
    temporary: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = temporary / "spark-elastic-anna/spark-elastic-app-1.jsonl"
    path.parent.mkdir(0o700)
    path.symlink_to(temporary / "target")
    with caplog.at_level(logging.WARNING, "spark_elastic"):
        journal = open_journal(load({}), snapshot({}))
    assert journal.path is None
    assert not journal.failed
    assert "decision journal stopped" in caplog.text
