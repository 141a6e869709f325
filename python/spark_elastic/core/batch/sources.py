"""How many tasks a source has, and so how large the splits of a file scan are."""

from __future__ import annotations

from collections.abc import Iterable

from spark_elastic.core.batch.questions import SplitOffsets, SplitOffsetsAnswer, SplitSize, SplitSizeAnswer
from spark_elastic.core.batch.record import Record, record
from spark_elastic.core.batch.settings import BatchSettings
from spark_elastic.core.batch.waves import Waves

UNKNOWN_BYTES = 1 << 60
"""What a plan says of which it knows nothing is at least this."""


def source_bound(default: int | None, global_max: int | None, stage_max: int | None) -> int:
    """Choose the most tasks of a source: the default for sources, else the global bound; never above its own.

    Raises ValueError if none of them is known.
    """
    wanted = global_max if default is None else default
    known = [number for number in (wanted, stage_max) if number is not None]
    if not known:
        raise ValueError("a source needs a bound of its own, one for sources, or the global one")
    return min(known)


def merge_inferred(numbers: Iterable[int]) -> int | None:
    """Take the highest of what sources infer for themselves; 0 and less is no opinion, None: no opinions."""
    return max((number for number in numbers if number > 0), default=None)


def source_parallelism(
    inferred: Iterable[int], *, default: int | None, global_max: int | None, stage_max: int | None
) -> int:
    """Take what sources infer, within their bound, or else the bound. Raises ValueError if there is none."""
    bound = source_bound(default, global_max, stage_max)
    merged = merge_inferred(inferred)
    return bound if merged is None else min(merged, bound)


def split_size(question: SplitSize, settings: BatchSettings) -> SplitSizeAnswer:
    """Answer how large the splits of a scan are to be."""

    def answer(split: int | None, why: Record) -> SplitSizeAnswer:
        return SplitSizeAnswer(scan=question.scan, split=split, tasks=why.after, record=why)

    before, total = question.planned, question.bytes
    if not (settings.enabled and settings.sources_enabled):
        return answer(None, record("split_off", before=before))
    if not 0 < total < UNKNOWN_BYTES:
        return answer(None, record("split_unknown", before=before, bytes=total))
    if question.slots < 1 and settings.rules.fills_waves:
        return answer(None, record("split_no_slots", before=before, bytes=total))
    smallest = max(1, min(question.smallest, question.largest))
    waves = Waves(slots=question.slots, smallest=smallest)
    bounds = settings.bounds(question.slots)
    needed = -(-total // max(question.largest, smallest))
    wanted = waves.fill(needed, total, total) if settings.rules.fills_waves else needed
    wanted = min(wanted, question.most or wanted)
    tasks = source_parallelism(
        [wanted], default=settings.default_source_parallelism, global_max=bounds.upper, stage_max=None
    )
    split = max(smallest, -(-total // tasks))
    numbers = {"bytes": total, "split": split, "slots": question.slots, "wanted": wanted}
    reason = "split_bounded" if tasks < wanted else "split_from_bytes"
    why = record(reason, before=before, after=tasks, **numbers)
    return answer(split, why)


def split_offsets(question: SplitOffsets, settings: BatchSettings) -> SplitOffsetsAnswer:
    """Answer in how many tasks Kafka is read at least: one per slot, or as many as sources may have."""

    def answer(why: Record) -> SplitOffsetsAnswer:
        return SplitOffsetsAnswer(scan=question.scan, tasks=why.after, record=why)

    if not (settings.enabled and settings.sources_enabled):
        return answer(record("split_off"))
    if not settings.rules.fills_waves:
        return answer(record("offsets_by_partition"))
    if question.late and not settings.kafka_latest:
        return answer(record("offsets_late"))
    if question.slots < 1:
        return answer(record("offsets_no_slots"))
    tasks = source_parallelism(
        [question.slots],
        default=settings.default_source_parallelism,
        global_max=settings.bounds(question.slots).upper,
        stage_max=None,
    )
    return answer(record("offsets_divided", after=tasks, slots=question.slots))
