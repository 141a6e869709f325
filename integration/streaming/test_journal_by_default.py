"""Tests that without a setting there is a journal, which only the driver's user can read."""

from __future__ import annotations

import getpass
import os
import stat
from pathlib import Path

import pytest

from integration.streaming.driver import driver
from integration.streaming.files import Inbox
from integration.streaming.launch import WITH_PLUGIN
from integration.streaming.test_resume import Application
from integration.streaming.waiting import eventually
from integration.streaming.world import totals
from spark_elastic.core.events import QueryProgress
from spark_elastic.runtime.journal import journal_name

pytestmark = [pytest.mark.integration, pytest.mark.timeout(180)]


def is_ours_alone(path: Path, mode: int) -> bool:
    found = path.lstat()
    return (stat.S_IMODE(found.st_mode), found.st_uid) == (mode, os.geteuid())


def test_the_journal_is_in_a_folder_of_our_own_and_outlives_the_policy_process(
    inbox: Inbox, tmp_path: Path
) -> None:
    inbox.put()
    # Its temporary files, including Spark's, are below this folder.
    with driver(tmp_path / "driver") as jvm:
        folder = jvm.folder / "local" / f"spark-elastic-{getpass.getuser()}"
        with jvm.session({**WITH_PLUGIN, "spark.sql.shuffle.partitions": "2"}) as spark:
            journal = folder / journal_name(spark.sparkContext.applicationId)
            eventually(journal.exists, "there is a journal")
            assert is_ours_alone(folder, 0o700)
            assert is_ours_alone(journal, 0o600)
            running = Application(spark, jvm, folder)
            query = totals(spark, inbox).writeStream.format("noop").outputMode("update").start()
            query.processAllAvailable()
            eventually(lambda: len(running.times(QueryProgress)) == 1, "the first batch is in the journal")
            file = journal.stat().st_ino
            running.kill_policy()
            inbox.put()
            query.processAllAvailable()
            eventually(lambda: len(running.times(QueryProgress)) == 2, "the journal continues")
            query.stop()
        assert list(folder.iterdir()) == [journal]
        assert journal.stat().st_ino == file
        assert is_ours_alone(folder, 0o700)
        assert is_ours_alone(journal, 0o600)
        assert running.snapshots() == 2
        running.check_journal()
