"""The legal transitions of a query, as data: from, to, and the event in the world that leads to each.

The tests enumerate this table, the documentation's diagram is drawn from it, and the machine refuses
everything else.
"""

from __future__ import annotations

from collections.abc import Mapping

CREATED = "Created"
WAITING_FOR_RESOURCES = "WaitingForResources"
CREATING_EXECUTION_GRAPH = "CreatingExecutionGraph"
EXECUTING = "Executing"
STOP_WITH_SAVEPOINT = "StopWithSavepoint"
RESTARTING = "Restarting"
FAILING = "Failing"
CANCELING = "Canceling"
FINISHED = "Finished"

TRANSITIONS: Mapping[str, Mapping[str, str]] = {
    CREATED: {
        WAITING_FOR_RESOURCES: "The query was submitted, or a new policy process finds it held.",
        EXECUTING: "A new policy process finds the query running.",
        RESTARTING: "A new policy process finds a failed micro-batch and lets the query retry it.",
        FAILING: "A new policy process finds a failed query and lets it end.",
    },
    WAITING_FOR_RESOURCES: {
        CREATING_EXECUTION_GRAPH: "There are enough slots, or the query has waited as long as allowed.",
        EXECUTING: "The shim had no answer in time and let the query run unchanged.",
        RESTARTING: "A query that the shim started without an answer has failed, and may retry.",
        FAILING: "A query that the shim started without an answer has failed permanently.",
        CANCELING: "A stop was requested.",
        FINISHED: "The application stopped the query while it was held.",
    },
    CREATING_EXECUTION_GRAPH: {
        EXECUTING: "The query runs, with its state re-partitioned if that was ordered.",
        WAITING_FOR_RESOURCES: "A resuming policy finds the start lost and too few slots.",
        RESTARTING: "The start failed, and the restart strategy allows another attempt.",
        FAILING: (
            "The slots stayed below the lower bounds for as long as the query may wait, or the start failed "
            "permanently."
        ),
        CANCELING: "A stop was requested.",
        FINISHED: "The query was stopped by the application.",
    },
    EXECUTING: {
        RESTARTING: (
            "The state is moved at the next micro-batch boundary, or switched over to its copy, because "
            "another partition count pays; or a micro-batch failed, and the restart strategy allows another "
            "attempt."
        ),
        STOP_WITH_SAVEPOINT: "A stop with a savepoint was requested.",
        FAILING: "The query failed permanently, or had no executor for as long as allowed.",
        CANCELING: "A stop was requested.",
        FINISHED: "The query ended, or the application stopped it.",
    },
    STOP_WITH_SAVEPOINT: {
        EXECUTING: "The savepoint failed: the query continues as before.",
        RESTARTING: "The query failed before it stopped; its savepoint is done, and it retries.",
        FAILING: "The query failed permanently before it stopped; its savepoint is done.",
        CANCELING: "Another stop was requested, with or without a savepoint.",
        FINISHED: "The query ended with its savepoint, or the application stopped it.",
    },
    RESTARTING: {
        WAITING_FOR_RESOURCES: "The backoff after a failure is over.",
        EXECUTING: "The state was moved or stayed as it was, or the query may run again.",
        FAILING: "The query failed permanently before the rescale was done.",
        CANCELING: "A stop was requested.",
        FINISHED: "The query ended, or the application stopped it, before the rescale was done.",
    },
    FAILING: {
        CANCELING: "A stop was requested before the query ended.",
        FINISHED: "The query ended with its exception.",
    },
    CANCELING: {
        FINISHED: "The query has stopped.",
    },
    FINISHED: {},
}


class IllegalTransitionError(RuntimeError):
    """A transition outside the table, or inside another one: a bug in this package."""
