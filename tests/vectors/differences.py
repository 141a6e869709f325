"""Deliberate differences from the vectors: group, field, and reason.

`only` limits an entry to vectors with these input values, `where` to those whose input meets a condition. A
vector with no expected field left is skipped with the reason.

The vectors about batch stages are run with the preset `flink`. Differences of our own preset are listed in
tests/unit/core/batch/test_presets.py, vector by vector.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs
from attrs import frozen


@frozen
class Difference:
    """One deliberate difference."""

    group: str
    field: str
    why: str
    only: Mapping[str, Any] = attrs.field(factory=dict)
    where: Callable[[Mapping[str, Any]], bool] = lambda _given: True

    def covers(self, group: str, given: Mapping[str, Any], field: str) -> bool:
        """Return whether an expected field of a vector is covered."""
        same = (group, field) == (self.group, self.field) and self.where(given)
        return same and all(given.get(name) == value for name, value in self.only.items())


def _loses_all_taskmanagers(given: Mapping[str, Any]) -> bool:
    lost = given["events"].count("lose TaskManager") - given["events"].count("add TaskManager")
    return bool(lost >= given.get("taskmanagers", 2))


PLACEMENT = "which slot a task gets is the choice of Spark's own task scheduler"
POWERS = "Flink 1.15 and 1.16 rounded to powers of two; later versions, whose rules these are, don't"
WIDTH = "Flink 1.17 to 1.20 limited the subpartitions of a task; later versions, whose rules these are, don't"
STAGES = "Spark itself decides when a stage is planned: as soon as all that it reads has been written"

DIFFERENCES = (
    Difference("batch_parallelism_decision", "parallelism", POWERS, only={"algorithm": "power_of_two_1.15"}),
    Difference("batch_parallelism_decision", "min", POWERS, only={"algorithm": "power_of_two_1.15"}),
    Difference("batch_parallelism_decision", "max", POWERS, only={"algorithm": "power_of_two_1.15"}),
    Difference(
        "batch_parallelism_decision",
        "parallelism",
        WIDTH,
        only={"algorithm": "1.17-1.20 with 32768 subpartitions per task"},
    ),
    Difference("batch_parallelism_decision", "sink_parallelism_after_first_source", STAGES),
    Difference("batch_parallelism_decision", "sink_parallelism_after_both", STAGES),
    Difference("batch_parallelism_decision", "sink_initialised_at_start", STAGES),
    Difference(
        "rescale_history",
        "newest_reason",
        "a query that has lost all its executors waits for others, as in plain Spark: it does not fail",
        where=_loses_all_taskmanagers,
    ),
    Difference(
        "rescale_scenarios",
        "numRestarts",
        "a rescale starts nothing again: only starts after failures are counted",
    ),
    Difference("slot_allocation", "reserved", PLACEMENT),
    Difference("slot_allocation", "alloc1_contains", PLACEMENT),
    Difference("slot_allocation", "alloc2_contains", PLACEMENT),
    Difference("slot_allocation", "by_subtask", PLACEMENT),
    Difference("slot_allocation", "assigned", PLACEMENT),
    Difference("slot_allocation", "must_include", PLACEMENT),
    Difference("slot_allocation", "used", PLACEMENT),
    Difference("slot_allocation", "taskmanagers", PLACEMENT),
    Difference("slot_allocation", "tasks_per_slot_sorted", PLACEMENT),
    Difference(
        "state_machine",
        "result",
        "the policy ends with its driver: there is no leader to lose, so nothing is suspended",
        only={"event": "suspend"},
    ),
    Difference(
        "state_machine",
        "result",
        "a task that cannot be deployed is Spark's own matter until its query fails",
        only={"event": "deployment_failure"},
    ),
    Difference(
        "state_machine",
        "result",
        "a rescale cancels nothing: the state is moved between two micro-batches of the same run",
        only={"state": "Restarting", "event": "enter"},
    ),
    Difference(
        "state_machine",
        "result",
        "a query that is to be rescaled runs on to its boundary, and until then it can fail like any other",
        only={"state": "Restarting", "event": "global_failure"},
    ),
    Difference(
        "state_machine",
        "result",
        "the query ends where its savepoint is taken: nothing is left that could fail",
        only={"event": "task failure after savepoint completed"},
    ),
)


def differs(group: str, given: Mapping[str, Any], field: str) -> Difference | None:
    """Return the entry that covers an expected field."""
    return next((entry for entry in DIFFERENCES if entry.covers(group, given, field)), None)
