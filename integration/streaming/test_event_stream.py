"""Tests of the events that the driver delays for the policy process, and of those it never sends."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from integration.streaming.bare_jvm import bare_jvm
from integration.streaming.driver import is_in
from integration.streaming.waiting import eventually

pytestmark = pytest.mark.integration

# Long compared with the delays of a busy machine.
LONGEST_MS = 120_000


@pytest.fixture(scope="module")
def jvm() -> Iterator[Any]:
    with bare_jvm() as started:
        yield started


def test_a_lesser_event_waits_a_moment_for_company_and_not_for_the_end_of_the_call(jvm: Any) -> None:
    stream = jvm.org.apache.spark.elastic.EventStream()
    taken: list[tuple[int, float]] = []

    def take() -> None:
        events = stream.take(LONGEST_MS).events().size()
        taken.append((events, time.monotonic()))

    waiting = threading.Thread(target=take)
    waiting.start()
    eventually(lambda: is_in(jvm, "EventStream.take"), "somebody waits for events")
    offered = time.monotonic()
    stream.offer(jvm.org.apache.spark.elastic.ExecutorUsage("1", 0, 0))
    waiting.join()
    ((events, at),) = taken
    assert events == 1
    assert at - offered < LONGEST_MS / 1_000 / 4


@pytest.mark.parametrize(
    ("told", "now", "worth"),
    [
        (None, 0, True),
        (0, 0, False),
        (0, 1, True),
        (1_000, 1_250, False),
        (1_000, 1_251, True),
        (1_000, 750, False),
        (1_000, 749, True),
    ],
)
def test_what_an_executor_holds_is_told_when_it_is_another_amount(
    jvm: Any, told: int | None, now: int, worth: bool
) -> None:
    def usage(held: int) -> Any:
        return jvm.org.apache.spark.elastic.ExecutorUsage("1", held // 2, held - held // 2)

    before = jvm.scala.Option.apply(None if told is None else usage(told))
    assert jvm.org.apache.spark.elastic.ExecutorControl.isWorthTelling(before, usage(now)) is worth
