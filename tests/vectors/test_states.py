"""Tests that the state machine's adapter distinguishes refused transitions from errors of its own."""

from __future__ import annotations

import pytest

from tests.vectors.adapters.states import Outcome, state_machine


@pytest.mark.parametrize("event", ["graph_creation_failed", "savepoint ok"])
def test_an_assertion_that_fails_in_the_adapter_is_no_answer_of_the_machine(event: str) -> None:
    # No order was given that could fail, and no savepoint that could be taken.
    with pytest.raises(AssertionError):
        state_machine({"state": "Executing", "event": event, "condition": None})


@pytest.mark.parametrize(
    ("state", "event", "condition"),
    [
        ("Executing", "enter", "graph not RUNNING"),
        ("any", "transition into the same state class", None),
    ],
)
def test_what_the_machine_refuses_is_illegal(state: str, event: str, condition: str | None) -> None:
    found = state_machine({"state": state, "event": event, "condition": condition})
    assert found == {"result": Outcome(illegal=True)}
