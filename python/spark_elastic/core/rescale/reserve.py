"""How many partitions a query has whose slots follow its load: so many that its slots may change without it.

Where executors come and go with the load, a state that followed each of them would hardly come to rest. A
query that has more partitions than slots runs some of them one after the other, so it has a reserve instead,
as Flink has more key groups than subtasks. Its state is moved only where the reserve is used up, so that
slots would stand empty, or where the partitions cost slots of their own; and then once within the horizon,
unless its micro-batches no longer fit into their interval.
"""

from __future__ import annotations

from spark_elastic.core.rescale.gain import OVERHEAD_MS, waves
from spark_elastic.core.rescale.situation import GROWTH, HORIZON_MS, Situation

_COST = 0.05
"""The part of its slots' time that the reserve may cost, by what a partition usually costs without any data.

What was measured in several waves does not tell that cost from the work.
"""
_MOST = 2 * GROWTH
_USED = 2 / 3
"""The part of the slots that the partitions have to keep busy."""
_DEAR = 0.25
"""The part of the slots' time that partitions may cost before fewer are better, one slot at least."""


def has_reserve(now: Situation) -> bool:
    """Say whether the slots of this query follow its load."""
    return now.settings.measures and now.settings.rescale_policy != "always"


def count_with_reserve(now: Situation, possible: int) -> int:
    """Return the count that leaves room for growth beyond the `possible` parallelism of now.

    It is no more than plain Spark would have taken, unless there are more slots, nor than the bounds allow.
    """
    times = int(_COST * now.facts.trigger_ms / OVERHEAD_MS[now.provider])
    most = now.requirements.shuffle.parallelism(max(possible, now.facts.session_partitions))
    return max(possible, min(possible * max(1, min(_MOST, times)), most))


def is_used_up(now: Situation, possible: int) -> bool:
    """Say whether the slots would be idle for too much of the time with the present count."""
    assert now.partitions is not None
    kept_busy = now.partitions / waves(now.partitions, possible)
    return now.partitions < now.requirements.upper and kept_busy < _USED * possible


def is_dear(now: Situation, target: int) -> bool:
    """Say whether the present count costs so many slots more than `target` that a move pays.

    What is saved is counted in the time of slots within the horizon, and so is the pause. One that expects
    slots will soon have more to run them on.
    """
    assert now.partitions is not None
    if now.facts.trigger_ms <= 0 or target >= now.partitions or now.expects_slots:
        return False
    saved = (now.partitions - target) * OVERHEAD_MS[now.provider] / now.facts.trigger_ms
    pays = saved * HORIZON_MS > now.rescale_cost_ms * now.slots
    return pays and saved >= max(1.0, _DEAR * now.slots)


def overruns(now: Situation) -> bool:
    """Say whether the micro-batches of now take more than their interval, or would without a limit."""
    assert now.partitions is not None
    return now.behind or now.model.batch_ms(now.partitions, now.slots) > max(now.facts.trigger_ms, 1)
