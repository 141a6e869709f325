"""Which number of partitions a running query is to have, and how: in place, or with re-partitioned state."""

from __future__ import annotations

from spark_elastic.core.bounds.reading import Reading
from spark_elastic.core.rescale.reserve import (
    count_with_reserve,
    has_reserve,
    is_dear,
    is_used_up,
    overruns,
)
from spark_elastic.core.rescale.situation import (
    ENDING_TRIGGERS,
    Choice,
    Situation,
    gain_of,
    is_beyond_bounds,
    nothing,
    possible_count,
    repartition_obstacle,
    untouched,
    wanted_count,
)


def is_increase_enough(current: int, available: int, min_increase: int) -> bool:
    """Say whether going from `current` to `available` is worth moving state for.

    Both are the parallelism of all vertices, added up. Shrinking always is, growing if it is by
    `min_increase` at least.
    """
    return available < current or available - current >= max(1, min_increase)


def choose_running(now: Situation) -> Choice:
    """Choose what to do about the count of a query that runs with `now.partitions`."""
    why_not = untouched(now.facts, now.settings)
    if why_not is not None:
        return nothing(now, why_not)
    possible = possible_count(now)
    if possible is None:
        return _keep_without_slots(now)
    if not now.facts.stateful:
        return _choose_in_place(now, possible)
    if now.facts.trigger in ENDING_TRIGGERS:
        return nothing(now, "never_rescaled")
    obstacle = repartition_obstacle(now.facts, now.provider, now.checkpoint_format)
    if obstacle is not None:
        return nothing(now, obstacle)
    return _choose_move(now, possible)


def _keep_without_slots(now: Situation) -> Choice:
    """Leave a query alone whose lower bounds are not met: it is never stopped for them."""
    shortage = now.shortage
    if shortage is None or shortage.total == 0:
        return nothing(now, "all_executors_lost")
    if shortage.ahead == 0:
        return nothing(now, "below_lower_bounds")
    return nothing(now, "lower_bounds_of_others", numbers=shortage.numbers())


def _choose_in_place(now: Situation, possible: int) -> Choice:
    if not now.facts.in_place:
        return nothing(now, "untouched_stateless")
    if now.reading is not None:
        return _choose_reading(now, now.reading, possible)
    if has_reserve(now):
        possible = count_with_reserve(now, possible)
    if possible == now.partitions:
        return nothing(now, "parallelism_fits", after=possible)
    return Choice(
        way="in_place",
        reason="in_place",
        partitions=possible,
        before=now.partitions,
        after=possible,
        numbers={"slots": now.slots},
    )


def _choose_reading(now: Situation, reading: Reading, possible: int) -> Choice:
    """Choose in how many tasks the sources of a query without a shuffle are read."""
    if not reading.can_follow:
        return nothing(now, "sources_stay", numbers={"stuck": reading.stuck, "help": reading.help})
    if now.brings_executors:
        return nothing(now, "sources_bring_executors")
    tasks = min(now.slots, now.settings.max_parallelism)
    if tasks == reading.tasks:
        return nothing(now, "sources_fit", after=tasks)
    return Choice(
        way="in_place",
        reason="sources_follow",
        partitions=possible,
        before=reading.tasks,
        after=tasks,
        numbers={"slots": now.slots},
        reads=tasks,
    )


def _choose_move(now: Situation, possible: int) -> Choice:
    assert now.partitions is not None
    # Whatever the model expects of it: who sets a longest interval wants all that the slots allow.
    forced = now.overdue and possible > now.partitions
    if has_reserve(now) and not forced and not is_beyond_bounds(now):
        return _choose_reserve(now, possible)
    wanted = possible if forced else wanted_count(now, possible)
    if wanted == now.partitions == possible:
        return nothing(now, "parallelism_fits", after=possible)
    # Who has slots to spare hears what more partitions would save: with other batches they may pay.
    target = possible if wanted == now.partitions else wanted
    gain = gain_of(now, target)
    current, available = _of_all_vertices(now, now.partitions), _of_all_vertices(now, target)
    numbers = {
        **gain.numbers(),
        "increase": available - current,
        "lower": now.requirements.lower,
        "upper": now.requirements.upper,
    }

    def hold(reason: str) -> Choice:
        return nothing(now, reason, after=target, numbers=numbers, compared=(now, possible))

    if wanted == now.partitions:
        return hold("gain_too_small")
    if target == now.failed_target:
        return hold("failed_before")
    always = now.settings.rescale_policy == "always"
    beyond = is_beyond_bounds(now)
    usual = "rescale_into_bounds" if beyond else "rescale_always" if always else "rescale_pays"
    shortfall = None if always or beyond else gain.shortfall()
    is_enough = is_increase_enough(current, available, now.settings.min_parallelism_increase)
    if shortfall is None and not (beyond or is_enough):
        shortfall = "increase_too_small"
    if shortfall is not None and not forced:
        return hold(shortfall)
    return Choice(
        way="move",
        reason=usual if shortfall is None else "rescale_overdue",
        partitions=target,
        before=now.partitions,
        after=target,
        numbers=numbers,
        gain=gain,
        compared=(now, possible),
    )


def _choose_reserve(now: Situation, possible: int) -> Choice:
    """Choose for a query whose slots follow its load: it moves its state seldom."""
    assert now.partitions is not None
    target = count_with_reserve(now, possible)
    used_up, dear = is_used_up(now, possible), is_dear(now, target)
    if target == now.partitions or not (used_up or dear):
        return nothing(now, "reserve_left", after=now.partitions)
    gain = gain_of(now, target)
    numbers = {**gain.numbers(), "lower": now.requirements.lower, "upper": now.requirements.upper}
    reason = "failed_before" if target == now.failed_target else None
    if reason is None and now.rescales and not (used_up and overruns(now)):
        reason = "moved_lately"
    if reason is not None:
        return nothing(now, reason, after=target, numbers=numbers, compared=(now, possible))
    return Choice(
        way="move",
        reason="reserve_used_up" if used_up else "reserve_dear",
        partitions=target,
        before=now.partitions,
        after=target,
        numbers=numbers,
        gain=gain,
        compared=(now, possible),
    )


def _of_all_vertices(now: Situation, partitions: int) -> int:
    """Add up the parallelism of all vertices of a query with so many partitions.

    Its sources have the slots that its shuffle has, within their own upper bounds if any are declared.
    """
    bounds = now.requirements.sources
    unbounded = len(now.facts.sources) - len(bounds)
    return (1 + unbounded) * partitions + sum(min(source.upper, partitions) for source in bounds)
