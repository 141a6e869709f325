"""Tests of questions about batch stages: answered outside the loop, journaled by it, and replayed."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from spark_elastic.core.batch.questions import InitialCount, Ranges
from spark_elastic.core.scheduler import Scheduler
from spark_elastic.gateway.stages import Stages
from spark_elastic.runtime.entries import Header, StageEntry, read_journal
from spark_elastic.runtime.journal import Journal
from spark_elastic.runtime.publisher import Publisher
from spark_elastic.runtime.replay import replay
from spark_elastic.settings import load
from tests.unit.http.world import API, world

GIB = 1 << 30


def count(expected: int = GIB, exchange: str = "1:a", **more: Any) -> dict[str, Any]:
    exchanges = [{"id": exchange, "bytes": expected, "most": expected, "source": "a"}]
    question = {"type": "InitialCount", "group": exchange, "planned": 200, "slots": 0, "exchanges": exchanges}
    return {"id": "h1", "questions": [{**question, **more}], "unanswered": 3, "last_us": 1200}


def scan(size: int = GIB, name: str = "1:t") -> dict[str, Any]:
    question = {"type": "SplitSize", "scan": name, "bytes": size, "planned": 8, "slots": 0}
    return {"id": "h3", "questions": [{**question, "smallest": 4 << 20, "largest": 128 << 20}]}


def ranges(*sizes: int, exchange: str = "1:a") -> dict[str, Any]:
    exchanges = [{"id": exchange, "bytes": list(sizes)}]
    question = {"type": "Ranges", "group": exchange, "slots": 0, "exchanges": exchanges}
    return {"id": "h2", "questions": [question]}


def only(answer: Mapping[str, Any]) -> dict[str, Any]:
    """Return the one answer to the one question."""
    (found,) = answer["answers"]
    assert isinstance(found, dict)
    return found


def test_the_slots_and_settings_are_those_of_now() -> None:
    with world() as running:
        stages = Stages(running.publisher)
        answer = stages.answer(count())
        assert answer["id"] == "h1"
        # 16 tasks of 64 MiB, with two partitions for each.
        found = only(answer)
        assert (found["partitions"], found["record"]["numbers"]["slots"]) == (32, 4)
    with world({"spark.elastic.batch.autoParallelism.maxParallelism": "5"}) as running:
        assert only(Stages(running.publisher).answer(count()))["partitions"] == 5


def test_who_only_wants_advice_has_nothing_changed_but_all_written_down() -> None:
    with world({"spark.elastic.adviseOnly": "true"}) as running:
        stages = Stages(running.publisher)
        assert only(stages.answer(count()))["partitions"] is None
        assert only(stages.answer(ranges(1, 2, 3)))["specs"] is None
        assert only(stages.answer(scan()))["tasks"] is None
        scanned, read, counted = running.publisher.stages.newest_first()
        assert counted.stage["answer"]["partitions"] == 32
        assert scanned.stage["answer"]["tasks"] == 8
        assert read.sizes is not None
        assert (read.sizes.of_tasks, read.sizes.count) == (True, 1)


def test_what_cannot_be_read_gets_an_empty_answer_and_the_next_is_answered(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with world() as running, caplog.at_level(logging.WARNING, "spark_elastic"):
        stages = Stages(running.publisher)
        assert stages.answer({"id": "h2"}) == {"id": "h2", "answers": []}
        (good,) = ranges(1, 2)["questions"]
        mixed = stages.answer({"id": "h1", "questions": [{"type": "Sizes"}, good, 7]})
        assert (mixed["answers"][0], mixed["answers"][2]) == ({}, {})
        assert mixed["answers"][1]["specs"]
        assert only(stages.answer(ranges(1, 2)))["specs"]
    assert Stages(Publisher()).answer(count()) == {"id": "h1", "answers": [{}]}
    assert "unknown question type 'Sizes'" in caplog.text
    assert "no list of questions" in caplog.text
    assert "a question is no object" in caplog.text


def test_warming_up_teaches_nothing_and_leaves_nothing_behind() -> None:
    with world() as running:
        stages = Stages(running.publisher)
        stages.warm_up()
        stages.answer(count(exchange="", exchanges=[]))
        stages.answer(scan(0, name=""))
        assert running.publisher.stages.newest_first() == ()


def test_what_is_kept_of_a_decision_that_was_written_down_has_no_lists(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with world({}, journal=lambda: Journal(path, settings=load({}), max_size=1 << 20)) as running:
        Stages(running.publisher).answer(ranges(*[64 << 20] * 500))
        (decided,) = running.publisher.stages.newest_first()
        sizes = decided.sizes
        running.shim.settle()
        assert len(json.dumps(decided.stage)) < 1_000
        assert decided.sizes == sizes
        assert sizes is not None
        assert sizes.count == 500
        (shown,) = running.get(f"{API}/stages").json["stages"]
        assert (shown["sizes"]["count"], shown["after"]) == (500, 500)
    (written,) = [entry.written for _, entry in read_journal(path) if isinstance(entry, StageEntry)]
    assert len(written["answer"]["specs"]) == 500


def test_the_journal_has_the_decisions_in_order_and_a_replay_makes_them_again(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with world({}, journal=lambda: Journal(path, settings=load({}), max_size=1 << 20)) as running:
        stages = Stages(running.publisher)
        first = only(stages.answer(count(4 * GIB)))
        stages.answer(ranges(*[1 << 20] * 64))
        # The stage wrote a 64th of the expected bytes, which is known the next time.
        second = only(stages.answer(count(4 * GIB, exchange="2:a", pinned=False)))
        assert second["partitions"] < first["partitions"]
        running.shim.settle()
    entries = [entry for _, entry in read_journal(path)]
    assert isinstance(entries[0], Header)
    asked = [entry.question for entry in entries if isinstance(entry, StageEntry)]
    groups = [question.group for question in asked if isinstance(question, InitialCount | Ranges)]
    assert groups == ["1:a", "1:a", "2:a"]
    result = replay(read_journal(path), Scheduler)
    assert (result.stages, result.difference) == (3, None)

    other = path.read_text().replace(f'"partitions":{second["partitions"]}', '"partitions":7')
    path.write_text(other)
    difference = replay(read_journal(path), Scheduler).difference
    assert difference is not None
    assert isinstance(difference.recorded, dict)
    assert difference.recorded["partitions"] == 7
    assert difference.replayed == second


def test_the_last_decisions_can_be_asked_for() -> None:
    with world() as running:
        assert running.get(f"{API}/stages").json == {"stages": [], "unanswered": 0}
        stages = Stages(running.publisher)
        stages.answer(ranges(1, 2))
        stages.answer(scan())
        stages.answer(count())
        shown = running.get(f"{API}/stages").json
    assert shown["unanswered"] == 3
    counted, scanned, read = shown["stages"]
    assert (scanned["question"], scanned["group"], scanned["before"]) == ("SplitSize", "1:t", 8)
    assert (counted["question"], counted["group"], counted["before"]) == ("InitialCount", "1:a", 200)
    assert read["reason"] == "ranges_balanced"
    assert json.dumps(shown)
