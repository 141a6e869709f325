"""Tests that a journal answers as the driver did."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from spark_elastic.core.scheduler import Scheduler
from spark_elastic.runtime.entries import EventEntry, StageEntry, StateEntry, Unreadable, parse_line
from spark_elastic.runtime.journal import Journal
from spark_elastic.settings import load
from spark_elastic_tools.client import Busy, Refused, UnknownQuery
from spark_elastic_tools.recorded import Recorded, recorded
from tests.unit.http.world import ADAPTIVE, API, ID, REQUIREMENTS, body, world
from tests.unit.tools.live.recorded import header, progress, read, snapshot, started, submitted


def state_after(*entries: EventEntry) -> StateEntry:
    scheduler = Scheduler(load(header().settings).core())
    for entry in entries:
        scheduler.handle(entry.event)
    return StateEntry(state=scheduler.save(), own_events=0, last_event="s9")


def test_a_journal_has_the_documents_of_the_driver_that_wrote_it(tmp_path: Path) -> None:
    conf = {**ADAPTIVE, "spark.elastic.journal.dir": str(tmp_path)}
    file = tmp_path / "app-1.jsonl"
    settings = load(conf)
    with world(
        conf,
        journal=lambda: Journal(file, application="app-1", settings=settings, max_size=1 << 20),
    ) as running:
        assert running.put(REQUIREMENTS, body(1, 2)).status == 200
        running.shim.settle()
        paths = ("/overview", "/queries", f"/queries/{ID}/rescales", "/decisions")
        wanted = {path: running.get(f"{API}{path}").json for path in paths}
    found = recorded(file)
    # A journal does not contain earlier policy processes, and a run that has ended cannot be changed.
    wanted["/overview"] |= {"policyRestarts": 0, "mayWrite": False}
    assert {path: found.get(path) for path in paths} == wanted


def test_what_is_not_there_fails_as_it_does_at_a_driver() -> None:
    found = read(header(), snapshot())
    with pytest.raises(UnknownQuery, match="no query has the id 'q'"):
        found.get("/queries/q")
    with pytest.raises(Refused, match="limit is '0'"):
        found.get("/decisions?limit=0")
    with pytest.raises(Busy):
        Recorded().get("/overview")


def test_each_run_of_the_policy_counts_and_goes_on_from_its_state() -> None:
    before = (snapshot(), submitted("lines"), started("lines"), progress("lines", 3, partitions=4))
    found = read(header(), *before)
    read(header(), state_after(*before), progress("lines", 4, partitions=4), to=found)
    assert found.get("/overview")["policyRestarts"] == 1
    (query,) = found.get("/queries")["queries"]
    assert query["lastBatch"]["batch"] == 4


def test_a_part_whose_beginning_is_gone_is_shown_from_its_state() -> None:
    state = state_after(snapshot(), submitted("lines"), started("lines"))
    found = read(header(part=4), state, progress("lines", 3, partitions=4))
    overview = found.get("/overview")
    assert overview["application"] == {"id": "app-1", "name": "app-1"}
    assert overview["slots"]["now"] == 4


def test_stages_are_those_that_were_decided() -> None:
    question = {"type": "Ranges", "group": "g", "exchanges": [{"id": "e", "bytes": [1, 2]}], "slots": 2}
    record = {"kind": "stage", "reason": "ranges_single", "message": "Reads.", "before": 2, "after": 1}
    line = {"at": 5, "question": question, "answer": {"record": {**record, "numbers": {}}}, "took_us": 7}
    entry = parse_line(json.dumps({"stage": {**line, "unanswered": 1, "last_us": 3}}))
    assert isinstance(entry, StageEntry)
    found = read(header(), snapshot(), entry)
    shown = found.get("/stages")
    assert shown["unanswered"] == 1
    assert [(stage["group"], stage["tookUs"], stage["message"]) for stage in shown["stages"]] == [
        ("g", 7, "Reads.")
    ]


def test_a_journal_of_another_version_or_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match=r"written by spark-elastic 0\.0\.1, this is"):
        read(header(version="0.0.1"))
    for content, words in (("", "has no events yet"), ("what?\n", "no line of a journal")):
        file = tmp_path / "journal"
        file.write_text(content)
        with pytest.raises(Refused, match=words):
            recorded(file)
