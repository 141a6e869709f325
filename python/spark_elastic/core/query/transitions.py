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
RESTARTING = "Restarting"
FINISHED = "Finished"

TRANSITIONS: Mapping[str, Mapping[str, str]] = {
    CREATED: {
        WAITING_FOR_RESOURCES: (
            "The query was submitted, or a policy that started anew finds it held or stopped."
        ),
        EXECUTING: "A policy that started anew finds the query running.",
    },
    WAITING_FOR_RESOURCES: {
        CREATING_EXECUTION_GRAPH: "There are enough slots, or the query has waited as long as it may.",
        EXECUTING: "The shim had no start in time and let the query run as it was.",
        FINISHED: "The application stopped the query while it was held.",
    },
    CREATING_EXECUTION_GRAPH: {
        EXECUTING: "The query has passed the gate, re-partitioned before if that was ordered.",
        FINISHED: "The query could not be started, or was stopped by the application.",
    },
    EXECUTING: {
        RESTARTING: (
            "Another partition count pays, and the query is to stop at the next micro-batch boundary."
        ),
        FINISHED: "The query came to its end, failed, or was stopped by the application.",
    },
    RESTARTING: {
        CREATING_EXECUTION_GRAPH: "The query has stopped, and the slots still call for the planned count.",
        WAITING_FOR_RESOURCES: "The query has stopped, and meanwhile the slots have changed.",
        EXECUTING: "The query could not be stopped, or was let run again: it runs as before.",
        FINISHED: (
            "The query ended, failed or was stopped by the application before the restart was through."
        ),
    },
    FINISHED: {},
}


class IllegalTransitionError(RuntimeError):
    """A transition outside the table, or inside another one: an error in this package."""
