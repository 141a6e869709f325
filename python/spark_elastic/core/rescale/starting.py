"""With which number of partitions a query starts."""

from __future__ import annotations

from spark_elastic.core.rescale.reserve import count_with_reserve, has_reserve, is_dear, is_used_up
from spark_elastic.core.rescale.situation import (
    GROWTH,
    Choice,
    Situation,
    gain_of,
    is_beyond_bounds,
    makes_rescalable,
    nothing,
    possible_count,
    repartition_obstacle,
    untouched,
    wanted_count,
)


def choose_start(now: Situation) -> Choice:
    """Choose the count with which a query starts, after its submission or after a stop."""
    why_not = untouched(now.facts, now.settings)
    if why_not is not None:
        return nothing(now, why_not)
    possible = possible_count(now)
    if possible is None and (now.shortage is None or now.shortage.awaited):
        return nothing(now, "start_without_resources")
    if now.facts.stateful and now.partitions is not None and now.recovering:
        # Its last batch may have been started: that has to run with the partitions that it was planned for.
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
    """Choose Spark's count where it requests executors for tasks that wait, as far as so many can come."""
    numbers: dict[str, float | int | str] = {"slots": now.slots, "session": now.facts.session_partitions}
    if now.facts.stateful and now.partitions is not None:
        return nothing(now, "start_for_executors", after=now.partitions, numbers=numbers)
    count = now.requirements.shuffle.parallelism(now.reach)
    return Choice(way="start", reason="start_for_executors", partitions=count, after=count, numbers=numbers)


def _is_for_ever(now: Situation) -> bool:
    """Say whether the count of a new checkpoint can never be changed, for want of a way to move its state."""
    if not now.facts.stateful or makes_rescalable(now.facts, now.settings):
        return False
    obstacle = repartition_obstacle(now.facts, now.provider, now.checkpoint_format)
    # State without keys is in one partition, whatever the count.
    return obstacle is not None and not now.facts.global_state


def _choose_for_growth(now: Situation, possible: int) -> Choice:
    """Choose a count that more slots can share later, but no more partitions than Spark would have taken.

    Each partition costs some milliseconds in each batch, so as many as could ever be of use would be too
    many. Flink leaves room for growth by a factor as well, when it derives a maximum parallelism.
    """
    most = now.requirements.shuffle.parallelism(max(now.slots, now.facts.session_partitions))
    count = max(possible, min(GROWTH * possible, most))
    numbers: dict[str, float | int | str] = {"slots": now.slots, "session": now.facts.session_partitions}
    return Choice(way="start", reason="start_for_growth", partitions=count, after=count, numbers=numbers)


def _choose_start_of_checkpoint(now: Situation, possible: int) -> Choice:
    obstacle = repartition_obstacle(now.facts, now.provider, now.checkpoint_format)
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
    # What has a reserve is to have another one only where that is used up, or dear: then it pays.
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


def _with_reserve(now: Situation, possible: int) -> int:
    """Return the count of the checkpoint, or another one where its reserve is used up or costs too much."""
    assert now.partitions is not None
    target = count_with_reserve(now, possible)
    return target if is_used_up(now, possible) or is_dear(now, target) else now.partitions
