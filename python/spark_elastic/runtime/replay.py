"""Run a journal's events through new schedulers, and compare what they decide."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from typing import Any, Generic, Protocol, TypeVar

from attrs import frozen

from spark_elastic.core.actions import Action
from spark_elastic.core.batch.decider import BatchDecider
from spark_elastic.core.batch.questions import Question
from spark_elastic.core.events import Event
from spark_elastic.core.saved import NotRestorable
from spark_elastic.core.settings import CoreSettings
from spark_elastic.runtime.entries import (
    ActionsEntry,
    Entry,
    EventEntry,
    Header,
    StageEntry,
    StateEntry,
    Unreadable,
)
from spark_elastic.runtime.loop import Decider
from spark_elastic.runtime.port import JsonObject
from spark_elastic.settings import Settings, SettingsError, load
from spark_elastic.wire import encode_answer

# Play a journal: run its entries through schedulers, and tell what happens.


Made = TypeVar("Made", bound=Decider, covariant=True)
Played = TypeVar("Played", bound=Decider)


class DeciderClass(Protocol[Made]):
    """A kind of policies."""

    def __call__(self, settings: CoreSettings) -> Made:
        """Begin anew."""

    def restore(self, state: Mapping[str, Any]) -> Made:
        """Resume from a saved state. Raises NotRestorable."""


@frozen(kw_only=True)
class RunBegun:
    """A run begins, with a new policy."""

    settings: Settings


@frozen(kw_only=True)
class StateRestored:
    """A state was taken up: a run begins with it (`begins`), or what was before is gone."""

    entry: StateEntry
    begins: bool


@frozen(kw_only=True)
class StateRefused:
    """A state should have been taken up, and could not: until the next one there is no policy."""

    place: str
    reason: str
    begins: bool


@frozen(kw_only=True)
class PartsMissing:
    """A part begins, and the one before it is gone: until a state comes there is no policy."""


@frozen(kw_only=True)
class Handled:
    """An event was handled; `actions` is what the policy decides now."""

    place: str
    event: Event
    actions: tuple[Action, ...]


@frozen(kw_only=True)
class Failed:
    """The policy has raised `error` instead of deciding."""

    place: str
    event: Event
    error: Exception


@frozen(kw_only=True)
class LeftOut:
    """An event found no policy."""


@frozen(kw_only=True)
class Outcome:
    """What was recorded about the last event that was handled.

    There is none where a process was killed between an event and its actions.
    """

    handled: Handled
    recorded: tuple[Action, ...]


@frozen(kw_only=True)
class Answered:
    """A question about a batch stage was answered. It may stand between an event and its actions."""

    place: str
    stage: StageEntry


Step = (
    RunBegun | StateRestored | StateRefused | PartsMissing | Handled | Failed | LeftOut | Outcome | Answered
)


class Player(Generic[Played]):
    """Has the scheduler that led to where it has come in a journal.

    A run begins with a new policy (part 0), or with the state that follows at once; in a further part the
    policy of the part before continues. Every other state is only for those who miss what was before it.
    `policy` is None where that is gone.
    """

    def __init__(self, make_policy: DeciderClass[Played]) -> None:
        self.policy: Played | None = None
        self.header: Header | None = None
        self._make_policy = make_policy
        self._settings: Settings | None = None
        # Nothing has been handled in this run.
        self._begins = False
        # The last event, while what was decided about it then may still follow.
        self._open: Handled | None = None

    @property
    def settings(self) -> Settings:
        """The settings of the run, which has begun. Raises Unreadable."""
        assert self.header is not None
        if self._settings is None:
            try:
                self._settings = load(self.header.settings)
            except SettingsError as error:
                raise Unreadable(f"its settings are not those of this version: {error}") from error
        return self._settings

    def play(self, entries: Iterable[tuple[str, Entry]]) -> Iterator[Step]:
        """Read (place, entry) pairs, and yield what happens. Raises Unreadable with the place."""
        for place, entry in entries:
            try:
                yield from self.read(entry, place)
            except Unreadable as error:
                raise Unreadable(f"{place}: {error}") from error

    def read(self, entry: Entry, place: str = "") -> Iterator[Step]:
        """Read one entry while the steps are asked for, and yield what happens. Raises Unreadable."""
        if self.header is None and not isinstance(entry, Header):
            raise Unreadable("a journal begins with its header")
        match entry:
            case Header():
                yield from self._begin(entry)
            case StateEntry():
                yield from self._settle(())
                if self.policy is None or self._begins:
                    yield self._restore(entry, place)
            case EventEntry(event=event):
                yield from self._settle(())
                yield self._handle(event, place)
            case ActionsEntry(actions=actions):
                yield from self._settle(actions)
            case StageEntry():
                yield Answered(place=place, stage=entry)

    def _begin(self, header: Header) -> Iterator[Step]:
        before, self.header = self.header, header
        self._begins = header.part == 0
        if self._begins:
            # The run before may have been killed between an event and its actions.
            self._open = self._settings = None
            self.policy = self._make_policy(self.settings.core())
            yield RunBegun(settings=self.settings)
            return
        yield from self._settle(())
        if before is None or header.part != before.part + 1:
            self.policy = self._settings = None
            yield PartsMissing()

    def _restore(self, entry: StateEntry, place: str) -> StateRestored | StateRefused:
        try:
            self.policy = self._make_policy.restore(entry.state)
        except NotRestorable as error:
            self.policy = None
            reason = f"the state cannot be taken up: {error}"
            return StateRefused(place=place, reason=reason, begins=self._begins)
        return StateRestored(entry=entry, begins=self._begins)

    def _handle(self, event: Event, place: str) -> Handled | Failed | LeftOut:
        self._begins = False
        if self.policy is None:
            return LeftOut()
        try:
            actions = self.policy.handle(event)
        except Exception as error:  # whatever it is, it is what the policy did
            return Failed(place=place, event=event, error=error)
        self._open = Handled(place=place, event=event, actions=actions)
        return self._open

    def _settle(self, recorded: tuple[Action, ...]) -> Iterator[Outcome]:
        if self._open is not None:
            handled, self._open = self._open, None
            yield Outcome(handled=handled, recorded=recorded)


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


class _Comparison:
    """What has come of a replay so far."""

    def __init__(self) -> None:
        self._decider: BatchDecider | None = None
        self.refused: str | None = None
        self.runs = self.events = self.actions = self.stages = self.left_out = 0
        self.difference: Difference | None = None

    def take(self, step: Step) -> None:
        match step:
            case RunBegun(settings=settings):
                self._decider = BatchDecider(settings=settings.batch())
                self.runs += 1
            case PartsMissing():
                self._decider = None
            case StateRestored(begins=begins):
                self.runs += not begins
            case StateRefused():
                self.runs -= step.begins
                self.refused = self.refused or f"{step.place}: {step.reason}"
            case Handled():
                self.events += 1
            case Failed(error=error):
                self.difference = Difference(
                    place=step.place, event=step.event, error=f"{type(error).__name__}: {error}"
                )
            case LeftOut():
                self.left_out += 1
            case Outcome():
                self._compare(step.handled, step.recorded)
            case Answered():
                self._ask(step.place, step.stage)

    def _compare(self, handled: Handled, recorded: tuple[Action, ...]) -> None:
        for then, now in zip_longest(recorded, handled.actions):
            if then != now:
                self.difference = Difference(
                    place=handled.place, event=handled.event, recorded=then, replayed=now
                )
                return
        self.actions += len(recorded)

    def _ask(self, place: str, stage: StageEntry) -> None:
        if self._decider is None:
            self.left_out += 1
            return
        replayed = encode_answer(self._decider.answer(stage.question))
        if replayed != stage.answer:
            self.difference = Difference(
                place=place, event=stage.question, recorded=dict(stage.answer), replayed=replayed
            )
        self.stages += 1


def replay(entries: Iterable[tuple[str, Entry]], make_policy: DeciderClass[Decider]) -> Replay:
    """Feed the events of (place, entry) pairs to policies and compare their actions with the recorded ones.

    The actions of a run's very last event may be missing, since a process can be killed between the two.
    Where the beginning of a run is gone, it is replayed from the first state that is left of it. Raises
    Unreadable if the entries are no journal, or if nothing of it can be replayed.
    """
    player, comparison = Player(make_policy), _Comparison()
    for step in player.play(entries):
        comparison.take(step)
        if comparison.difference is not None:
            break
    if player.header is None:
        raise Unreadable("the journal is empty")
    if comparison.runs == 0:
        raise Unreadable(
            comparison.refused
            or "the beginning of this run is gone, and its state was too large for "
            "spark.elastic.journal.maxSize: what was decided can be read, but not replayed"
        )
    return Replay(
        runs=comparison.runs,
        events=comparison.events,
        actions=comparison.actions,
        stages=comparison.stages,
        left_out=comparison.left_out,
        difference=comparison.difference,
    )
