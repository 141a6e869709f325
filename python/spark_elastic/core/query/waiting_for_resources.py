"""WaitingForResources: the query waits, at its start or after a failure, until there are enough slots."""

from __future__ import annotations

from typing import ClassVar

from attrs import define

from spark_elastic.core import events as ev
from spark_elastic.core.query import internal_events as inner
from spark_elastic.core.query.record import QueryRecord, Reactions
from spark_elastic.core.query.states import QueryState
from spark_elastic.core.query.step import Step
from spark_elastic.core.reasons.catalogue import LIMIT, NO_LIMIT
from spark_elastic.core.reasons.reason import fill
from spark_elastic.core.rescale.transition_manager import TransitionManager
from spark_elastic.core.transitions import WAITING_FOR_RESOURCES


@define(kw_only=True)
class WaitingForResources(QueryState):
    """A query that has not been started; `deadline` is when its wait ends (epoch ms), None for no limit."""

    name: ClassVar[str] = WAITING_FOR_RESOURCES

    deadline: int | None
    manager: TransitionManager

    @property
    def due(self) -> int | None:
        """The end of the wait, or of the time in which more slots may come."""
        return min((at for at in (self.deadline, self.manager.due) if at is not None), default=None)

    def enter(self, step: Step) -> None:
        """Continue at once if the slots are available already, or if the query may not wait."""
        if self.deadline is not None and step.now >= self.deadline:
            self.due_reached(step)
        else:
            self._look(step)

    def _look(self, step: Step) -> None:
        resources = step.submission_resources()
        if self.manager.change(step.now, resources) or self.manager.trigger(step.now, resources):
            step.create_execution_graph()
        else:
            self._say(step)

    def look_for_slots(self, event: inner.SlotsChanged, step: Step) -> None:
        """Continue as soon as there are enough slots."""
        self._look(step)

    def look_within_bounds(self, event: inner.BoundsChanged, step: Step) -> None:
        """Check again, with a record in the history under the new bounds."""
        step.open_rescale_for_bounds()
        self._look(step)

    def wait_as_long_as_they_say(self, event: inner.SettingsChanged, step: Step) -> None:
        """Recompute the waits with the new settings, counted from when they began."""
        step.change_settings(event.settings)
        self.deadline = step.resource_deadline(self.entered)
        self.manager.retime(step.new_submission_manager())

    def due_reached(self, step: Step) -> None:
        """Continue at the end of the wait, whatever slots there are; otherwise report the wait."""
        if self.deadline is not None and step.now >= self.deadline:
            step.create_execution_graph(waited_ms=step.now - self.entered)
        elif self.manager.advance(step.now, step.submission_resources()):
            step.create_execution_graph()
        else:
            self._say(step)

    def say_again(self, event: ev.QuerySubmitted | inner.Recovered, step: Step) -> None:
        """Answer a question that is repeated, or that may have been lost with its answer."""
        step.record.told.hold = None
        self._say(step)

    def follow_the_start(self, event: ev.QueryStarted, step: Step) -> None:
        """Follow a start that the policy did not order."""
        step.started(event)
        step.report("started_unasked", after=step.record.partitions)
        step.close_rescale("succeeded")
        step.execute()

    def _say(self, step: Step) -> None:
        shortage = step.share.shortage
        if shortage is None and self.manager.phase in ("Stabilizing", "Stabilized"):
            step.hold(
                "waiting_for_more",
                until=self.manager.waits_until,
                numbers={
                    "needed": step.needed_slots,
                    "stabilization_ms": self.manager.stabilization_ms,
                },
            )
        else:
            wait_ms = step.settings.resource_wait_ms
            waits_for_others = shortage is not None and shortage.ahead > 0
            step.hold(
                "waiting_for_others" if waits_for_others else "waiting_for_resources",
                until=self.deadline,
                numbers={
                    "needed": step.needed_slots,
                    **({} if shortage is None else shortage.numbers()),
                    "limit": NO_LIMIT if self.deadline is None else fill(LIMIT, wait_ms=wait_ms),
                },
            )

    def validate(self, record: QueryRecord) -> None:
        """Check the manager. Raises AssertionError."""
        self.manager.validate()

    reactions: ClassVar[Reactions] = {
        **QueryState.reactions,
        ev.QuerySubmitted: say_again,
        ev.QueryStarted: follow_the_start,
        ev.QueryProgress: "it is about a batch before the failure",
        ev.ActionDone: "the query waits, despite earlier orders",
        ev.ActionFailed: "the query waits, despite earlier orders",
        inner.Recovered: say_again,
        inner.SlotsChanged: look_for_slots,
        inner.BoundsChanged: look_within_bounds,
        inner.SettingsChanged: wait_as_long_as_they_say,
    }
