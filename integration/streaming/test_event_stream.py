"""What the driver holds back for the policy process, and for how long."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from integration.streaming.bare_jvm import bare_jvm
from integration.streaming.waiting import eventually

pytestmark = pytest.mark.integration

LONGEST_MS = 20_000


def test_a_lesser_event_waits_a_moment_for_company_and_not_for_the_end_of_the_call() -> None:
    with bare_jvm() as jvm:
        stream = jvm.org.apache.spark.elastic.EventStream()
        taken: list[tuple[int, float]] = []

        def take() -> None:
            events = stream.take(LONGEST_MS).events().size()
            taken.append((events, time.monotonic()))

        waiting = threading.Thread(target=take)
        waiting.start()
        eventually(lambda: is_waiting(jvm), "somebody waits for events")
        offered = time.monotonic()
        stream.offer(jvm.org.apache.spark.elastic.QueryIdle("q", "r"))
        waiting.join()
        ((events, at),) = taken
    assert events == 1
    assert at - offered < LONGEST_MS / 1_000 / 4


def is_waiting(jvm: Any) -> bool:
    as_text = jvm.scala.runtime.ScalaRunTime.stringOf
    return any(
        "EventStream.take(" in as_text(stack) for stack in jvm.java.lang.Thread.getAllStackTraces().values()
    )
