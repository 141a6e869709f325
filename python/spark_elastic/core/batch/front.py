"""The front door for batch stages: a question in, an answer out, and what questions teach about plans."""

from __future__ import annotations

from attrs import define, evolve, field

from spark_elastic.core.batch.initial import initial_count
from spark_elastic.core.batch.memory import PlanMemory
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


@define(kw_only=True)
class BatchDecider:
    """Answers depend on the question, the settings, what earlier questions have taught, and nothing else."""

    settings: BatchSettings = field(factory=BatchSettings)
    _memory: PlanMemory = field(factory=PlanMemory)

    def answer(self, question: Question) -> Answer:
        """Answer a question."""
        if isinstance(question, InitialCount):
            self._memory.expect(question.exchanges)
            written = None if question.pinned else self._memory.written(question.exchanges)
            if not self._memory.is_as_before(question):
                question = evolve(question, kept=None)
            return initial_count(question, self.settings.with_volume(question.advised), written)
        if isinstance(question, Ranges):
            self._memory.learn(question)
            if not self._memory.is_as_before(question):
                question = evolve(question, kept=None)
            return ranges(question, self.settings.with_volume(question.advised))
        if isinstance(question, SplitOffsets):
            return split_offsets(question, self.settings)
        if isinstance(question, JoinPartitions):
            return join_partitions(question, self.settings)
        return split_size(question, self.settings)
