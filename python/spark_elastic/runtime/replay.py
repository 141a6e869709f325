"""Run a journal's events through new schedulers, and compare what they decide."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import zip_longest

from attrs import frozen

from spark_elastic.core.actions import Action
from spark_elastic.core.batch.decider import BatchDecider
from spark_elastic.core.batch.questions import Question
from spark_elastic.core.events import Event
from spark_elastic.gateway.port import JsonObject
from spark_elastic.runtime.entries import Entry, StageEntry, Unreadable
from spark_elastic.runtime.loop import Decider
from spark_elastic.runtime.player import (
    Answered,
    DeciderClass,
    Failed,
    Handled,
    LeftOut,
    Outcome,
    PartsMissing,
    Player,
    RunBegun,
    StateRefused,
    StateRestored,
    Step,
)
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
