"""Tests that what users rely on stays as the last release had it: settings, REST API, metrics, policies."""

from __future__ import annotations

import json

from promises import FILE, broken, promises


def test_what_was_promised_stands() -> None:
    assert broken(json.loads(FILE.read_text()), promises()) == []


def test_a_promise_covers_each_subject() -> None:
    found = promises()
    assert found["settings"]["schedulerMode"] == "a choice"
    assert found["settings"]["schedulerMode reactive"] == "a value"
    assert found["rest"]["GET /queries"] == "200"
    assert found["metrics"]["slots"] == "gauge"
    assert found["policies"]["QueryWish.slots"]


def test_names_may_be_added_but_not_removed_or_changed() -> None:
    before = {"settings": {"a": "int", "b": "bool", "c": "text"}}
    now = {"settings": {"a": "int", "c": "int", "d": "text"}, "metrics": {"e": "gauge"}}
    assert broken(before, now) == ["settings: b is gone", "settings: c was text, is int"]
    assert broken(now, now) == []
