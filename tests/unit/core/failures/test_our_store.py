"""Tests that a failure in the store that we chose ends the query, which restarts with the user's store."""

from __future__ import annotations

from typing import Any

import pytest

from spark_elastic.core import actions as ac
from spark_elastic.core.failures.strategy import FixedDelay, NoRestart, RestartPolicy
from spark_elastic.core.settings import CoreSettings
from tests.unit.core.builder import STATEFUL, Scene, only, reasons

TWICE = "[CANNOT_LOAD_STATE_STORE.UNRELEASED_THREAD_ERROR] An error occurred during loading state."
PARTLY = "assertion failed: CheckpointInfo length: 1, numPartitions: 2"
AGAIN = FixedDelay(attempts=9, delay_ms=0)


def running(restart: RestartPolicy = AGAIN, **facts: Any) -> Scene:
    world = Scene(CoreSettings(restart=restart))
    world.start(2)
    world.running(2, STATEFUL, **facts)
    return world


@pytest.mark.parametrize("restart", [AGAIN, NoRestart()])
@pytest.mark.parametrize("error", [TWICE, PARTLY])
def test_before_a_batch_is_committed_the_next_start_is_to_begin_anew(
    restart: RestartPolicy, error: str
) -> None:
    world = running(restart)
    actions = world.run_fails(error)
    assert reasons(actions) == ["failure_new_store"]
    kept = only(actions, ac.KeepText)
    assert (kept.name, kept.text) == ("store", "unchanged")
    only(actions, ac.FailQuery)
    assert "uses Spark's own store" in only(actions, ac.Report).decision.message
    world.check()


def test_after_one_was_committed_it_is_said_what_helps() -> None:
    world = running()
    world.batch(300, 2)
    actions = world.run_fails(TWICE)
    assert reasons(actions) == ["failure_our_store"]
    assert not [action for action in actions if isinstance(action, ac.KeepText)]
    only(actions, ac.FailQuery)
    world.check()


@pytest.mark.parametrize(
    "facts", [{"provider_chosen": True}, {"checkpoint_partitions": 2, "provider": "hdfs"}]
)
def test_in_the_users_store_it_is_a_failure_like_any_other(facts: dict[str, Any]) -> None:
    assert reasons(running(**facts).run_fails(TWICE))[0] == "failure_restart"


def test_another_failure_leaves_the_store_alone() -> None:
    assert reasons(running().run_fails("CheckpointInfo is fine"))[0] == "failure_restart"
