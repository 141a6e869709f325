"""What more executors cannot help: few source tasks, a step that made it worse, a fixed count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import field, frozen

from spark_elastic.core.policies.autoscale.measured import measured
from spark_elastic.core.policies.view import QueryFigures, Sample
from spark_elastic.core.turn import Number

_HOT = 0.5
"""The share of the rows behind from which on one partition holds up a query."""
_FEWEST_PARTITIONS = 3


@frozen(kw_only=True)
class Bottleneck:
    """More than `slots` do not help, for this `reason` with these `numbers`."""

    slots: int
    reason: str
    numbers: Mapping[str, Number] = field(factory=dict)


def bottleneck(query: QueryFigures) -> Bottleneck | None:
    """Find what limits the slots that a query can use, None: nothing that is known."""
    found = [limit for limit in (_source_tasks(query), _fixed_count(query), _worse(query)) if limit]
    return min(found, key=lambda limit: limit.slots) if found else None


def hot_share(latest: Sample) -> float | None:
    """Tell which share of the rows behind is in one partition, None: no more than others have, or unknown."""
    offsets, behind = latest.offsets_behind, latest.behind
    if offsets is None or not behind or offsets.avg <= 0:
        return None
    partitions = behind / offsets.avg
    share = offsets.max / behind
    return share if partitions >= _FEWEST_PARTITIONS and share > _HOT else None


def _source_tasks(query: QueryFigures) -> Bottleneck | None:
    """Find that a query without a shuffle that keeps state is read with fewer tasks than it had slots."""
    if query.facts.stateful or any(source.divisible for source in query.facts.sources):
        return None
    tasks = _tasks_below_slots((*query.earlier, *query.samples))
    if tasks is None:
        return None
    return Bottleneck(slots=max(1, tasks), reason="autoscale_source_tasks", numbers={"tasks": tasks})


def _tasks_below_slots(samples: Sequence[Sample]) -> int | None:
    """Return the most tasks that its sources were read with where there were more slots than that."""
    short = [
        sample.source_tasks
        for sample in samples
        if sample.steady and sample.source_tasks is not None and sample.source_tasks < sample.slots
    ]
    return max(short) if short else None


def _worse(query: QueryFigures) -> Bottleneck | None:
    """Find that a step up has made batches slower; it is taken back."""
    worse = measured(query).worse
    if worse is None:
        return None
    numbers: dict[str, Number] = {
        "more": worse.more,
        "before_ms": worse.before_ms,
        "after_ms": worse.after_ms,
    }
    return Bottleneck(slots=worse.slots, reason="autoscale_made_worse", numbers=numbers)


def _fixed_count(query: QueryFigures) -> Bottleneck | None:
    if query.movable or not query.partitions:
        return None
    numbers: dict[str, Number] = {"partitions": query.partitions}
    return Bottleneck(slots=query.partitions, reason="autoscale_fixed_count", numbers=numbers)
