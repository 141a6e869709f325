"""What a journal says about an application that is over."""

from __future__ import annotations

from pathlib import Path

from attrs import define, field

from integration.chaos.settings import AT_ONCE
from spark_elastic.core.actions import Action, CancelQuery, FailQuery, Rescale
from spark_elastic.core.events import (
    ActionDone,
    ActionFailed,
    Event,
    QueryFailed,
    QueryProgress,
    QueryStarted,
    QuerySubmitted,
    QueryTerminated,
    Snapshot,
)
from spark_elastic.core.scheduler import Scheduler
from spark_elastic.runtime.entries import ActionsEntry, EventEntry, Unreadable, read_journal
from spark_elastic.runtime.replay import replay


@define
class Moves:
    """The rescales of a journal.

    Between two that move the state of a query there is a committed batch, and no more than `AT_ONCE` queries
    move theirs at once; `at_once` did.
    """

    moved: int = 0
    in_place: int = 0
    at_once: int = 0
    broken: list[str] = field(factory=list)
    _stateful: dict[str, bool] = field(factory=dict)
    _counts: dict[str, int] = field(factory=dict)
    _ordered: dict[str, Rescale] = field(factory=dict)
    _moving: dict[str, str] = field(factory=dict)  # by query the newest order, which has no outcome yet
    _fresh: set[str] = field(factory=set)

    @classmethod
    def of(cls, journal: Path) -> Moves:
        """Read a journal; what cannot be read is for the replay to say."""
        result = cls()
        try:
            for place, entry in read_journal(journal):
                if isinstance(entry, EventEntry):
                    result._follow(entry.event, place)
                elif isinstance(entry, ActionsEntry):
                    for action in entry.actions:
                        result._order(action, place)
        except Unreadable:
            pass
        return result

    def _order(self, action: Action, place: str) -> None:
        match action:
            case Rescale():
                self._ordered[action.id] = action
                if self._stateful.get(action.query):
                    self._begin(action, place)
            case CancelQuery() | FailQuery():
                self._moving.pop(action.query, None)

    def _begin(self, order: Rescale, place: str) -> None:
        self._moving[order.query] = order.id
        self.at_once = max(self.at_once, len(self._moving))
        if len(self._moving) > AT_ONCE:
            self.broken.append(f"{sorted(self._moving)} move their state at once: {place}")

    def _follow(self, event: Event, place: str) -> None:
        match event:
            case Snapshot():
                # What was done and committed unheard is not known.
                self._fresh.clear()
                self._moving.clear()
                self._stateful |= {info.facts.query: info.facts.stateful for info in event.queries}
            case QuerySubmitted():
                self._stateful[event.facts.query] = event.facts.stateful
                self._moving.pop(event.facts.query, None)
            case QueryStarted() | QueryFailed() | QueryTerminated():
                self._moving.pop(event.query, None)
            case QueryProgress():
                self._fresh.discard(event.query)
                self._counts[event.query] = event.partitions
            case ActionDone() | ActionFailed() if event.action in self._ordered:
                order = self._ordered.pop(event.action)
                if self._moving.get(order.query) == order.id:
                    del self._moving[order.query]
                if isinstance(event, ActionDone):
                    self._done(order, place)

    def _done(self, order: Rescale, place: str) -> None:
        query = order.query
        if self._counts.get(query) == order.partitions:
            return
        self._counts[query] = order.partitions
        if not self._stateful.get(query):
            self.in_place += 1
            return
        self.moved += 1
        if query in self._fresh:
            self.broken.append(f"{query} was rescaled twice without a batch in between: {place}")
        self._fresh.add(query)


def replayed(journal: Path) -> list[str]:
    """Run a journal again; says where it came to something else."""
    try:
        result = replay(read_journal(journal), Scheduler)
    except Unreadable as error:
        return [f"the journal cannot be replayed: {error}"]
    if result.difference is None:
        return []
    return [f"the journal is replayed differently: {result.difference}"]
