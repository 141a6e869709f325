"""What micro-batches take, as it is kept beside a query's checkpoint for the next driver.

After an outage of the driver the first micro-batch of the next one has the largest backlog of all, and
nothing of its own to be limited by.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spark_elastic.core import events as ev
from spark_elastic.core.keep_orders import keep_text
from spark_elastic.core.kept_text import Unusable, lines_of, unusable
from spark_elastic.core.policies.autoscale.model import BatchTime, fit
from spark_elastic.core.policies.memory import QueryMemory, newest_alike
from spark_elastic.core.policies.view import Sample
from spark_elastic.core.query.record import QueryRecord
from spark_elastic.core.turn import Turn

_FORM = "spark-elastic batches 1"
_MOST = 16
_ALIKE = 4
_AGAIN_MS = 600_000
"""What is kept is replaced no sooner: the storage of checkpoints may be slow, and charges by the request."""
_LOOK_MS = 10_000
"""How often it is looked whether there is something to keep: a decision is made each second."""
_OTHER = 0.25
"""What is kept stays as it is where it says nothing that differs by more."""
_TRUSTED = 0.55
"""The least confidence of what is kept, a little more than what micro-batches are limited by."""


def write(samples: Iterable[Sample]) -> str:
    """Return the text that is kept: a line of its form, and for some micro-batches one, the newest last.

    A line has rows, slots, partitions and ms of a micro-batch.
    """
    kept = newest_alike([one for one in samples if _tells(one)], _ALIKE, _MOST)
    batches = (
        f"{max(1, round(one.rows_per_batch))} {one.slots} {one.partitions} {one.duration_ms}" for one in kept
    )
    return "\n".join((_FORM, *batches)) + "\n"


def _tells(sample: Sample) -> bool:
    """Say whether a micro-batch tells what others take."""
    return sample.steady and min(sample.input_rows, sample.slots, sample.partitions) > 0


def read(text: str, at: int) -> tuple[Sample, ...]:
    """Read what `write` has written, as micro-batches that ended `at` (epoch ms). Raises Unusable."""
    return tuple(_sample(line, at) for line in lines_of(text, _FORM))


def _sample(line: str, at: int) -> Sample:
    try:
        rows, slots, partitions, took_ms = (int(part) for part in line.split())
        if min(rows, slots, partitions) < 1 or took_ms < 0:
            raise ValueError("rows, slots and partitions are 1 or more, ms 0 or more")
    except ValueError as error:
        raise unusable(line, str(error)) from error
    return Sample(
        duration_ms=took_ms, gap_ms=None, input_rows=rows, partitions=partitions, slots=slots,
        at=at, started=at - took_ms,
    )  # fmt: skip


def recall_batches(record: QueryRecord, memory: QueryMemory, turn: Turn) -> None:
    """Take up what is kept beside the checkpoint of a query of which nothing is known yet."""
    memory.run = record.run
    text = record.facts.kept_batches
    if text is None or memory.samples:
        return
    try:
        memory.earlier = read(text, turn.now)
    except Unusable as error:
        turn.report("kept_batches_unusable", query=record.facts.query, error=str(error))
        return
    memory.kept, memory.keep_from = text, turn.now + _AGAIN_MS
    turn.report("batches_recalled", query=record.facts.query, batches=len(memory.earlier))


def keep_batches(record: QueryRecord, memory: QueryMemory, turn: Turn) -> None:
    """Order that what the micro-batches of a query take outlives the driver, where that is news."""
    if turn.settings.advise_only or record.facts.trigger != "processing_time":
        return  # nothing outlives one who only advises; other triggers have no batches that repeat
    if turn.now < memory.keep_from:
        return
    memory.keep_from = turn.now + _LOOK_MS
    text = write((*memory.earlier, *memory.samples))
    model = fit(read(text, turn.now))
    if model is None or model.confidence < _TRUSTED:
        return
    memory.keep_from = turn.now + _AGAIN_MS
    if memory.kept and not _is_news(fit(read(memory.kept, turn.now)), model, memory.samples):
        return
    memory.kept = text
    memory.keeps = keep_text(record, "batches", text, turn)


def batches_not_kept(event: ev.ActionFailed, memory: QueryMemory) -> None:
    """Take in that an order has failed: if it was this one, the next text is news."""
    if event.action == memory.keeps:
        memory.kept = ""


def _is_news(before: BatchTime | None, now: BatchTime, samples: Sequence[Sample]) -> bool:
    """Say whether one of the last micro-batches would have taken another time by what is kept."""
    if before is None:
        return True
    read_some = [sample for sample in samples if sample.input_rows > 0]
    known = [(sample.rows_per_batch, sample.parallelism) for sample in read_some]
    return any(
        abs(before.batch_ms(rows, slots) - now.batch_ms(rows, slots)) > _OTHER * now.batch_ms(rows, slots)
        for rows, slots in known
    )
