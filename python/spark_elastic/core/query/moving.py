"""What the states have in common in which a query's state may be moved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import define

from spark_elastic.core.query.state import State
from spark_elastic.core.rescale.concurrency import PATIENCE_MS

if TYPE_CHECKING:
    from spark_elastic.core.query.step import Step


@define(kw_only=True)
class Moving(State):
    """A query whose state may be moved: it counts as one of those at once until `moving_until`.

    That is an epoch time in ms, None if nothing is moved, or if it no longer counts.
    """

    moving_until: int | None = None

    @property
    def due(self) -> int | None:
        """The time after which others no longer wait for this move."""
        return self.moving_until

    def due_reached(self, step: Step) -> None:
        """Let others begin: the outcome may be as far as the end of a micro-batch."""
        self.moving_until = None
        record = step.record
        if record.target != record.partitions:  # else it was called off
            numbers = {"patience_ms": PATIENCE_MS}
            step.report("rescale_unfinished", before=record.partitions, after=record.target, numbers=numbers)
