"""Questions about a batch stage that state only the relevant facts, and summaries of their answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spark_elastic.core.batch.decider import BatchDecider
from spark_elastic.core.batch.questions import (
    InitialCount,
    InitialCountAnswer,
    PlannedExchange,
    Ranges,
    RangesAnswer,
    Spec,
    WrittenExchange,
)
from spark_elastic.core.batch.settings import BatchSettings

MIB = 1 << 20


def planned(*sizes: int, **facts: Any) -> tuple[PlannedExchange, ...]:
    """Make exchanges whose largest size is the expected one, unless a fact says otherwise."""
    return tuple(
        PlannedExchange(**{"id": f"e{place}", "bytes": size, "most": size, **facts})
        for place, size in enumerate(sizes)
    )


def ask_count(
    exchanges: tuple[PlannedExchange, ...], decider: BatchDecider | None = None, **facts: Any
) -> InitialCountAnswer:
    settings = facts.pop("settings", BatchSettings())
    question = InitialCount(**{"group": "g", "exchanges": exchanges, "planned": 200, "slots": 8, **facts})
    answer = (decider or BatchDecider(settings=settings)).answer(question)
    assert isinstance(answer, InitialCountAnswer)
    assert answer.record.after == answer.partitions
    return answer


def written(sizes: Sequence[int], id: str = "e") -> WrittenExchange:
    return WrittenExchange(id=id, bytes=tuple(sizes))


def ask_ranges(
    *exchanges: WrittenExchange, decider: BatchDecider | None = None, **facts: Any
) -> RangesAnswer:
    settings = facts.pop("settings", BatchSettings())
    question = Ranges(**{"group": "g", "exchanges": exchanges, "slots": 8, **facts})
    answer = (decider or BatchDecider(settings=settings)).answer(question)
    assert isinstance(answer, RangesAnswer)
    return answer


def spans(answer: RangesAnswer) -> list[tuple[int, int]]:
    return [(spec.start, spec.end) for spec in specs_of(answer)]


def specs_of(answer: RangesAnswer) -> tuple[Spec, ...]:
    assert answer.specs is not None, answer.record.message
    return answer.specs


def read_by(spec: Spec, exchanges: Sequence[WrittenExchange]) -> int:
    """Return the bytes that a task reads of all exchanges."""
    return sum(sum(exchange.bytes[spec.start : spec.end]) for exchange in exchanges)
