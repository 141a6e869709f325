"""How many partitions a group of exchanges writes, decided before its map side runs."""

from __future__ import annotations

from spark_elastic.core.batch.corrections import Corrections
from spark_elastic.core.batch.number import clamp, narrow, tasks_for
from spark_elastic.core.batch.questions import InitialCount, InitialCountAnswer, PlannedExchange
from spark_elastic.core.batch.record import StageRecord, record
from spark_elastic.core.batch.settings import BatchSettings
from spark_elastic.core.batch.waves import SMALLEST_TASK, Waves

SPARE = 2
"""Partitions for each task: so ranges can be evened out, and slots that come meanwhile have work."""

UNKNOWN_BYTES = 1 << 60
"""What a plan says of which it knows nothing is at least this."""


def initial_count(
    question: InitialCount, settings: BatchSettings, corrections: Corrections
) -> InitialCountAnswer:
    """Answer how many partitions to write."""
    untouched = _untouched(question, settings)
    if untouched is not None:
        return InitialCountAnswer(group=question.group, partitions=None, record=untouched)
    expected = sum(_expected(exchange, corrections) for exchange in question.exchanges)
    bounds = narrow(settings.bounds(question.slots, question.chosen, question.parallelism), question.lower)
    numbers = {
        "bytes": expected,
        "planned_bytes": sum(exchange.bytes for exchange in question.exchanges),
        "measured": sum(corrections.knows(exchange.source) for exchange in question.exchanges),
        "exchanges": len(question.exchanges),
        "volume": settings.volume,
        "slots": question.slots,
        "lower": bounds.lower,
        "upper": bounds.upper,
    }
    if settings.rules.writes_most:
        why = record("initial_most", before=question.planned, after=bounds.upper, **numbers)
        return InitialCountAnswer(group=question.group, partitions=bounds.upper, record=why)
    waves = Waves(slots=question.slots, smallest=min(SMALLEST_TASK, settings.volume))
    tasks = waves.fill(tasks_for(expected, settings.volume, bounds), expected, bounds.upper)
    wanted = SPARE * tasks
    if numbers["measured"] < len(question.exchanges):
        # A plan's sizes are a guess: too few partitions cannot be corrected afterwards, too many are joined.
        wanted = max(wanted, SPARE * question.slots)
    count = clamp(wanted, bounds)
    reason = "initial_from_bytes" if count == wanted else "initial_bounded"
    why = record(reason, before=question.planned, after=count, tasks=tasks, wanted=wanted, **numbers)
    return InitialCountAnswer(group=question.group, partitions=count, record=why)


def _untouched(question: InitialCount, settings: BatchSettings) -> StageRecord | None:
    """Say why the number is left to Spark, None if it is not."""
    planned = question.planned
    if not (settings.enabled and settings.initial_enabled):
        return record("initial_off", before=planned)
    if not question.exchanges:
        return record("initial_nothing", before=planned)
    if question.chosen is not None and settings.leaves_chosen:
        return record("initial_fixed", before=planned, chosen=question.chosen)
    unknown = [exchange.id for exchange in question.exchanges if not 0 <= exchange.bytes < UNKNOWN_BYTES]
    if unknown:
        return record("initial_unknown", before=planned, exchanges=", ".join(unknown))
    return None


def _expected(exchange: PlannedExchange, corrections: Corrections) -> int:
    return round(exchange.bytes * corrections.factor(exchange.source))
