"""The target partition count of a query, and how to reach it: in place, or with re-partitioned state.

The gain model sees only the shuffle's count. A source in a slot-sharing group of its own has slots set aside,
but is still read in the number of tasks that its bounds say.
"""

from __future__ import annotations

from attrs import evolve

from spark_elastic.core.load.reading import Reading
from spark_elastic.core.rescale.gain import OVERHEAD_MS, waves
from spark_elastic.core.rescale.situation import (
    ENDING_TRIGGERS,
    GROWTH,
    HORIZON_MS,
    Choice,
    Situation,
    converts,
    gain_of,
    is_beyond_bounds,
    makes_rescalable,
    nothing,
    possible_count,
    repartition_obstacle,
    untouched,
    wanted_count,
)

# The number of partitions of a query whose slots follow its load: enough that its slots may change without
# it.
# Where executors come and go with the load, a state that followed each change would hardly come to rest. A
# query that has more partitions than slots runs some of them one after the other. So it has a reserve
# instead, as Flink has more key groups than subtasks. Its state is moved only where the reserve is used up,
# so that slots would be empty, or where the partitions cost slots of their own. It is then moved once within
# the horizon, unless its micro-batches no longer fit into their interval.


_COST = 0.05
"""The share of its slots' time that the reserve may cost, at the usual cost of a partition without data.

Measurements with several waves do not separate that cost from the work.
"""
_MOST = 2 * GROWTH
_USED = 2 / 3
"""The share of the slots that the partitions must keep busy."""
_DEAR = 0.25
"""The share of the slots' time that partitions may cost before fewer are better, at least one slot."""


def has_reserve(now: Situation) -> bool:
    """Return whether the slots of this query follow its load."""
    return now.settings.measures and now.settings.rescale_policy != "always"


def count_with_reserve(now: Situation, possible: int) -> int:
    """Return the count that leaves room for growth beyond the currently `possible` parallelism.

    It exceeds neither the bounds nor plain Spark's count, the latter unless there are more slots.
    """
    times = int(_COST * now.facts.trigger_ms / OVERHEAD_MS[now.provider])
    most = now.requirements.shuffle.parallelism(max(possible, now.facts.session_partitions))
    return max(possible, min(possible * max(1, min(_MOST, times)), most))


def is_used_up(now: Situation, possible: int) -> bool:
    """Return whether the slots would be idle for too much of the time with the present count."""
    assert now.partitions is not None
    kept_busy = now.partitions / waves(now.partitions, possible)
    return now.partitions < now.requirements.upper and kept_busy < _USED * possible


def is_dear(now: Situation, target: int) -> bool:
    """Return whether the present count costs enough slots more than `target` that a move pays.

    Both the saving within the horizon and the pause are counted in slot time. A query that expects slots will
    soon have more to run its partitions on.
    """
    assert now.partitions is not None
    if now.facts.trigger_ms <= 0 or target >= now.partitions or now.expects_slots:
        return False
    saved = (now.partitions - target) * OVERHEAD_MS[now.provider] / now.facts.trigger_ms
    pays = saved * HORIZON_MS > now.cost.total_ms * now.slots
    return pays and saved >= max(1.0, _DEAR * now.slots)


def overruns(now: Situation) -> bool:
    """Return whether the current micro-batches take more than their interval, or would without a limit."""
    assert now.partitions is not None
    return now.behind or now.model.batch_ms(now.partitions, now.slots) > max(now.facts.trigger_ms, 1)


def is_increase_enough(current: int, available: int, min_increase: int) -> bool:
    """Return whether going from `current` to `available` is worth moving state for.

    Both are the parallelism of all vertices, added up. Shrinking always is, growing only by at least
    `min_increase`.
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
    obstacle = repartition_obstacle(now.facts, now.provider, now.settings)
    if obstacle is not None:
        return nothing(now, obstacle)
    return _choose_move(now, possible)


def _keep_without_slots(now: Situation) -> Choice:
    """Leave a query alone that lacks its lower bounds: a running one is never stopped for them."""
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
    """Choose the number of tasks that read the sources of a query without a shuffle."""
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
    # Independent of the model's estimate: a longest interval asks for all the growth that the slots allow.
    forced = now.overdue and possible > now.partitions
    if has_reserve(now) and not forced and not is_beyond_bounds(now):
        return _choose_reserve(now, possible)
    wanted = possible if forced else wanted_count(now, possible)
    if wanted == now.partitions == possible:
        return nothing(now, "parallelism_fits", after=possible)
    # Without a better count, report the savings of more partitions: they may pay with other batches.
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
    """Choose for a query whose slots follow its load: it rarely moves its state."""
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
    """Add up the parallelism of all vertices of a query with this many partitions.

    Its sources have the slots of its shuffle, within their own upper bounds if any are declared.
    """
    bounds = now.requirements.sources
    unbounded = len(now.facts.sources) - len(bounds)
    return (1 + unbounded) * partitions + sum(min(source.upper, partitions) for source in bounds)


# ---- The number of partitions that a query starts with.


def choose_start(now: Situation) -> Choice:
    """Choose the count that a query starts with, after its submission or after a stop."""
    why_not = untouched(now.facts, now.settings)
    if why_not is not None:
        return nothing(now, why_not)
    possible = possible_count(now)
    if possible is None and (now.shortage is None or now.shortage.awaited):
        return nothing(now, "start_without_resources")
    if now.facts.stateful and now.partitions is not None and now.recovering:
        # Its last batch may have been started: that one must run with the partitions that it was planned for.
        return Choice(
            way="start",
            reason="start_after_failure",
            partitions=now.partitions,
            before=now.partitions,
            after=now.partitions,
        )
    if possible is None:
        return _choose_for_tasks(now)
    if now.facts.stateful and now.partitions is not None:
        return _choose_start_of_checkpoint(now, possible)
    if _is_for_ever(now):
        return _choose_for_growth(now, possible)
    if now.brings_executors:
        return _choose_for_tasks(now)
    numbers: dict[str, float | int | str] = {
        "slots": now.slots,
        "session": now.facts.session_partitions,
        "bound_by": now.requirements.bound_by,
    }
    if has_reserve(now):
        count = count_with_reserve(now, possible)
        return Choice(
            way="start", reason="start_with_reserve", partitions=count, after=count, numbers=numbers
        )
    reason = "start_per_slot" if possible >= now.slots else "start_bounded"
    return Choice(way="start", reason=reason, partitions=possible, after=possible, numbers=numbers)


def _choose_for_tasks(now: Situation) -> Choice:
    """Choose Spark's count where Spark requests executors for waiting tasks, as far as enough can come."""
    numbers: dict[str, float | int | str] = {"slots": now.slots, "session": now.facts.session_partitions}
    if now.facts.stateful and now.partitions is not None:
        return nothing(now, "start_for_executors", after=now.partitions, numbers=numbers)
    count = now.requirements.shuffle.parallelism(now.reach)
    return Choice(way="start", reason="start_for_executors", partitions=count, after=count, numbers=numbers)


