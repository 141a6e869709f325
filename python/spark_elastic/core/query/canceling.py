"""Canceling: somebody other than the application has asked for the end of the query."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from attrs import define

from spark_elastic.core import events as ev
from spark_elastic.core.query.ending import Ending
from spark_elastic.core.query.state import Reactions
from spark_elastic.core.query.transitions import CANCELING

if TYPE_CHECKING:
    from spark_elastic.core.query.step import Step


@define(kw_only=True)
class Canceling(Ending):
    """A query that is stopping for good."""

    name: ClassVar[str] = CANCELING

    def enter(self, step: Step) -> None:
        """Order the stop."""
        step.stop_for_good()

    def finish_as_canceled(self, event: ev.QueryTerminated, step: Step) -> None:
        """Take the end for what was asked for, however it came about."""
        step.end("canceled", "job_canceled")

    reactions: ClassVar[Reactions] = {
        **Ending.reactions,
        ev.QueryStarted: "it is stopped all the same",
        ev.CancelRequested: "it was asked for already",
        ev.QueryTerminated: finish_as_canceled,
    }
