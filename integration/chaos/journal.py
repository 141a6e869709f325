"""What the journal of an ended application records."""

from __future__ import annotations

from pathlib import Path

from attrs import define, field

from integration.chaos.settings import AT_ONCE
from spark_elastic.core.actions import Action, CancelQuery, PrepareMove, Rescale, StartQuery, TakeSavepoint
from spark_elastic.core.events import (
    ActionDone,
    ActionFailed,
    Event,
    QueryFacts,
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
    """The moves of state in a journal, by rescales and at the start of a query.

    There must be a committed batch between two moves of one query. At most `AT_ONCE` queries may have an
    order to move without an outcome at the same time; `at_once` is the maximum that had. (After ten minutes a
    move no longer counts, but no run waits that long.) Conversions do not count: they can be done only when a
    query starts.
    """

    moved: int = 0
    in_place: int = 0
    at_once: int = 0
    broken: list[str] = field(factory=list)
    _stateful: dict[str, bool] = field(factory=dict)
    _counts: dict[str, int] = field(factory=dict)
    _ordered: dict[str, Rescale] = field(factory=dict)
    _moving: dict[str, Rescale | PrepareMove | StartQuery] = field(factory=dict)
    _fresh: set[str] = field(factory=set)

    @classmethod
    def of(cls, journal: Path) -> Moves:
        """Read a journal; the replay reports one that cannot be read."""
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
            case StartQuery(partitions=int(partitions), rescalable=False) if self._stateful.get(action.query):
                if self._counts.get(action.query, partitions) != partitions:
                    self._begin(action, place)
            case PrepareMove(query=query):
                # A copy for the present count only drops the one before; the rescale after one is its end.
                if self._counts.get(query) == action.partitions:
                    self._moving.pop(query, None)
                else:
                    self._begin(action, place)
            case TakeSavepoint(query=query, stop=True) if isinstance(self._moving.get(query), PrepareMove):
                self._moving.pop(query)
            case CancelQuery():
                self._moving.pop(action.query, None)

    def _begin(self, order: Rescale | PrepareMove | StartQuery, place: str) -> None:
        another = order.query not in self._moving
        self._moving[order.query] = order
        self.at_once = max(self.at_once, len(self._moving))
        if another and len(self._moving) > AT_ONCE:
            self.broken.append(f"{sorted(self._moving)} move their state at once: {place}")

    def _follow(self, event: Event, place: str) -> None:
        match event:
            case Snapshot():
                # Moves and commits that were not reported are unknown.
                self._fresh.clear()
                self._moving.clear()
                for info in event.queries:
                    self._know(info.facts, info.partitions)
            case QuerySubmitted():
                self._end(event.facts.query)
                self._fresh.discard(event.facts.query)
                self._know(event.facts, event.facts.checkpoint_partitions)
            case QueryStarted():
                order = self._end(event.query, event.run)
                if isinstance(order, StartQuery) and order.partitions == event.partitions:
                    self._has_moved(event.query, place)
                self._counts[event.query] = event.partitions
            case QueryFailed() | QueryTerminated():
                self._end(event.query, event.run)
            case QueryProgress():
                self._fresh.discard(event.query)
                self._counts[event.query] = event.partitions
            case ActionDone() | ActionFailed() if event.action in self._ordered:
                rescale = self._ordered.pop(event.action)
                if self._moving.get(rescale.query) is rescale:
                    self._end(rescale.query)
                if isinstance(event, ActionDone):
                    self._done(rescale, place)

    def _know(self, facts: QueryFacts, partitions: int | None) -> None:
        self._stateful[facts.query] = facts.stateful
        self._counts.pop(facts.query, None)
        if partitions is not None:
            self._counts[facts.query] = partitions

    def _end(self, query: str, run: str | None = None) -> Rescale | PrepareMove | StartQuery | None:
        """End the move of a query, unless it belongs to another run; return its order."""
        order = self._moving.get(query)
        if order is None or run not in (None, order.run):
            return None
        return self._moving.pop(query)

    def _done(self, order: Rescale, place: str) -> None:
        query = order.query
        if self._counts.get(query) == order.partitions:
            return
        self._counts[query] = order.partitions
        if self._stateful.get(query):
            self._has_moved(query, place)
        else:
            self.in_place += 1

    def _has_moved(self, query: str, place: str) -> None:
        self.moved += 1
        if query in self._fresh:
            self.broken.append(f"{query} has moved its state twice without a batch in between: {place}")
        self._fresh.add(query)


def replayed(journal: Path) -> list[str]:
    """Replay a journal; return where it differs."""
    try:
        result = replay(read_journal(journal), Scheduler)
    except Unreadable as error:
        return [f"the journal cannot be replayed: {error}"]
    if result.difference is None:
        return []
    return [f"the journal is replayed differently: {result.difference}"]
