"""The entry point for batch stages: answers questions, and remembers what they show about plans."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from attrs import define, evolve, field

from spark_elastic.core.batch.initial import initial_count
from spark_elastic.core.batch.questions import (
    Answer,
    InitialCount,
    JoinPartitions,
    PlannedExchange,
    Question,
    Ranges,
    SplitOffsets,
)
from spark_elastic.core.batch.ranges import ranges
from spark_elastic.core.batch.settings import BatchSettings
from spark_elastic.core.batch.sources import join_partitions, split_offsets, split_size

# ---- What questions show about plans: what their exchanges have written, and on how many slots they ran.


_REMEMBERED = 4096

V = TypeVar("V")


def _put(known: dict[str, V], key: str, value: V) -> None:
    """Store a value as the newest one, and evict the oldest if there are too many."""
    known.pop(key, None)
    known[key] = value
    while len(known) > _REMEMBERED:
        del known[next(iter(known))]


@define
class PlanMemory:
    """What earlier questions have shown about plans; bounded."""

    _sources: dict[str, str] = field(factory=dict)
    _written: dict[str, int] = field(factory=dict)
    _slots: dict[str, int] = field(factory=dict)

    def expect(self, exchanges: Sequence[PlannedExchange]) -> None:
        """Note the exchanges that will be written."""
        for exchange in exchanges:
            if exchange.source:
                _put(self._sources, exchange.id, exchange.source)

    def learn(self, question: Ranges) -> None:
        """Note the bytes that were written."""
        for exchange in question.exchanges:
            source = self._sources.pop(exchange.id, None)
            if source is not None:
                _put(self._written, source, sum(exchange.bytes))

    def written(self, exchanges: Sequence[PlannedExchange]) -> int | None:
        """Return the bytes that the same exchanges wrote last time, None unless all of them are known."""
        found = [self._written.get(exchange.source) for exchange in exchanges]
        return None if None in found else sum(size for size in found if size is not None)

    def is_as_before(self, question: InitialCount | Ranges) -> bool:
        """Store the slots, and return whether they match the last time; True if there was none."""
        before = self._slots.get(question.plan, question.slots)
        if question.plan:
            _put(self._slots, question.plan, question.slots)
        return before == question.slots


@define(kw_only=True)
class BatchDecider:
    """Answers questions. An answer depends only on the question, the settings and earlier questions.

    What questions teach is state: a replay learns it again in the order of the answers. A process that is
    started again has learned nothing, but the driver knows what plans were given (`Kept` in
    `StageAdvice.scala`) and sends it as `kept`.
    """

    settings: BatchSettings = field(factory=BatchSettings)
    _memory: PlanMemory = field(factory=PlanMemory)

    def answer(self, question: Question) -> Answer:
        """Answer a question."""
        if isinstance(question, InitialCount):
            self._memory.expect(question.exchanges)
            written = None if question.pinned else self._memory.written(question.exchanges)
            if not self._memory.is_as_before(question):
                question = evolve(question, kept=None)
            return initial_count(question, self._for(question), written)
        if isinstance(question, Ranges):
            self._memory.learn(question)
            if not self._memory.is_as_before(question):
                question = evolve(question, kept=None)
            return ranges(question, self._for(question))
        if isinstance(question, SplitOffsets):
            return split_offsets(question, self.settings)
        if isinstance(question, JoinPartitions):
            return join_partitions(question, self.settings)
        return split_size(question, self.settings)

    def _for(self, question: InitialCount | Ranges) -> BatchSettings:
        return self.settings.with_volume(question.advised, question.smallest)
