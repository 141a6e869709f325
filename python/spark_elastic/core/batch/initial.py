"""The number of partitions that a group of exchanges writes, decided before its map side runs."""

from __future__ import annotations

from attrs import evolve

from spark_elastic.core.batch.balance import Waves, smallest_task
from spark_elastic.core.batch.questions import InitialCount, InitialCountAnswer, StageRecord, record
from spark_elastic.core.batch.settings import SMALLEST_TASK, BatchSettings, clamp, narrow, tasks_for
from spark_elastic.core.bounds.requirements import Bounds

SPARE = 2
"""Partitions per task, so that ranges can be evened out, and slots that come meanwhile have work."""

UNKNOWN_BYTES = 1 << 60
"""A plan reports at least this size if it knows nothing about it."""

SPARKS_OWN = 200
"""The default of spark.sql.shuffle.partitions (Spark's SQLConf)."""

FEW_FILES = 48
"""Up to this many partitions, a map task that writes one file for each is as fast as one that sorts.

Relative to 201 partitions, nine queries of TPC-H took 0.99 times as long with 48, 1.09 with 96, 1.15 with
200.
"""

SORTED = 201
"""The fewest partitions that Spark sorts: one more than spark.shuffle.sort.bypassMergeThreshold."""

GROSS = 8
"""A number has to be wrong by this factor before the same plan gets another one."""


def initial_count(
    question: InitialCount, settings: BatchSettings, written: int | None = None
) -> InitialCountAnswer:
    """Answer how many partitions to write.

    `written` is the number of bytes that these exchanges wrote last time, None if unknown or not to be used.
    """
    untouched = _untouched(question, settings)
    if untouched is not None:
        return InitialCountAnswer(group=question.group, partitions=None, record=untouched)
    bounds = _bounds(question, settings)
    waves = Waves(slots=question.slots, smallest=smallest_task(question.smallest, settings.volume))

    def tasks(size: int) -> int:
        return waves.fill(tasks_for(size, settings.volume, bounds), size, bounds.upper)

    # A number set by the user is a bound or is ignored: it does not show what Spark would choose.
    planned = question.planned if question.chosen is None else max(question.planned, SPARKS_OWN)
    is_advised = question.advised is not None and settings.volume < SMALLEST_TASK

    def partitions(size: int) -> int:
        # Never fewer than the slots: partitions cannot be split afterwards.
        count = SPARE * max(tasks(size), question.slots)
        # Spark's own setting joins partitions and adds none, so tasks that small are not worth it.
        worth = SPARE * max(size // SMALLEST_TASK, question.slots)
        return min(count, max(planned, worth)) if is_advised else count

    most = _most(question)
    expected = sum(exchange.bytes for exchange in question.exchanges)
    expected = expected if most is None else min(expected, most)
    # A plan's sizes are estimates: too few partitions cannot be corrected afterwards, too many are joined.
    safe = planned if most is None else min(planned, partitions(most))
    wanted = bounds.upper if settings.rules.writes_most else max(partitions(expected), safe)
    reason = "initial_from_bytes" if most is not None else "initial_unbounded"
    by_plan = clamp(wanted, bounds)
    count = _sorted(by_plan, bounds) if question.kept is None else question.kept
    if settings.rules.writes_most:
        reason = "initial_most"
    elif by_plan != wanted:
        reason = "initial_bounded"
    if question.kept is not None:
        reason = "initial_kept"
    if written is not None and not settings.rules.writes_most:
        by_written = _sorted(clamp(partitions(written), bounds), bounds)
        if max(count, by_written) >= GROSS * min(count, by_written):
            reason, count = "initial_corrected", by_written
    why = record(
        reason,
        before=question.planned,
        after=count,
        tasks=tasks(expected),
        wanted=wanted,
        bytes=expected,
        most=-1 if most is None else most,
        written=-1 if written is None else written,
        exchanges=len(question.exchanges),
        volume=settings.volume,
        slots=question.slots,
        lower=bounds.lower,
        upper=bounds.upper,
    )
    return InitialCountAnswer(group=question.group, partitions=count, record=why)


def _sorted(count: int, bounds: Bounds) -> int:
    """Return `count`, or more partitions if a map task would otherwise write many small files."""
    return SORTED if FEW_FILES < count < SORTED <= bounds.upper else count


def _most(question: InitialCount) -> int | None:
    """Return the most bytes that all exchanges can have, None if unknown."""
    total = 0
    for exchange in question.exchanges:
        if exchange.most is None:
            return None
        total += exchange.most
    return total


def _bounds(question: InitialCount, settings: BatchSettings) -> Bounds:
    """Return the bounds of the number; Spark's own number is within them unless a bound is configured."""
    bounds = settings.bounds(question.slots, question.chosen, question.parallelism)
    if settings.max_parallelism is None and question.chosen is None and not settings.rules.writes_most:
        bounds = evolve(bounds, upper=max(bounds.upper, question.planned, SORTED))
    return narrow(bounds, question.lower)


def _untouched(question: InitialCount, settings: BatchSettings) -> StageRecord | None:
    """Return why the number is left to Spark, None if it is not."""
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
