"""Tests of how advice is compared with what came of it."""

from __future__ import annotations

from typing import Any

import pytest

from integration.bench.advise import compared, summary


def advice(batch_ms: float, hours: float, executor_hours: float, predicted_ms: float = 0) -> dict[str, Any]:
    query = {"name": "counts", "medianMs": batch_ms, "partitions": 3, "batches": 40}
    outcome = {
        "policy": "reactive",
        "executorHours": executor_hours,
        "medianBatchMs": {"counts": predicted_ms},
    }
    return {
        "queries": [query],
        "hours": hours,
        "executorHours": executor_hours,
        "whatIf": {"outcomes": [{"policy": "recorded"}, outcome]},
    }


def test_errors_are_shares_of_what_was_measured() -> None:
    found = compared(advice(6_000, 0.5, 1.5, predicted_ms=440), advice(400, 0.2, 0.5))
    assert found["error_percent"]["batch"] == pytest.approx(10)
    # 3 executors on average, and 2.5.
    assert found["error_percent"]["executor_hours"] == pytest.approx(20)
    other = {"error_percent": {"batch": 20, "executor_hours": 0}}
    assert summary({"a": found, "b": other})["mean_error_percent"] == pytest.approx(
        {"batch": 15, "executor_hours": 10}
    )
