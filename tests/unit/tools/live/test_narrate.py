"""Tests of the narration of a running application, line by line."""

from __future__ import annotations

from spark_elastic.core import events as ev
from spark_elastic_tools.live import Look, Narrator, brief
from tests.unit.tools.live.recorded import event, header, progress, read, snapshot, started, submitted


def test_each_change_is_told_once() -> None:
    recorded = read(header(), snapshot(executors=1), submitted("lines"))
    read(
        started("lines", 2),
        progress("lines", 0, partitions=2),
        progress("lines", 1, partitions=2),
        to=recorded,
    )
    look, narrator = Look(recorded, past=100), Narrator()
    first = narrator.lines(look.take())
    assert first[0] == "executor 0 registered; slots: 2"
    assert first[1].startswith("lines: Start with 2 partitions on 2 slots")
    assert first[1].endswith("[start_per_slot]")
    assert first[-1] == "lines: runs with 2 partitions"
    assert narrator.lines(look.take()) == []

    read(event(ev.ExecutorAdded, executor="1", host="h", cores=2), to=recorded)
    second = narrator.lines(look.take())
    assert second[0] == "executor 1 registered; slots: 4"
    assert [line.rpartition("[")[2] for line in second[1:]] == ["in_place]"]

    read(event(ev.ExecutorExcluded, executor="0", reason="2 tasks failed on it"), to=recorded)
    assert narrator.lines(look.take())[0] == "executor 0 is excluded (2 tasks failed on it); slots: 2"
    read(event(ev.ExecutorUnexcluded, executor="0"), to=recorded)
    assert narrator.lines(look.take())[0] == "executor 0 is no longer excluded; slots: 4"

    read(event(ev.ExecutorDecommissioning, executor="0"), to=recorded)
    assert narrator.lines(look.take())[0] == "executor 0 takes no new tasks; slots: 2"
    read(event(ev.ExecutorRemoved, executor="0", reason="gone"), to=recorded)
    assert narrator.lines(look.take()) == ["executor 0 is gone; slots: 2"]

    failed = event(
        ev.QueryTerminated, query="lines", run="run-1", error="x / 0", error_class="DIVIDE_BY_ZERO"
    )
    read(failed, to=recorded)
    (last,) = narrator.lines(look.take())
    assert last == "lines: Failed: [DIVIDE_BY_ZERO] x / 0 [query_failed]"


def test_another_policy_process_begins_its_decisions_anew() -> None:
    recorded = read(header(), snapshot(), submitted("lines"))
    look = Look(recorded, past=100)
    before = look.take().news
    assert [decision["number"] for decision in before] == list(range(1, len(before) + 1))
    read(header(), snapshot(), submitted("lines"), to=recorded)
    news = look.take().news
    assert news[-len(before) :] != ()
    assert news[-1]["number"] == before[-1]["number"]
    assert look.take().news == ()


def test_of_a_long_message_the_beginning_is_told() -> None:
    assert brief("first\nsecond") == "first"
    assert len(brief("x" * 1000)) == 240
