"""Which ranges the tasks of a group read, decided after its map side has run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from spark_elastic.core.batch.decider import Plan, decide
from spark_elastic.core.batch.inputs import Input, added
from spark_elastic.core.batch.number import narrow
from spark_elastic.core.batch.questions import Left, MapRange, Ranges, RangesAnswer, Spec, WrittenExchange
from spark_elastic.core.batch.record import Record, record
from spark_elastic.core.batch.settings import BatchSettings
from spark_elastic.core.batch.splitting import Splitting, splitting
from spark_elastic.core.batch.waves import SMALLEST_TASK, Waves
from spark_elastic.core.reasons import SKEW_KEPT
from spark_elastic.core.requirements import Bounds

_LEFT: Mapping[Left, str] = {"skew": "ranges_left_skew", "local": "ranges_left_local"}


def ranges(question: Ranges, settings: BatchSettings) -> RangesAnswer:
    """Answer what each task reads."""
    shuffles = [exchange for exchange in question.exchanges if not exchange.broadcast]
    untouched = _untouched(question, shuffles, settings)
    if untouched is not None:
        return RangesAnswer(group=question.group, specs=None, record=untouched)
    count = len(shuffles[0].bytes)
    split = splitting(question, settings)
    inputs = [_input(place, exchange, split) for place, exchange in enumerate(question.exchanges)]
    bounds = narrow(settings.bounds(question.slots), question.lower, question.upper)
    # Only a split makes more ranges than partitions; nobody can ask for them.
    upper = bounds.upper if any(item.rows for item in inputs) else min(bounds.upper, count)
    bounds = Bounds(lower=min(bounds.lower, count, upper), upper=upper)
    waves = Waves(slots=question.slots, smallest=min(SMALLEST_TASK, settings.volume))
    plan = decide(
        inputs,
        settings.volume,
        bounds,
        preset=settings.rules,
        skew=settings.skew,
        waves=waves if settings.rules.fills_waves else None,
        barriers=True,
    )
    specs, sizes = _specs(inputs, plan)
    return _answer(question, settings, bounds, shuffles, specs, sizes, split)


def _untouched(
    question: Ranges, shuffles: Sequence[WrittenExchange], settings: BatchSettings
) -> Record | None:
    """Say why the ranges are left to Spark, None if they are not."""
    if not (settings.enabled and settings.ranges_enabled):
        return record("ranges_off")
    if not shuffles:
        return record("ranges_nothing")
    counts = sorted({len(exchange.bytes) for exchange in shuffles})
    count = counts[0]
    explicit = [exchange.id for exchange in shuffles if exchange.explicit]
    if explicit:
        return record("ranges_explicit", before=count, exchanges=", ".join(explicit))
    if len(counts) > 1:
        return record("ranges_counts_differ", counts=", ".join(map(str, counts)))
    if count == 0:
        return record("ranges_nothing")
    unknown = [exchange.id for exchange in shuffles if min(exchange.bytes) < 0]
    if unknown:
        return record("ranges_unknown", before=count, exchanges=", ".join(unknown))
    if question.left is not None:
        written = sum(sum(exchange.bytes) for exchange in shuffles)
        return record(_LEFT[question.left], before=count, bytes=written)
    if count == 1 and not any(exchange.large for exchange in shuffles):
        return record("ranges_single", before=count, bytes=sum(exchange.bytes[0] for exchange in shuffles))
    return None


def _input(place: int, exchange: WrittenExchange, split: Splitting) -> Input:
    """Make an input; of the pieces of its partitions as well if they may be split, where those are known."""
    large = exchange.large if place in split.places else ()
    known = [partition for partition in large if partition.maps and min(partition.maps) >= 0]
    partitions = len(known[0].maps) if known else 1
    return Input(
        columns=exchange.bytes,
        partitions=partitions,
        rows={item.partition: item.maps for item in known if len(item.maps) == partitions},
        broadcast=exchange.broadcast,
        side=place,
        apart=bool(known),
    )


def _specs(inputs: Sequence[Input], plan: Plan) -> tuple[tuple[Spec, ...], Sequence[int]]:
    """Return what each task reads, and the bytes of each task."""
    shuffles = [(place, item) for place, item in enumerate(inputs) if not item.broadcast]
    columns = added([item.columns for _, item in shuffles])
    if plan.parallelism == len(columns) and not any(item.rows for item in inputs):
        return tuple(Spec(start=start, end=start + 1) for start in range(len(columns))), columns
    specs = []
    sizes = []
    for task in range(plan.parallelism):
        size = 0
        maps = []
        for place, item in shuffles:
            (block,) = plan.reads[place][task]
            size += item.bytes_in(block)
            if block.partitions != (0, item.partitions):
                maps.append(MapRange(exchange=place, start=block.partitions[0], end=block.partitions[1]))
        specs.append(Spec(start=block.subpartitions[0], end=block.subpartitions[1], maps=tuple(maps)))
        sizes.append(size)
    return tuple(specs), sizes


def _answer(
    question: Ranges,
    settings: BatchSettings,
    bounds: Bounds,
    shuffles: Sequence[WrittenExchange],
    specs: tuple[Spec, ...],
    sizes: Sequence[int],
    found: Splitting,
) -> RangesAnswer:
    count, tasks = len(shuffles[0].bytes), len(sizes)
    skewed = frozenset().union(*found.skewed.values())
    split = {spec.start for spec in specs if spec.maps}
    read, largest = sum(sizes), max(sizes)
    if split:
        reason = "ranges_split"
    elif skewed:
        reason = "ranges_skewed"
    elif tasks == count:
        reason = "ranges_as_written"
    elif tasks == bounds.upper and largest > settings.volume:
        reason = "ranges_bounded"
    else:
        reason = "ranges_balanced"
    why = record(
        reason,
        before=count,
        after=tasks,
        bytes=sum(sum(exchange.bytes) for exchange in shuffles),
        read_bytes=read,
        largest=largest,
        ratio=round(largest * tasks / read, 2) if read else 1.0,
        skewed=len(skewed),
        split=len(split),
        kept=SKEW_KEPT[found.kept],
        volume=settings.volume,
        slots=question.slots,
        lower=bounds.lower,
        upper=bounds.upper,
        exchanges=len(shuffles),
    )
    return RangesAnswer(group=question.group, specs=specs, record=why)
