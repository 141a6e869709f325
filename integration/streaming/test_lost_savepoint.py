"""Tests that a savepoint is taken again if the policy process that ordered it died before its outcome."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from integration.streaming.driver import Driver, is_in, policies_of
from integration.streaming.files import Inbox
from integration.streaming.http import Client
from integration.streaming.launch import WITH_PLUGIN
from integration.streaming.test_storage_away import STORAGE, Storage
from integration.streaming.test_storage_away import jvm as jvm
from integration.streaming.test_storage_away import storage as storage
from integration.streaming.waiting import eventually
from integration.streaming.world import totals

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

SLOW_MS = 3_000


def test_who_waits_for_a_savepoint_gets_one_though_the_policy_has_died_meanwhile(
    jvm: Driver, storage: Storage, inbox: Inbox, tmp_path: Path
) -> None:
    conf = {
        **WITH_PLUGIN,
        **STORAGE,
        "spark.ui.enabled": "true",
        "spark.elastic.journal.dir": str(tmp_path / "journal"),
        "spark.elastic.savepointDir": storage.place("savepoints"),
    }
    with jvm.session(conf) as spark:
        inbox.put()
        query = totals(spark, inbox).writeStream.format("noop").outputMode("update").start()
        query.processAllAvailable()
        api = Client(str(spark.sparkContext.uiWebUrl), "/elastic/api/v1")
        path = f"/queries/{query.id}/savepoints"

        def taken() -> list[Any]:
            reply = api.get(path)
            return list(reply.json["savepoints"]) if reply.status == 200 else []

        eventually(lambda: api.get(path).status == 200, "the policy knows the query")
        (policy,) = policies_of(jvm.pid)
        with storage.slow(SLOW_MS, operation="create"):
            assert api.put(path, {}).status == 202
            eventually(lambda: is_in(jvm.jvm, "AwayStorage.create"), "the copy is under way")
            policy.send_signal(signal.SIGSTOP)
        # The process never reads the outcome.
        eventually(lambda: list(storage.folder("savepoints").glob("savepoint-*")), "the copy is complete")
        policy.kill()
        eventually(taken, "a savepoint is listed")
        reasons = [made["reason"] for made in api.get(f"/decisions?query={query.id}").json["decisions"]]
        assert "saving_again" in reasons
        query.stop()
