"""Run a journal's events through new schedulers, and compare their decisions."""

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

# ---- Play a journal: run its entries through schedulers, and report each step.


Made = TypeVar("Made", bound=Decider, covariant=True)
Played = TypeVar("Played", bound=Decider)


class DeciderClass(Protocol[Made]):
    """Creates policies of one kind."""

    def __call__(self, settings: CoreSettings) -> Made:
        """Create a policy in its initial state."""

    def restore(self, state: Mapping[str, Any]) -> Made:
        """Restore a policy from a saved state. Raises NotRestorable."""


@frozen(kw_only=True)
class RunBegun:
    """A run has started, with a new policy."""

    settings: Settings


@frozen(kw_only=True)
class StateRestored:
    """A state was restored: a run starts with it (`begins`), or the entries before it are missing."""

    entry: StateEntry
    begins: bool


@frozen(kw_only=True)
class StateRefused:
    """A state could not be restored; until the next one there is no policy."""

    place: str
    reason: str
    begins: bool


@frozen(kw_only=True)
class PartsMissing:
    """A part has started, but the part before it is missing; until a state follows there is no policy."""


@frozen(kw_only=True)
class Handled:
    """An event was handled; `actions` are the policy's decisions in the replay."""

    place: str
    event: Event
    actions: tuple[Action, ...]


@frozen(kw_only=True)
class Failed:
    """The policy raised `error` instead of deciding."""

    place: str
    event: Event
    error: Exception


@frozen(kw_only=True)
class LeftOut:
    """An event was skipped, because there is no policy."""


@frozen(kw_only=True)
class Outcome:
    """The recorded actions for the last handled event.

    There is no outcome if the process was killed between an event and its actions.
    """

    handled: Handled
    recorded: tuple[Action, ...]


@frozen(kw_only=True)
class Answered:
    """A question about a batch stage was answered. It may lie between an event and its actions."""

    place: str
    stage: StageEntry


Step = (
    RunBegun | StateRestored | StateRefused | PartsMissing | Handled | Failed | LeftOut | Outcome | Answered
)


class Player(Generic[Played]):
    """Plays a journal; `policy` is the scheduler that the entries so far have led to.

    A run starts with a new policy (part 0), or with the state that follows immediately. In a further part,
    the policy of the part before continues. Every other state is used only if the entries before it are
    missing. `policy` is None while there is nothing to continue from.
    """

    def __init__(self, make_policy: DeciderClass[Played]) -> None:
        self.policy: Played | None = None
        self.header: Header | None = None
        self._make_policy = make_policy
        self._settings: Settings | None = None
        # Whether no event of this run has been handled yet.
        self._begins = False
        # The last event, as long as its recorded actions may still follow.
        self._open: Handled | None = None

    @property
    def settings(self) -> Settings:
        """The settings of the current run. Raises Unreadable."""
        assert self.header is not None
        if self._settings is None:
            try:
                self._settings = load(self.header.settings)
            except SettingsError as error:
                raise Unreadable(f"its settings are of another version: {error}") from error
        return self._settings

    def play(self, entries: Iterable[tuple[str, Entry]]) -> Iterator[Step]:
        """Read (place, entry) pairs, and yield the steps. Raises Unreadable with the place."""
        for place, entry in entries:
            try:
                yield from self.read(entry, place)
            except Unreadable as error:
                raise Unreadable(f"{place}: {error}") from error

    def read(self, entry: Entry, place: str = "") -> Iterator[Step]:
        """Read one entry lazily, and yield its steps. Raises Unreadable."""
        if self.header is None and not isinstance(entry, Header):
            raise Unreadable("a journal must start with its header")
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
            # The previous run may have been killed between an event and its actions.
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
            reason = f"the saved state cannot be loaded: {error}"
            return StateRefused(place=place, reason=reason, begins=self._begins)
        return StateRestored(entry=entry, begins=self._begins)

    def _handle(self, event: Event, place: str) -> Handled | Failed | LeftOut:
        self._begins = False
        if self.policy is None:
            return LeftOut()
        try:
            actions = self.policy.handle(event)
        except Exception as error:  # any error of the policy is a result of the replay
            return Failed(place=place, event=event, error=error)
        self._open = Handled(place=place, event=event, actions=actions)
        return self._open

    def _settle(self, recorded: tuple[Action, ...]) -> Iterator[Outcome]:
        if self._open is not None:
            handled, self._open = self._open, None
            yield Outcome(handled=handled, recorded=recorded)


@frozen(kw_only=True)
class Difference:
    """The first place where a replay diverges: at an event, or at a question about a batch stage.

    `recorded` or `replayed` is None if that side had no more actions. `error` is what the scheduler raised
    instead of deciding.
    """

    place: str
    event: Event | Question
    recorded: Action | JsonObject | None = None
    replayed: Action | JsonObject | None = None
    error: str | None = None


@frozen(kw_only=True)
class Replay:
    """The result of a replay.

    `runs` counts the runs replayed from their start or from a state, `stages` the questions about batch
    stages, and `left_out` the entries without either. `difference` is None if everything was the same.
    """

    runs: int
    events: int
    actions: int
    stages: int
    left_out: int
    difference: Difference | None = None


class _Comparison:
    """The results of a replay so far."""

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

    The actions of a run's very last event may be missing, since a process can be killed between the two. If
    the start of a run is missing, it is replayed from the first state that remains. Raises Unreadable if the
    entries are not a journal, or if none of it can be replayed.
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
            or "the start of this run is missing, and its state was too large for "
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
