"""Created: the query is known, nothing is decided yet. Left at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from attrs import define

from spark_elastic.core import events as ev
from spark_elastic.core.query import internal_events as inner
from spark_elastic.core.query.state import Reactions, State
from spark_elastic.core.query.transitions import CREATED

if TYPE_CHECKING:
    from spark_elastic.core.query.step import Step


@define(kw_only=True)
class Created(State):
    """A query that was submitted, or that a snapshot has shown, with the failure of its last run if any."""

    name: ClassVar[str] = CREATED

    failure: ev.Failure | None = None

    def enter(self, step: Step) -> None:
        """Go where the query is: one that runs is adopted as it is, any other one waits for its start."""
        if step.record.run_state == "running":
            step.report("adopted", before=step.record.partitions)
            step.execute()
        elif self.failure is not None:
            step.run_failed(self.failure)
        else:
            step.open_rescale("initial_schedule")
            step.wait_for_resources()

    def begin(self, event: inner.Begun, step: Step) -> None:
        """Leave at once."""
        self.enter(step)

    reactions: ClassVar[Reactions] = {inner.Begun: begin}
