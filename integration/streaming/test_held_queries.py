"""Tests that a held query waits neither for a policy that has ended nor for a context that is ending."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from integration.streaming.driver import PLUGIN, Driver
from integration.streaming.files import SCHEMA, Inbox
from integration.streaming.stand_ins import ScriptedPolicy
from integration.streaming.waiting import eventually
from integration.streaming.world import own_world, stream

pytestmark = [pytest.mark.integration, pytest.mark.timeout(240)]


def test_a_query_that_waits_for_its_start_ends_with_its_context(
    jvm: Driver, inbox: Inbox, tmp_path: Path
) -> None:
    since = len(jvm.said())
    policy = ScriptedPolicy(tmp_path / "policy")
    policy.order(hold=True)
    with jvm.session({**PLUGIN, "spark.elastic.python": policy.python}) as spark:
        rows = spark.readStream.schema(SCHEMA).json(str(inbox.folder))
        query = rows.writeStream.format("noop").start()
        eventually(lambda: query.status["message"] == "Is told to wait.", "it is held")
        handle = query._jsq
    # Its own thread ends it at the next check after the context has begun to stop.
    eventually(lambda: not handle.isActive(), "it has ended")
    assert handle.exception().isEmpty()
    assert not [
        line for line in jvm.said()[since:] if "no answer from the policy" in line or " ERROR " in line
    ]


def test_a_query_that_is_held_starts_once_the_policy_is_given_up(
    jvm: Driver, inbox: Inbox, tmp_path: Path
) -> None:
    since = len(jvm.said())
    with own_world(jvm, tmp_path) as world:
        world.policy.order(hold=True)
        inbox.put()
        query = stream(world.spark, inbox).writeStream.format("noop").start()
        eventually(lambda: query.status["message"] == "Is told to wait.", "it is held")

        def is_given_up() -> bool:
            for stand_in in psutil.Process(jvm.pid).children():
                with suppress(psutil.NoSuchProcess):
                    stand_in.kill()
            return any("off, the application continues" in line for line in jvm.said()[since:])

        eventually(is_given_up, "the policy is given up")
        query.processAllAvailable()
        assert query.lastProgress is not None
        query.stop()
