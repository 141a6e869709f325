"""Where we differ from the vectors on purpose: group, the field of the vector, and why.

`given` limits an entry to vectors that have this input field (or this value of it), `where` to those whose
input it is true of. A vector of which no expected field is left is skipped with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import frozen


@frozen
class Difference:
    """One way in which we are different."""

    group: str
    field: str
    why: str
    given: str | None = None
    unless: Any = None
    where: Callable[[Mapping[str, Any]], bool] = lambda _given: True

    def covers(self, group: str, given: Mapping[str, Any], field: str) -> bool:
        """Say whether an expected field of a vector is meant."""
        if (group, field) != (self.group, self.field) or not self.where(given):
            return False
        return self.given is None or (self.given in given and given[self.given] != self.unless)


def _loses_all_taskmanagers(given: Mapping[str, Any]) -> bool:
    lost = given["events"].count("lose TaskManager") - given["events"].count("add TaskManager")
    return bool(lost >= given.get("taskmanagers", 2))


PLACEMENT = "which slot a task gets is the choice of Spark's own task scheduler"
REST = "there is no server yet that answers requests: bounds come from the policy file"

DIFFERENCES = (
    Difference(
        "reactive_parallelism_store",
        "can_rescale_max",
        "maxParallelism is read when the policy starts; nothing changes it while a query runs",
    ),
    Difference(
        "default_max_parallelism",
        "key_group_ranges",
        "Spark has no key groups: a key's partition is its hash modulo the number of partitions",
    ),
    Difference(
        "rescale_history",
        "newest_reason",
        "a query that has lost all its executors waits for others, as in plain Spark: it does not fail",
        where=_loses_all_taskmanagers,
    ),
    Difference("resource_requirements_validation", "status", REST),
    Difference("resource_requirements_validation", "applied", REST),
    Difference("resource_requirements_validation", "error", REST),
    Difference("resource_requirements_validation", "both_accepted", REST),
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
        "state_transition_timing",
        "triggers_after_each_event",
        "a micro-batch that fails ends the run of its query: there is nothing to count",
    ),
    Difference(
        "state_transition_timing",
        "max_delay_ms",
        "the longest delay is three trigger intervals; the number of failures is no setting",
        given="max_checkpoint_failures",
        unless=2,
    ),
)


def differs(group: str, given: Mapping[str, Any], field: str) -> Difference | None:
    """Find the entry that covers an expected field."""
    return next((entry for entry in DIFFERENCES if entry.covers(group, given, field)), None)
