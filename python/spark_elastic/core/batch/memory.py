"""What questions teach about plans: what their exchanges have written, and on how many slots they ran."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from attrs import define, field

from spark_elastic.core.batch.questions import InitialCount, PlannedExchange, Ranges

_REMEMBERED = 4096

V = TypeVar("V")


def _put(known: dict[str, V], key: str, value: V) -> None:
    """Keep a value as the newest one, and so many of them at most."""
    known.pop(key, None)
    known[key] = value
    while len(known) > _REMEMBERED:
        del known[next(iter(known))]


@define
class PlanMemory:
    """What earlier questions have told of plans; bounded."""

    _sources: dict[str, str] = field(factory=dict)
    _written: dict[str, int] = field(factory=dict)
    _slots: dict[str, int] = field(factory=dict)

    def expect(self, exchanges: Sequence[PlannedExchange]) -> None:
        """Take in what is going to be written."""
        for exchange in exchanges:
            if exchange.source:
                _put(self._sources, exchange.id, exchange.source)

    def learn(self, question: Ranges) -> None:
        """Take in what was written."""
        for exchange in question.exchanges:
            source = self._sources.pop(exchange.id, None)
            if source is not None:
                _put(self._written, source, sum(exchange.bytes))

    def written(self, exchanges: Sequence[PlannedExchange]) -> int | None:
        """Return what the same exchanges have written the last time, None unless all of them have."""
        found = [self._written.get(exchange.source) for exchange in exchanges]
        return None if None in found else sum(size for size in found if size is not None)

    def is_as_before(self, question: InitialCount | Ranges) -> bool:
        """Say whether the slots are those of the last time, and take them in; so they are if nobody knows."""
        before = self._slots.get(question.plan, question.slots)
        if question.plan:
            _put(self._slots, question.plan, question.slots)
        return before == question.slots
