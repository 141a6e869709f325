"""Created: the query is known, nothing is decided yet. Left at once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from attrs import define

from spark_elastic.core.events import Event, Failure
from spark_elastic.core.query.context import Context
from spark_elastic.core.query.state import State
from spark_elastic.core.query.transitions import CREATED


@define(kw_only=True)
class Created(State):
    """A query that was submitted, or that a snapshot has shown, with the failure of its last run if any."""

    name: ClassVar[str] = CREATED
    handles: ClassVar[frozenset[type[Event]]] = frozenset()
    ignores: ClassVar[Mapping[type[Event], str]] = {}

    failure: Failure | None = None

    def enter(self, context: Context) -> None:
        """Go where the query is: one that runs is adopted as it is, any other one waits for its start."""
        if context.record.gate == "running":
            context.report("adopted", before=context.record.partitions)
            context.execute()
        elif self.failure is not None:
            context.run_failed(self.failure)
        else:
            context.open_rescale("initial_schedule")
            context.wait_for_resources()

    def resources_changed(self, context: Context) -> None:
        """Leave it out: the slots are looked at when the query is started."""

    def on(self, event: Event, context: Context) -> None:
        """React to nothing: no event finds a query in this state."""
