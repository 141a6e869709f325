"""What more executors cannot help: few source tasks, a step that made it worse, a fixed count.

Nor do they help where memory is missing and not cores, or where one task holds up all others.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from spark_elastic.core.bounds.reading import Reading
from spark_elastic.core.policies.autoscale.effect import Worse
from spark_elastic.core.policies.autoscale.measured import Measured
from spark_elastic.core.policies.autoscale.pressure import Pressure
from spark_elastic.core.policies.autoscale.skew import Hot, Skew
from spark_elastic.core.policies.view import QueryMetrics
from spark_elastic.core.turn import Number


@frozen(kw_only=True)
class Bottleneck:
    """More than `slots` do not help, for this `reason` with these `numbers`."""

    slots: int
    reason: str
    numbers: Mapping[str, Number] = field(factory=dict)


def bottleneck(query: QueryMetrics, known: Measured, current: int) -> Bottleneck | None:
    """Find what limits the slots that a query can use, which has `current` ones; None: nothing that is known.

    `known` is what its micro-batches tell.
    """
    limits = (
        _source_tasks(query, known.source_tasks),
        _hot_input(query, known.hot_input),
        _fixed_count(query),
        _worse(known.worse),
        _memory(known.pressure, current),
        _skew(known.skew, current),
    )
    found = [limit for limit in limits if limit is not None]
    return min(found, key=lambda limit: limit.slots) if found else None


def _source_tasks(query: QueryMetrics, tasks: int | None) -> Bottleneck | None:
    """Find that a query without a shuffle is read with as many tasks as its sources can have."""
    if tasks is None or not _reads_alone(query):
        return None
    return Bottleneck(slots=tasks, reason="autoscale_source_tasks", numbers={"tasks": tasks})


def _hot_input(query: QueryMetrics, hot: Hot | None) -> Bottleneck | None:
    """Find that one task reads most of the rows of a query without a shuffle, that of a full partition."""
    if hot is None or not _reads_alone(query):
        return None
    return Bottleneck(slots=hot.useful, reason="autoscale_hot_partition", numbers=hot.numbers)


def _reads_alone(query: QueryMetrics) -> bool:
    """Say whether a query has no shuffle, and no slot gets its sources another task."""
    if query.facts.stateful or any(sample.work is not None for sample in query.samples):
        return False
    whole = bool(query.samples) and query.samples[-1].whole
    return Reading(query.facts.sources, query.settings.divide_ordered, None).is_fixed(whole)


def _worse(worse: Worse | None) -> Bottleneck | None:
    """Find that a step up has made batches slower; it is taken back."""
    if worse is None:
        return None
    numbers: dict[str, Number] = {
        "more": worse.more,
        "before_ms": worse.before_ms,
        "after_ms": worse.after_ms,
    }
    return Bottleneck(slots=worse.slots, reason="autoscale_made_worse", numbers=numbers)


def _memory(pressure: Pressure | None, current: int) -> Bottleneck | None:
    """Find that memory is missing: what it has it keeps, since it may need the heaps that are there."""
    if pressure is None:
        return None
    numbers: dict[str, Number] = {
        "lost_percent": round(100 * pressure.share),
        "gc_percent": round(100 * pressure.gc_share),
        "spilled_bytes": pressure.spilled_bytes,
    }
    return Bottleneck(slots=current, reason="autoscale_memory", numbers=numbers)


def _skew(skew: Skew | None, current: int) -> Bottleneck | None:
    """Find that one task holds up the others, which more slots than are useful beside it do not shorten.

    None is given back for that: the stages that read the sources may use more.
    """
    if skew is None:
        return None
    numbers: dict[str, Number] = {"longest_ms": skew.longest_ms, "median_ms": skew.median_ms}
    return Bottleneck(slots=max(current, skew.useful), reason="autoscale_skew", numbers=numbers)


def _fixed_count(query: QueryMetrics) -> Bottleneck | None:
    if query.movable or not query.partitions:
        return None
    numbers: dict[str, Number] = {"partitions": query.partitions}
    return Bottleneck(slots=query.partitions, reason="autoscale_fixed_count", numbers=numbers)
