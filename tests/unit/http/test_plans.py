"""Tests of what the API shows of a policy's plan for a query."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from spark_elastic.core import events as ev
from tests.unit.http.world import ADAPTIVE, API, COUNTS, ID, NOW, World, world

AUTOSCALE = {**ADAPTIVE, "spark.elastic.policy": "autoscale", "spark.elastic.autoscale.load": "0.8"}
EACH_SECOND = evolve(COUNTS, trigger_ms=1_000)


def batch(running: World, number: int, *, rows: int = 1_000, took: int = 600, **fields: Any) -> None:
    """Start a micro-batch every second, and let the policy decide about it."""
    started = NOW + 1_000 * number
    running.send(
        ev.QueryProgress, at=started + took, query=ID, run="r1", batch=number, started=started,
        duration_ms=took, input_rows=rows, partitions=4, **fields,
    )  # fmt: skip
    running.send(ev.ExecutorUsage, at=started + took, executor="1", cached_bytes=0, shuffle_bytes=0)


def shown(running: World) -> Any:
    return running.get(f"{API}/queries/{ID}").json["policy"]


def test_where_bounds_alone_count_there_is_none() -> None:
    with world(queries=(EACH_SECOND,)) as running:
        batch(running, 0)
        assert shown(running) is None


def test_before_a_rate_is_known_it_says_that_it_measures() -> None:
    with world(AUTOSCALE, queries=(EACH_SECOND,)) as running:
        policy = shown(running)
        assert (policy["name"], policy["reason"]) == ("autoscale", "autoscale_measuring")
        assert "until micro-batches have shown a rate" in policy["message"]
        assert policy["wantedSlots"] == policy["allowedSlots"] == 4
        for name in ("objective", "load", "rowsPerSecond", "model", "backlog"):
            assert policy[name] is None, name


def test_the_objective_the_line_and_its_points_are_shown() -> None:
    own = {"spark.elastic.autoscale.maxLag": "30s", "spark.elastic.autoscale.loadBand": "0.05"}
    with world({**AUTOSCALE, **own}, queries=(EACH_SECOND,)) as running:
        for number in range(6):
            batch(running, number, rows=1_000 + 200 * (number % 3), took=500 + 50 * (number % 3))
        policy = shown(running)
        assert policy["objective"] == {
            "load": 0.8, "loadBand": 0.05, "intervalMs": 1_000, "maxLagMs": 30_000, "catchUpMs": 600_000,
        }  # fmt: skip
        assert 1_000 <= policy["rowsPerSecond"] <= 1_500
        model, points = policy["model"], policy["model"]["points"]
        assert 0 < model["confidence"] <= 1
        assert {point["durationMs"] for point in points} == {500, 550, 600}
        for point in points:
            line = model["fixedMs"] + model["rowUs"] / 1_000 * point["rowsPerSlot"]
            assert abs(line - point["durationMs"]) <= 60
        assert policy["backlog"] is None


def test_a_list_of_queries_has_no_points() -> None:
    with world(AUTOSCALE, queries=(EACH_SECOND,)) as running:
        for number in range(3):
            batch(running, number)
        (listed,) = running.get(f"{API}/queries").json["queries"]
        assert listed["policy"]["model"]["points"] is None
        one = shown(running)
        assert len(one["model"]["points"]) == 3
        one["model"]["points"] = None
        assert one == listed["policy"]


def test_it_says_when_a_backlog_will_be_gone_and_when_never() -> None:
    with world(AUTOSCALE, queries=(EACH_SECOND,)) as running:
        for number in range(4):
            batch(running, number, took=200, records_behind=60_000 - 500 * number)
        backlog = shown(running)["backlog"]
        assert backlog["rows"] >= 58_500
        assert backlog["withinMs"] == 600_000
        assert backlog["goneInMs"] > 0
    with world(AUTOSCALE, queries=(EACH_SECOND,)) as running:
        for number in range(4):
            batch(running, number, took=1_000, records_behind=600_000 + 9_000 * number)
        assert shown(running)["backlog"]["goneInMs"] is None


def test_what_limits_keep_it_from_is_said() -> None:
    bounded = {"spark.elastic.query.counts.upperBound": "4"}
    with world({**AUTOSCALE, **bounded}, queries=(EACH_SECOND,)) as running:
        for number in range(4):
            batch(running, number, took=980)
        policy = shown(running)
        assert policy["wantedSlots"] > policy["allowedSlots"] == 4
        assert policy["message"].endswith("Bounds allow 4.")


def test_advice_is_shown_as_such() -> None:
    with world({**AUTOSCALE, "spark.elastic.adviseOnly": "true"}, queries=(EACH_SECOND,)) as running:
        for number in range(4):
            batch(running, number, rows=4_000, took=3_000)
        query = running.get(f"{API}/queries/{ID}").json
        assert query["grantedSlots"] is None
        assert query["policy"]["wantedSlots"] > 4
        assert query["policy"]["message"].endswith("nothing is changed.")
