"""The front door for batch stages: a question in, an answer out, and what questions teach about plans."""

from __future__ import annotations

from attrs import define, field

from spark_elastic.core.batch.corrections import Corrections
from spark_elastic.core.batch.initial import initial_count
from spark_elastic.core.batch.questions import (
    Answer,
    InitialCount,
    JoinPartitions,
    Question,
    Ranges,
    SplitOffsets,
)
from spark_elastic.core.batch.ranges import ranges
from spark_elastic.core.batch.settings import BatchSettings
from spark_elastic.core.batch.sources import join_partitions, split_offsets, split_size

_REMEMBERED = 4096


@define(kw_only=True)
class BatchDecider:
    """Answers depend on the question, the settings, what earlier questions have taught, and nothing else."""

    settings: BatchSettings = field(factory=BatchSettings)
    corrections: Corrections = field(factory=Corrections)
    _expected: dict[str, tuple[str, int]] = field(factory=dict)

    def answer(self, question: Question) -> Answer:
        """Answer a question."""
        if isinstance(question, InitialCount):
            self._remember(question)
            return initial_count(question, self.settings.with_volume(question.advised), self.corrections)
        if isinstance(question, Ranges):
            self._learn(question)
            return ranges(question, self.settings.with_volume(question.advised))
        if isinstance(question, SplitOffsets):
            return split_offsets(question, self.settings)
        if isinstance(question, JoinPartitions):
            return join_partitions(question, self.settings)
        return split_size(question, self.settings)

    def _remember(self, question: InitialCount) -> None:
        for exchange in question.exchanges:
            self._expected[exchange.id] = (exchange.source, exchange.bytes)
        while len(self._expected) > _REMEMBERED:
            del self._expected[next(iter(self._expected))]

    def _learn(self, question: Ranges) -> None:
        for exchange in question.exchanges:
            source, expected = self._expected.pop(exchange.id, ("", 0))
            self.corrections.learn(source, expected, sum(exchange.bytes))
