"""The turn of one event: the context of queries and executors while the event is handled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from attrs import define, field, frozen

from spark_elastic.core.actions import Action, CancelTimer, Configure, Decision, Report, SetTimer
from spark_elastic.core.bounds.requirements import Requirements
from spark_elastic.core.bounds.shares import Standing
from spark_elastic.core.keys.policies import POLICY
from spark_elastic.core.reasons import catalogue
from spark_elastic.core.rescale.concurrency import MoveQueue
from spark_elastic.core.settings import CoreSettings

if TYPE_CHECKING:
    from spark_elastic.core.events import QueryFacts


Number = float | int | str


def _in_words(settings: CoreSettings) -> str:
    policy = "" if settings.policy == POLICY.default else f" with policy {POLICY.format(settings.policy)}"
    return f"{settings.mode}{policy}{', advice only' if settings.advise_only else ''}"


class Footing(NamedTuple):
    """The part of a query that concerns others: its standing, its requirements and its settings."""

    standing: Standing | None
    requirements: Requirements
    settings: CoreSettings | None
    is_finished: bool


@frozen
class Timer:
    """A timer set for `at` (epoch ms) by a `query`, None if set by the executor supply or the planner."""

    id: str
    at: int
    query: str | None = None


@define
class Counters:
    """The numbers of actions, decisions and timers so far; ids are derived from them."""

    actions: int = 0
    decisions: int = 0
    timers: int = 0


@define(kw_only=True)
class Turn:
    """The current event, and the outlet for actions.

    `cause` is the id of the event, `now` its time (epoch ms), `slots` the current number of all slots.
    `moves` knows which queries move their state and which wait for that. `name_of` returns the name of a
    query; it may not know those that were `met` in this event. `touched` are the queries that the event
    concerns, each with its footing when the slots were last shared out, None if it did not exist then.
    `shared_out` says that this has happened since the event. `actions` are the actions so far, in order.
    """

    settings: CoreSettings
    cause: str
    now: int
    slots: int
    moves: MoveQueue
    name_of: Callable[[str], str | None]
    touched: dict[str, Footing | None] = field(factory=dict)
    met: dict[str, str | None] = field(factory=dict)
    shared_out: bool = False
    actions: list[Action] = field(factory=list)
    _counters: Counters

    def touch(self, query: str, before: Footing | None) -> None:
        """Note a query that is about to change, with its footing before; the turn settles it."""
        self.touched.setdefault(query, before)

    def meet(self, facts: QueryFacts) -> str:
        """Note the name of a query that may not be known yet, and return its id."""
        self.met[facts.query] = facts.name
        return facts.query

    def next_action(self) -> str:
        """Return the id for the next action."""
        self._counters.actions += 1
        return f"a{self._counters.actions}"

    def configure(self, *, restarts: bool) -> None:
        """Send the shim its limits, and whether it should ask what to do about a failed query."""
        settings = self.settings
        self.emit(
            Configure(
                id=self.next_action(),
                cause=self.cause,
                warm_up_ms=0 if settings.advise_only else settings.warm_up_ms,
                start_wait_ms=settings.start_wait_ms,
                decision_wait_ms=settings.decision_wait_ms,
                restarts=restarts,
                batch_stages=settings.measures and settings.batch_gain is not None,
                mode=_in_words(settings),
            )
        )

    def emit(self, action: Action) -> None:
        """Send an action out."""
        self.actions.append(action)

    def set_timer(self, at: int, query: str | None = None) -> Timer:
        """Order a timer for `at` (epoch ms)."""
        self._counters.timers += 1
        timer = Timer(id=f"t{self._counters.timers}", at=at, query=query)
        self.repeat_timer(timer)
        return timer

    def repeat_timer(self, timer: Timer) -> None:
        """Repeat the order for a timer that may or may not be set."""
        action = self.next_action()
        self.emit(SetTimer(id=action, cause=self.cause, timer=timer.id, at=timer.at, query=timer.query))

    def cancel_timer(self, timer: Timer) -> None:
        """Order the cancellation of a timer."""
        self.emit(CancelTimer(id=self.next_action(), cause=self.cause, timer=timer.id))

    def publish(
        self,
        reason: str,
        message: str,
        *,
        query: str | None,
        before: int | None,
        after: int | None,
        numbers: Mapping[str, Number],
        alternatives: tuple[str, ...] = (),
        until: int | None = None,
    ) -> Decision:
        """Publish a decision in these words, `query` None for one about the application; return it."""
        self._counters.decisions += 1
        decision = Decision(
            number=self._counters.decisions,
            query=query,
            name=None if query is None else self.met.get(query, self.name_of(query)),
            at=self.now,
            kind=catalogue.REASONS[reason].kind,
            reason=reason,
            message=message,
            cause=self.cause,
            before=before,
            after=after,
            numbers=numbers,
            alternatives=alternatives,
            until=until,
        )
        self.emit(Report(id=self.next_action(), cause=self.cause, decision=decision))
        return decision

    def report(
        self,
        reason: str,
        *,
        query: str | None = None,
        before: int | None = None,
        after: int | None = None,
        **numbers: Number,
    ) -> None:
        """Publish a decision in the words of its reason."""
        values = {**numbers, "slots": self.slots}
        message = catalogue.message(reason, **values, before=before, after=after)
        self.publish(reason, message, query=query, before=before, after=after, numbers=values)


# ---- The single timer of a component that is not a query: the component sets it, and is notified when it
# fires.


@define
class Alarm:
    """`timer` is the one that is set, None if none is."""

    timer: Timer | None = None

    def keep(self, due: int | None, turn: Turn) -> None:
        """Ensure that a timer fires by `due` (epoch ms); with None one that is set may fire in vain."""
        if due is None:
            return
        if self.timer is not None and due < self.timer.at:
            turn.cancel_timer(self.timer)
            self.timer = None
        if self.timer is None:
            self.timer = turn.set_timer(due)

    def rings(self, timer: str) -> bool:
        """Return whether this is the id of the timer, which then is no longer set."""
        if self.timer is None or timer != self.timer.id:
            return False
        self.timer = None
        return True

    def lost(self) -> None:
        """Note that the timer is no longer set anywhere."""
        self.timer = None
