"""What a journal says about an application that is over."""

from __future__ import annotations

from pathlib import Path

from attrs import define, field

from spark_elastic.core.actions import Action, Rescale
from spark_elastic.core.events import ActionDone, Event, QueryProgress, QuerySubmitted, Snapshot
from spark_elastic.core.scheduler import Scheduler
from spark_elastic.runtime.entries import ActionsEntry, EventEntry, Unreadable, read_journal
from spark_elastic.runtime.replay import replay


@define
class Moves:
    """The rescales of a journal: between two that move the state of a query there is a committed batch."""

    moved: int = 0
    in_place: int = 0
    broken: list[str] = field(factory=list)
    _stateful: dict[str, bool] = field(factory=dict)
    _counts: dict[str, int] = field(factory=dict)
    _ordered: dict[str, Rescale] = field(factory=dict)
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
                        result._order(action)
        except Unreadable:
            pass
        return result

    def _order(self, action: Action) -> None:
        if isinstance(action, Rescale):
            self._ordered[action.id] = action

    def _follow(self, event: Event, place: str) -> None:
        match event:
            case Snapshot():
                # What was done and committed unheard is not known.
                self._fresh.clear()
                self._stateful |= {info.facts.query: info.facts.stateful for info in event.queries}
            case QuerySubmitted():
                self._stateful[event.facts.query] = event.facts.stateful
            case QueryProgress():
                self._fresh.discard(event.query)
                self._counts[event.query] = event.partitions
            case ActionDone() if event.action in self._ordered:
                self._done(self._ordered.pop(event.action), place)

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