def _is_for_ever(now: Situation) -> bool:
    """Return whether the count of a new checkpoint can never change, because its state cannot be moved."""
    if not now.facts.stateful or makes_rescalable(now.facts, now.settings):
        return False
    obstacle = repartition_obstacle(now.facts, now.provider, now.settings)
    # State without keys is in one partition, whatever the count.
    return obstacle is not None and not now.facts.global_state


def _choose_for_growth(now: Situation, possible: int) -> Choice:
    """Choose a count that more slots can share later, but no more partitions than Spark would have taken.

    Each partition costs some milliseconds in each batch, so the largest count that could ever be useful would
    be too large. Flink also leaves room for growth by a factor, when it derives a maximum parallelism.
    """
    most = now.requirements.shuffle.parallelism(max(now.slots, now.facts.session_partitions))
    count = max(possible, min(GROWTH * possible, most))
    numbers: dict[str, float | int | str] = {"slots": now.slots, "session": now.facts.session_partitions}
    return Choice(way="start", reason="start_for_growth", partitions=count, after=count, numbers=numbers)


def _choose_start_of_checkpoint(now: Situation, possible: int) -> Choice:
    if converts(now.facts, now.provider, now.checkpoint_format, now.settings):
        return _choose_conversion(evolve(now, provider="rocksdb"), possible)
    obstacle = repartition_obstacle(now.facts, now.provider, now.settings)
    if obstacle is not None:
        return nothing(now, obstacle)
    target = wanted_count(now, possible)
    if has_reserve(now) and not is_beyond_bounds(now):
        target = _with_reserve(now, possible)
    if now.pending:
        return nothing(now, "start_checkpoint_pending", after=target)
    if target == now.partitions:
        if has_reserve(now) or target == possible:
            return nothing(now, "start_checkpoint_same", after=target)
        numbers = gain_of(now, possible).numbers()
        return nothing(now, "start_checkpoint_kept", after=possible, numbers=numbers)
    gain = gain_of(now, target)
    if target == now.failed_target:
        return nothing(now, "failed_before", after=target, numbers=gain.numbers())
    # A reserve is replaced only where it is used up, or costs too much: then the move pays.
    pays = now.settings.rescale_policy == "always" or has_reserve(now) or gain.shortfall() is None
    if not pays and not is_beyond_bounds(now):
        return nothing(now, "start_checkpoint_kept", after=target, numbers=gain.numbers())
    if not now.has_room:
        return nothing(now, "start_checkpoint_deferred", after=target, numbers=gain.numbers())
    return Choice(
        way="start",
        reason="start_repartitioned",
        partitions=target,
        before=now.partitions,
        after=target,
        numbers=gain.numbers(),
        compared=(now, possible),
    )


def _choose_conversion(now: Situation, possible: int) -> Choice:
    """Choose the count of a checkpoint that is converted: its state is rewritten anyway, into any count.

    It may be converted beside others that move state: later its stores are open, and cannot change.
    """
    target = count_with_reserve(now, possible) if has_reserve(now) else wanted_count(now, possible)
    if target == now.failed_target:
        return nothing(now, "failed_before", after=target, numbers=gain_of(now, target).numbers())
    return Choice(
        way="start",
        reason="start_converted",
        partitions=target,
        before=now.partitions,
        after=target,
        numbers={"slots": now.slots},
        converts=True,
    )


def _with_reserve(now: Situation, possible: int) -> int:
    """Return the count of the checkpoint, or another one where its reserve is used up or costs too much."""
    assert now.partitions is not None
    target = count_with_reserve(now, possible)
    return target if is_used_up(now, possible) or is_dear(now, target) else now.partitions
