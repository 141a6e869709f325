"""Tests of what the API shows of a query's own settings, and what it refuses because of them."""

from __future__ import annotations

import pytest

from tests.unit.http.world import ADAPTIVE, API, ID, REQUIREMENTS, body, world

MODE = "spark.elastic.query.counts.schedulerMode"


def test_a_query_shows_its_mode_and_the_settings_in_which_it_differs() -> None:
    own = {"spark.elastic.query.co*.maxParallelism": "9"}
    with world({**ADAPTIVE, **own}) as running:
        shown = running.get(f"{API}/queries/{ID}").json
        assert (shown["mode"], shown["settings"]) == ("adaptive", {"maxParallelism": "9"})
        assert shown["requirements"] == body(1, 9)
        # An upper bound must not exceed the query's max parallelism, which -1 stands for.
        reply = running.put(REQUIREMENTS, body(1, 10))
        assert reply.status == 400
        assert "allowed is up to its max parallelism, 9" in reply.errors
        assert running.put(REQUIREMENTS, body(2, -1)).status == 200
        assert running.get(REQUIREMENTS).json == body(2, 9)


@pytest.mark.parametrize(
    ("mode", "why"), [("reactive", "it uses all slots that are there"), ("off", "it is left to Spark")]
)
def test_the_bounds_of_a_query_that_is_not_in_adaptive_mode_can_only_be_read(mode: str, why: str) -> None:
    with world({**ADAPTIVE, MODE: mode}) as running:
        assert running.get(f"{API}/queries/{ID}").json["mode"] == mode
        reply = running.put(REQUIREMENTS, body(1, 2))
        assert reply.status == 409
        assert f"the schedulerMode of this query is {mode}: {why}" in reply.errors
        assert f"set {MODE}=adaptive" in reply.errors
        assert running.get(REQUIREMENTS).json == body(1, 32_768)


def test_an_adaptive_query_of_a_reactive_application_takes_bounds() -> None:
    with world({MODE: "adaptive"}) as running:
        assert running.put(REQUIREMENTS, body(1, 2)).status == 200
        assert running.get(REQUIREMENTS).json == body(1, 2)
