"""Tests of a policy's plan for a query, in words."""

from __future__ import annotations

from typing import Any

from spark_elastic_tools.live import in_a_line, in_full

MODEL = {"fixedMs": 100.0, "rowUs": 1_250.4, "confidence": 0.82, "points": None}
OBJECTIVE = {"load": 0.8, "loadBand": 0.1, "intervalMs": 5_000, "maxLagMs": 30_000, "catchUpMs": 600_000}
POLICY: dict[str, Any] = {
    "name": "autoscale",
    "wantedSlots": 6,
    "allowedSlots": 6,
    "reason": "autoscale_up",
    "message": "So it is.",
    "until": None,
    "objective": OBJECTIVE,
    "load": 1.99,
    "rowsPerSecond": 4_000.0,
    "model": MODEL,
    "backlog": None,
    "mostRows": None,
}
UNKNOWN = {"objective": None, "load": None, "rowsPerSecond": None, "model": None, "backlog": None}
BACKLOG = {"rows": 60_000, "withinMs": 600_000, "goneInMs": 90_000}


def test_a_line_has_slots_load_and_rate() -> None:
    assert in_a_line(POLICY, 6) == "6 slots wanted, 6 granted, load 199 % of 80 %, 4,000 rows/s arrive"


def test_a_limit_and_advice_are_said() -> None:
    assert in_a_line({**POLICY, "allowedSlots": 4}, 4).startswith(
        "6 slots wanted, 4 granted, limits allow 4,"
    )
    assert in_a_line(POLICY, None).startswith("6 slots wanted, advice only, load")


def test_what_is_not_known_yet_is_left_out() -> None:
    measuring = {**POLICY, **UNKNOWN, "wantedSlots": 1, "allowedSlots": 1}
    assert in_a_line(measuring, 1) == "1 slot wanted, 1 granted"
    assert list(in_full(measuring, 1)) == ["1 slot wanted, 1 granted: So it is. [autoscale_up]"]


def test_a_backlog_has_its_forecast() -> None:
    assert in_a_line({**POLICY, "backlog": BACKLOG}, 6).endswith("60,000 rows behind, gone in 1.5 min")
    never = {**POLICY, "backlog": {**BACKLOG, "goneInMs": None}}
    assert list(in_full(never, 6))[-1] == (
        "60,000 rows behind, never gone with these slots, wanted within 10 min"
    )


def test_a_limit_of_what_is_read_is_said() -> None:
    limited = {**POLICY, "mostRows": 48_000}
    assert list(in_full(limited, 6))[-1] == "reads at most 48,000 rows with one micro-batch"


def test_in_full_it_says_why_the_objective_and_the_model() -> None:
    assert list(in_full(POLICY, 6)) == [
        "6 slots wanted, 6 granted: So it is. [autoscale_up]",
        "aims at a load of 80 %, 90 % before scaling up, at most 30 s behind; "
        "it is 199 %, 4,000 rows/s arrive",
        "a micro-batch takes 100 ms + 1,250 µs for each row ÷ slots, confidence 82 %",
    ]
