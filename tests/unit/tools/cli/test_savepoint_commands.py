"""Tests of the commands that take savepoints."""

from __future__ import annotations

import json
import threading

import pytest

from spark_elastic.core import events as ev
from spark_elastic.core.actions import TakeSavepoint
from tests.unit.http.world import ID, PATIENCE_S
from tests.unit.tools.cli.served import Served


def complete_savepoint(driver: Served, *, fail: bool = False) -> threading.Thread:
    """Act as the shim does once it gets the order to take a savepoint."""

    def wait() -> None:
        ordered = driver.world.shim.ordered(TakeSavepoint)
        if fail:
            driver.world.send(ev.ActionFailed, action=ordered.id, query=ID, error="no room")
        else:
            taken = {"action": ordered.id, "path": "file:/s/savepoint-7", "batch": 7, "bytes": 12}
            driver.world.send(ev.SavepointTaken, query=ID, run="r1", **taken)

    thread = threading.Thread(target=wait)
    thread.start()
    return thread


def test_savepoint_waits_until_it_is_complete_and_prints_its_path(driver: Served) -> None:
    shim = complete_savepoint(driver)
    result = driver.run("savepoint", "counts", "/s")
    shim.join(PATIENCE_S)
    assert (result.exit_code, result.stdout) == (0, "file:/s/savepoint-7\n"), result.output


def test_a_savepoint_that_fails_is_an_error(driver: Served) -> None:
    shim = complete_savepoint(driver, fail=True)
    result = driver.run("savepoint", "counts", "/s")
    shim.join(PATIENCE_S)
    assert result.exit_code == 1
    assert "Savepoint failed: no room" in result.stderr


def test_nobody_waits_longer_than_he_said(driver: Served) -> None:
    assert driver.run("savepoint", "spread", "/s", "--no-wait").exit_code == 0
    result = driver.run("savepoint", "counts", "/s", "--timeout", "0")
    assert result.exit_code == 1
    assert "is not complete after 0 s" in result.stderr


def test_stop_with_savepoint_prints_its_path(driver: Served) -> None:
    shim = complete_savepoint(driver)
    result = driver.run("stop", "counts", "--savepoint", "/s", "--json")
    shim.join(PATIENCE_S)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["path"] == "file:/s/savepoint-7"


@pytest.mark.parametrize("command", [("savepoint", "counts", "/s"), ("stop", "counts", "--savepoint", "/s")])
def test_the_state_in_it_gets_another_format(driver: Served, command: tuple[str, ...]) -> None:
    assert driver.run(*command, "--format", "hdfs", "--no-wait").exit_code == 0
    assert driver.world.shim.ordered(TakeSavepoint).format == "hdfs"


def test_a_format_without_a_savepoint_is_refused(driver: Served) -> None:
    result = driver.run("stop", "counts", "--format", "hdfs")
    assert result.exit_code == 2
    assert "--format is for the savepoint: add --savepoint" in result.stderr


def test_a_savepoint_without_a_folder_is_refused(driver: Served) -> None:
    result = driver.run("stop", "counts", "--savepoint")
    assert result.exit_code == 1
    assert "spark.elastic.savepointDir is not set" in result.stderr


def test_a_second_savepoint_at_a_time_is_refused(driver: Served) -> None:
    assert driver.run("savepoint", "counts", "/s", "--no-wait").exit_code == 0
    result = driver.run("savepoint", "counts", "/s")
    assert result.exit_code == 1
    assert "a savepoint of the query is being taken" in result.stderr


def test_a_savepoint_goes_only_where_the_settings_allow(driver: Served) -> None:
    result = driver.run("savepoint", "counts", "file:///etc")
    assert result.exit_code == 1
    assert "allowed is what is below /s" in result.stderr
