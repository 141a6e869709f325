"""The legal transitions of a query, as data: from, to, and when it happens in the world.

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
        WAITING_FOR_RESOURCES: ("The query was submitted, or a policy that started anew finds it held."),
        EXECUTING: "A policy that started anew finds the query running.",
        RESTARTING: "A policy that started anew finds a failed micro-batch, and lets the query try again.",
        FAILING: "A policy that started anew finds a failed query, and lets it end.",
    },
    WAITING_FOR_RESOURCES: {
        CREATING_EXECUTION_GRAPH: "There are enough slots, or the query has waited as long as it may.",
        EXECUTING: "The shim had no start in time and let the query run as it was.",
        RESTARTING: "A query that the shim had let run by itself has failed, and may try again.",
        FAILING: "A query that the shim had let run by itself has failed for good.",
        CANCELING: "Somebody wants the query to end.",
        FINISHED: "The application stopped the query while it was held.",
    },
    CREATING_EXECUTION_GRAPH: {
        EXECUTING: "The query runs, re-partitioned before if that was ordered.",
        WAITING_FOR_RESOURCES: "A policy that resumes finds the start lost, and too few slots.",
        RESTARTING: "The start has failed, and the restart strategy allows another attempt.",
        FAILING: (
            "The slots have stayed below the lower bounds for as long as the query may wait; or the start "
            "has failed for good."
        ),
        CANCELING: "Somebody wants the query to end.",
        FINISHED: "The query was stopped by the application.",
    },
    EXECUTING: {
        RESTARTING: (
            "Another partition count pays, and the state is to be moved at the next micro-batch boundary; or "
            "a micro-batch has failed, and the restart strategy allows another attempt."
        ),
        STOP_WITH_SAVEPOINT: "Somebody wants the query to end, and a savepoint of all that it has done.",
        FAILING: "The query has failed for good, or has had no executor for as long as it may.",
        CANCELING: "Somebody wants the query to end.",
        FINISHED: "The query came to its end, or was stopped by the application.",
    },
    STOP_WITH_SAVEPOINT: {
        EXECUTING: "The savepoint has failed: the query continues as before.",
        RESTARTING: "The query failed before it had stopped; its savepoint is through, and it tries again.",
        FAILING: "The query failed for good before it had stopped; its savepoint is through.",
        CANCELING: "Somebody wants the query to end, with a savepoint or without.",
        FINISHED: "The query has ended, with its savepoint or by its application.",
    },
    RESTARTING: {
        WAITING_FOR_RESOURCES: "The backoff after a failure is over.",
        EXECUTING: "The state is moved, or stays as it was; or the query was let run again.",
        FAILING: "The query has failed for good before the rescale was through.",
        CANCELING: "Somebody wants the query to end.",
        FINISHED: "The query ended or was stopped by the application before that was through.",
    },
    FAILING: {
        CANCELING: "Somebody wants the query to end before it has.",
        FINISHED: "The query has ended with its exception.",
    },
    CANCELING: {
        FINISHED: "The query has stopped.",
    },
    FINISHED: {},
}


class IllegalTransitionError(RuntimeError):
    """A transition outside the table, or inside another one: an error in this package."""
