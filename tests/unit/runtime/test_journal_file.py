"""Tests of the owner and the permissions of journals."""

from __future__ import annotations

import fcntl
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from spark_elastic.runtime import journal
from spark_elastic.runtime.journal import Journal
from spark_elastic.settings import Settings
from tests.unit.runtime.support import START
from tests.unit.runtime.test_resume import Application

OTHER = os.geteuid() + 1


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


def opened(path: Path) -> Journal:
    journal = Journal(path, application="app-1", settings=Settings(), max_size=1 << 20)
    journal.close()
    return journal


@pytest.fixture
def open_umask() -> object:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_umask")
def test_nobody_else_may_read_a_journal_or_look_into_the_folders_made_for_it(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "j.jsonl"
    opened(path)
    assert mode(path) == 0o600
    assert mode(path.parent) == mode(path.parent.parent) == 0o700


@pytest.mark.usefixtures("open_umask")
def test_a_folder_that_is_there_stays_as_it_is_and_an_older_journal_is_closed(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir(0o777)
    path = folder / "j.jsonl"
    opened(path)
    path.chmod(0o644)
    opened(path)
    assert (mode(path), mode(folder)) == (0o600, 0o777)


@pytest.mark.usefixtures("open_umask")
def test_every_part_is_for_us_alone(tmp_path: Path) -> None:
    application = Application(tmp_path, journal_maxSize="64k")
    application.process(
        *application.starts(), *application.batches(START, START + 200_000), until=START + 200_000
    )
    older = application.path.with_name(application.path.name + ".1")
    assert mode(application.path) == mode(older) == 0o600


@pytest.mark.parametrize("there", [True, False])
def test_a_symbolic_link_is_not_followed_and_not_touched(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, there: bool
) -> None:
    path, target = tmp_path / "j.jsonl", tmp_path / "target"
    if there:
        target.write_text("precious")
    path.symlink_to(target)
    with caplog.at_level(logging.WARNING, "spark_elastic"):
        assert opened(path).failed
    (said,) = caplog.messages
    assert said.startswith("decision journal stopped: ")
    assert said.endswith("j.jsonl: it is a symbolic link: remove it")
    assert path.is_symlink()
    assert (target.read_text() == "precious") if there else not target.exists()


def test_what_is_no_plain_file_is_not_waited_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "j.jsonl"
    os.mkfifo(path)
    with caplog.at_level(logging.WARNING, "spark_elastic"):
        assert opened(path).failed
    assert "it is no plain file" in caplog.text
    assert path.exists()


def test_the_file_of_another_user_is_not_written_to(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "j.jsonl"
    path.write_text("theirs")
    monkeypatch.setattr(os, "geteuid", lambda: OTHER)
    with caplog.at_level(logging.WARNING, "spark_elastic"):
        assert opened(path).failed
    assert f"it belongs to another user ({os.getuid()})" in caplog.text
    assert path.read_text() == "theirs"


def went_on(application: Application) -> bool:
    """Start another policy process; return whether it continues where the previous one ended."""
    first = application.goes_on(START + 20_000)
    before = len(application.path.read_text().splitlines())
    application.process(first, until=START + 21_000)
    return '"state":' in "".join(application.path.read_text().splitlines()[before:])


def test_nothing_is_resumed_from_the_journal_of_another_user_or_from_a_link(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    application = Application(tmp_path / "a")
    application.process(*application.starts(), until=START + 10_000)
    assert went_on(application)

    with monkeypatch.context() as patched, caplog.at_level(logging.WARNING, "spark_elastic"):
        patched.setattr(os, "geteuid", lambda: OTHER)
        assert not went_on(application)
    assert caplog.messages[0].startswith("starting over, without its earlier state: ")
    assert "it belongs to another user" in caplog.messages[0]

    caplog.clear()
    real = application.path.rename(tmp_path / "real.jsonl")
    application.path.symlink_to(real)
    with caplog.at_level(logging.WARNING, "spark_elastic"):
        assert not went_on(application)
    assert "starting over, without its earlier state: " in caplog.messages[0]
    assert "it is a symbolic link" in caplog.messages[0]


WRITER = (
    "import sys, pathlib\n"
    "from spark_elastic.runtime.journal import open_to_append\n"
    "file = open_to_append(pathlib.Path(sys.argv[1]))\n"
    "print('open', flush=True)\n"
    "sys.stdin.read()\n"
)


def old(path: Path) -> Path:
    path.touch()
    os.utime(path, (1, 1))
    return path


def test_a_journal_that_is_written_is_not_removed_however_old_it_is(tmp_path: Path) -> None:
    live, dead = (tmp_path / f"spark-elastic-app-{number}.jsonl" for number in (1, 2))
    older = old(live.with_name(live.name + ".1"))
    command = [sys.executable, "-c", WRITER, str(live)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"open\n"
        old(live)
        old(dead)
        journal.remove_old(tmp_path, before=1_000)
        assert live.exists()
        assert older.exists()
        assert not dead.exists()
        writer.kill()  # which releases its lock
    journal.remove_old(tmp_path, before=1_000)
    assert not live.exists()
    assert not older.exists()


@pytest.mark.parametrize(("kind", "left"), [("nfs4", True), ("fuse.s3fs", True), ("ext4", False)])
def test_where_locks_of_other_hosts_are_not_seen_nothing_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, left: bool
) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(
        f"/dev/a / ext4 rw 0 0\nhost:/b {tmp_path} xfs rw 0 0\nhost:/c {tmp_path} {kind} rw 0 0\n"
    )
    monkeypatch.setattr(journal, "_MOUNTS", mounts)
    file = old(tmp_path / "spark-elastic-app-1.jsonl")
    journal.remove_old(tmp_path, before=1_000)
    assert file.exists() == left


def test_a_journal_whose_lock_cannot_be_had_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(*_: object) -> None:
        raise OSError("no locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    file = old(tmp_path / "spark-elastic-app-1.jsonl")
    journal.remove_old(tmp_path, before=1_000)
    assert file.exists()
    assert not opened(file).failed
