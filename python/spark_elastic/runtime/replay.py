"""Run a journal's events through new schedulers, and compare what they decide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import zip_longest
from typing import Any, Protocol

from attrs import frozen

from spark_elastic.core.actions import Action
from spark_elastic.core.batch.front import BatchDecider
from spark_elastic.core.batch.questions import Question
from spark_elastic.core.events import Event
from spark_elastic.core.saved import NotRestorable
from spark_elastic.core.settings import CoreSettings
from spark_elastic.gateway.port import JsonObject
from spark_elastic.runtime.entries import (
    ActionsEntry,
    Entry,
    EventEntry,
    Header,
    StageEntry,
    StateEntry,
    Unreadable,
)
from spark_elastic.runtime.loop import Policy
from spark_elastic.settings import SettingsError, load
from spark_elastic.wire import encode_answer


@frozen(kw_only=True)
class Difference:
    """The first place where a replay went another way: at an event, or at a question about a batch stage.

    `recorded` or `replayed` is None where that side had no more actions; `error` is what the scheduler raised
    instead of deciding.
    """

    place: str
    event: Event | Question
    recorded: Action | JsonObject | None = None
    replayed: Action | JsonObject | None = None
    error: str | None = None


@frozen(kw_only=True)
class Replay:
    """How a replay went.

    `runs` counts what was replayed from a beginning or from a state, `stages` the questions about batch
    stages, `left_out` the entries of parts that have neither. `difference` is None if all was the same.
    """

    runs: int
    events: int
    actions: int
    stages: int
    left_out: int
    difference: Difference | None = None


class PolicyClass(Protocol):
    """A kind of policies."""

    def __call__(self, settings: CoreSettings) -> Policy:
        """Begin anew."""

    def restore(self, state: Mapping[str, Any]) -> Policy:
        """Go on from a saved state. Raises NotRestorable."""


class _Player:
    """One pass over the entries; stops at the first difference."""

    def __init__(self, make_policy: PolicyClass) -> None:
        self._make_policy = make_policy
        self._policy: Policy | None = None
        self._decider: BatchDecider | None = None
        self._part = -1
        self._begins = False
        self.unreadable: str | None = None
        # The last event and what was decided about it now; what was decided then may still follow.
        self._open: tuple[str, Event, tuple[Action, ...]] | None = None
        self.runs = self.events = self.actions = self.stages = self.left_out = 0
        self.difference: Difference | None = None

    def begin(self, place: str, header: Header) -> None:
        self._begins = header.part == 0
        if self._begins:
            # The run before may have been killed between an event and its actions.
            self._open = None
            try:
                settings = load(header.settings)
                self._policy = self._make_policy(settings.core())
                self._decider = BatchDecider(settings=settings.batch())
            except SettingsError as error:
                raise Unreadable(f"{place}: its settings are not those of this version: {error}") from error
            self.runs += 1
        else:
            self._settle(())
            if header.part != self._part + 1:
                self._policy = self._decider = None
        self._part = header.part

    def state(self, place: str, entry: StateEntry) -> None:
        """Take the state up where a run goes on from it, or where what was before is gone."""
        self._settle(())
        if self._policy is not None and not self._begins:
            return
        try:
            self._policy = self._make_policy.restore(entry.state)
        except NotRestorable as error:
            self._policy = None
            self.runs -= self._begins
            self.unreadable = self.unreadable or f"{place}: the state cannot be taken up: {error}"
        else:
            self.runs += not self._begins

    def event(self, place: str, event: Event) -> None:
        self._begins = False
        self._settle(())
        if self._policy is None:
            self.left_out += 1
            return
        if self.difference is not None:
            return
        try:
            self._open = (place, event, self._policy.handle(event))
        except Exception as error:  # whatever it is, it is what the replay did
            self.difference = Difference(place=place, event=event, error=f"{type(error).__name__}: {error}")
            return
        self.events += 1

    def stage(self, place: str, question: Question, recorded: JsonObject) -> None:
        # It may stand between an event and its actions.
        if self._decider is None:
            self.left_out += 1
            return
        replayed = encode_answer(self._decider.answer(question))
        if replayed != recorded:
            self.difference = Difference(place=place, event=question, recorded=recorded, replayed=replayed)
        self.stages += 1

    def recorded(self, actions: tuple[Action, ...]) -> None:
        self._settle(actions)

    def _settle(self, recorded: tuple[Action, ...]) -> None:
        if self._open is None:
            return
        place, event, replayed = self._open
        self._open = None
        for then, now in zip_longest(recorded, replayed):
            if then != now:
                self.difference = Difference(place=place, event=event, recorded=then, replayed=now)
                return
        self.actions += len(recorded)


def replay(entries: Iterable[tuple[str, Entry]], make_policy: PolicyClass) -> Replay:
    """Feed the events of (place, entry) pairs to policies and compare their actions with the recorded ones.

    The actions of a run's very last event may be missing, since a process can be killed between the two.
    Where the beginning of a run is gone, it is replayed from the first state that is left of it. Raises
    Unreadable if the entries are no journal, or if nothing of it can be replayed.
    """
    player = _Player(make_policy)
    empty = True
    for place, entry in entries:
        if empty and not isinstance(entry, Header):
            raise Unreadable(f"{place}: a journal begins with its header")
        empty = False
        match entry:
            case Header():
                player.begin(place, entry)
            case EventEntry(event=event):
                player.event(place, event)
            case ActionsEntry(actions=actions):
                player.recorded(actions)
            case StageEntry(question=question, answer=answer):
                player.stage(place, question, answer)
            case StateEntry():
                player.state(place, entry)
        if player.difference is not None:
            break
    if empty:
        raise Unreadable("the journal is empty")
    if player.runs == 0:
        raise Unreadable(
            player.unreadable
            or "the beginning of this run is gone, and its state was too large for "
            "spark.elastic.journal.maxSize: what was decided can be read, but not replayed"
        )
    return Replay(
        runs=player.runs,
        events=player.events,
        actions=player.actions,
        stages=player.stages,
        left_out=player.left_out,
        difference=player.difference,
    )
