"""Failing: what has happened cannot be repaired by another start, the query ends with its exception."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from attrs import define

from spark_elastic.core import events as ev
from spark_elastic.core.query.ending import Ending
from spark_elastic.core.query.state import Reactions
from spark_elastic.core.query.transitions import FAILING

if TYPE_CHECKING:
    from spark_elastic.core.query.step import Step


@define(kw_only=True)
class Failing(Ending):
    """A query that is ending: `message` says why where its run has no exception of its own."""

    name: ClassVar[str] = FAILING

    message: str | None = None

    def enter(self, step: Step) -> None:
        """Order the end."""
        step.end_failed(self.message)

    def cancel_the_run(self, event: ev.QueryStarted, step: Step) -> None:
        """End it all the same: the shim had no answer in time and let it run as plain Spark."""
        step.started(event)
        step.cancel("spark-elastic")

    reactions: ClassVar[Reactions] = {**Ending.reactions, ev.QueryStarted: cancel_the_run}
