"""Questions about a batch stage with only what matters, and what their answers come to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from spark_elastic.core.batch.front import BatchDecider
from spark_elastic.core.batch.questions import (
    InitialCount,
    InitialCountAnswer,
    LargePartition,
    PlannedExchange,
    Ranges,
    RangesAnswer,
    Spec,
    WrittenExchange,
)
from spark_elastic.core.batch.settings import BatchSettings

MIB = 1 << 20


def planned(*sizes: int, measured: bool = False, **facts: Any) -> tuple[PlannedExchange, ...]:
    return tuple(
        PlannedExchange(id=f"e{place}", bytes=size, measured=measured, **facts)
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


def written(sizes: Sequence[int], **facts: Any) -> WrittenExchange:
    """Make an exchange; `large` maps a partition to what each map task has written of it."""
    large = facts.pop("large", {})
    sizes = [sum(large.get(place, (size,))) for place, size in enumerate(sizes)]
    return WrittenExchange(
        **{
            "id": "e",
            "bytes": tuple(sizes),
            "large": tuple(
                LargePartition(partition=place, maps=tuple(maps)) for place, maps in large.items()
            ),
            **facts,
        }
    )


def ask_ranges(
    *exchanges: WrittenExchange, decider: BatchDecider | None = None, **facts: Any
) -> RangesAnswer:
    settings = facts.pop("settings", BatchSettings())
    question = Ranges(**{"group": "g", "exchanges": exchanges, "slots": 8, **facts})
    answer = (decider or BatchDecider(settings=settings)).answer(question)
    assert isinstance(answer, RangesAnswer)
    return answer


def spans(answer: RangesAnswer) -> list[tuple[int, int]]:
    assert answer.specs is not None, answer.record.message
    return [(spec.start, spec.end) for spec in answer.specs]


def specs_of(answer: RangesAnswer) -> tuple[Spec, ...]:
    """Return what each task reads, also where it is what was written."""
    if answer.specs is not None:
        return answer.specs
    return tuple(Spec(start=place, end=place + 1) for place in range(answer.record.before or 0))


def read_by(spec: Spec, exchanges: Sequence[WrittenExchange]) -> int:
    """Count the bytes that a task reads of all exchanges that are no broadcast."""
    total = 0
    for place, exchange in enumerate(exchanges):
        if exchange.broadcast:
            continue
        part = next((maps for maps in spec.maps if maps.exchange == place), None)
        if part is None:
            total += sum(exchange.bytes[spec.start : spec.end])
        else:
            (large,) = [large for large in exchange.large if large.partition == spec.start]
            total += sum(large.maps[part.start : part.end])
    return total
