"""The number of tasks of a source, and so the size of the splits of a file scan."""

from __future__ import annotations

from spark_elastic.core.batch.balance import Waves
from spark_elastic.core.batch.questions import (
    JoinPartitions,
    JoinPartitionsAnswer,
    SplitOffsets,
    SplitOffsetsAnswer,
    SplitSize,
    SplitSizeAnswer,
    StageRecord,
    record,
)
from spark_elastic.core.batch.settings import BatchSettings


def source_bound(settings: BatchSettings, slots: int) -> int:
    """Return the most tasks of a source: the bound for sources, else that of every stage."""
    chosen = settings.default_source_parallelism
    return settings.bounds(slots).upper if chosen is None else chosen


def split_size(question: SplitSize, settings: BatchSettings) -> SplitSizeAnswer:
    """Answer how many tasks share the files of a scan.

    Columns that a scan leaves out count as read: only the reader of a file knows their size.
    """

    def answer(why: StageRecord) -> SplitSizeAnswer:
        return SplitSizeAnswer(scan=question.scan, tasks=why.after, record=why)

    before = question.planned
    if not (settings.enabled and settings.sources_enabled):
        return answer(record("split_off", before=before))
    total = question.bytes + question.openings * question.smallest
    if total < 1:
        return answer(record("split_nothing", before=before))
    if question.slots < 1 and settings.rules.fills_waves:
        return answer(record("split_no_slots", before=before, bytes=question.bytes))
    largest, opening = max(1, question.largest), question.smallest
    # As Spark counts: opening the last file of a task is not part of its largest split.
    wanted = max(-(-total // (largest + opening)), -(-question.bytes // largest))
    if settings.rules.fills_waves:
        waves = Waves(slots=question.slots, smallest=max(1, opening))
        wanted = max(waves.fill(wanted, total, total), min(before, question.slots))
    wanted = min(wanted, question.most or wanted)
    tasks = min(wanted, source_bound(settings, question.slots))
    numbers = {
        "bytes": question.bytes,
        "openings": question.openings,
        "opening": opening,
        "split": -(-total // tasks),
        "slots": question.slots,
        "wanted": wanted,
    }
    reason = "split_bounded" if tasks < wanted else "split_from_bytes"
    return answer(record(reason, before=before, after=tasks, **numbers))


def split_offsets(question: SplitOffsets, settings: BatchSettings) -> SplitOffsetsAnswer:
    """Answer the minimum number of tasks that read Kafka: the default of sources, else one per slot.

    The size of its records is unknown.
    """

    def answer(why: StageRecord) -> SplitOffsetsAnswer:
        return SplitOffsetsAnswer(scan=question.scan, tasks=why.after, record=why)

    if not (settings.enabled and settings.sources_enabled):
        return answer(record("split_off"))
    default = settings.default_source_parallelism
    if default is None and not settings.rules.fills_waves:
        return answer(record("offsets_by_partition"))
    if not settings.divide_ordered:
        return answer(record("offsets_in_order"))
    if question.late and not settings.kafka_latest:
        return answer(record("offsets_late"))
    if default is not None:
        return answer(record("offsets_default", after=default, slots=question.slots))
    if question.slots < 1:
        return answer(record("offsets_no_slots"))
    tasks = min(question.slots, source_bound(settings, question.slots))
    return answer(record("offsets_divided", after=tasks, slots=question.slots))


def join_partitions(question: JoinPartitions, settings: BatchSettings) -> JoinPartitionsAnswer:
    """Answer how many tasks read a source that makes its own partitions: no more than the bound.

    Only a configured bound counts, since joining partitions here takes no account of their sizes.
    """

    def answer(why: StageRecord) -> JoinPartitionsAnswer:
        return JoinPartitionsAnswer(scan=question.scan, tasks=why.after, record=why)

    before, source = question.planned, question.source
    if not (settings.enabled and settings.sources_enabled):
        return answer(record("split_off", before=before))
    most = settings.default_source_parallelism or settings.max_parallelism
    if most is not None and before > most:
        if question.joinable:
            return answer(record("source_joined", before=before, after=most, source=source))
        return answer(record("source_relied_on", before=before, source=source, most=most))
    if before == 1:
        return answer(record("source_whole", before=before, source=source))
    return answer(record("source_as_made", before=before, source=source))
