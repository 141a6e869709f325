"""Which number of partitions, and how: nothing to do, in place, or with re-partitioned state.

Pure arithmetic on a `Situation`. Each answer is a `Choice` that carries its reason, the numbers that were
compared and what else was looked at; nothing here is an action yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from attrs import field, frozen

from spark_elastic.core.bounds.requirements import Requirements
from spark_elastic.core.cluster.shares import Shortage
from spark_elastic.core.events import Provider, QueryFacts
from spark_elastic.core.rescale.gain import BatchModel
from spark_elastic.core.rescale.saving import Gain
from spark_elastic.core.settings import CoreSettings

HORIZON_MS = 600_000
"""A rescale that moves state has to pay for itself within this time."""

RESCALE_COST_MS = 1_500
"""A re-partitioning, until measured."""

TOLERANCE = 0.03
"""Counts this close to the fastest are as good: one that suits other numbers of slots is better."""

_UNTOUCHED_TRIGGERS = ("continuous", "real_time")
_ENDING_TRIGGERS = ("once", "available_now")
REPARTITIONED_FORMAT = 2
"""The checkpoint format that re-partitioning needs."""

Alternative = tuple[int, float]
"""Another count, and the duration of a batch with it in ms."""

Way = Literal["nothing", "in_place", "move", "start"]


@frozen(kw_only=True)
class Situation:
    """Everything that a choice depends on.

    `partitions` is the count in force or, before a start, in the checkpoint (None if new). `slots` are those
    that the query can use, with a `shortage` they do not meet its lower bounds. `seen_slots` are
    those that it had lately. `rescales` counts those of this query within the last horizon, `pending`
    says that the checkpoint's last batch has to run first, `recovering` that the last run has failed,
    `failed_target` is a count to which re-partitioning has just failed, `overdue` says that any growth is to
    be carried out by now, `has_room` that its state may be moved beside those that are.
    """

    facts: QueryFacts
    provider: Provider
    checkpoint_format: int
    partitions: int | None
    slots: int
    requirements: Requirements
    model: BatchModel
    settings: CoreSettings
    shortage: Shortage | None = None
    seen_slots: tuple[int, ...] = ()
    rescale_cost_ms: int = RESCALE_COST_MS
    rescales: int = 0
    pending: bool = False
    recovering: bool = False
    failed_target: int | None = None
    overdue: bool = False
    has_room: bool = True


@frozen(kw_only=True)
class Choice:
    """An answer: `partitions` None leaves the count alone. `before` and `after` are the counts compared.

    `gain` is what was computed for a move.

    Most choices are made only to see that nothing has changed, so nothing is put into words here, and
    alternatives are computed when they are asked for.
    """

    way: Way
    reason: str
    partitions: int | None = None
    before: int | None = None
    after: int | None = None
    numbers: Mapping[str, float | int | str] = field(factory=dict)
    gain: Gain | None = None
    _compared: tuple[Situation, int] | None = field(default=None, alias="compared", repr=False)

    @property
    def is_into_bounds(self) -> bool:
        """Whether the present count is outside of the bounds."""
        return self.reason == "rescale_into_bounds"

    @property
    def alternatives(self) -> tuple[Alternative, ...]:
        """The other counts that come to mind, with what the model expects of them."""
        if self._compared is None:
            return ()
        now, possible = self._compared
        others = {possible, 2 * possible, max(1, possible // 2)}
        if now.partitions is not None:
            others.add(now.partitions)
        return tuple((count, now.model.batch_ms(count, now.slots)) for count in sorted(others - {self.after}))


def is_increase_enough(current: int, available: int, min_increase: int) -> bool:
    """Say whether going from `current` to `available` is worth moving state for.

    Both are the parallelism of all vertices, added up. Shrinking always is, growing if it is by
    `min_increase` at least.
    """
    return available < current or available - current >= max(1, min_increase)


def makes_rescalable(facts: QueryFacts, settings: CoreSettings) -> bool:
    """Say whether a query should get a checkpoint whose state can be re-partitioned later."""
    return (
        settings.state_store == "rescalable"
        and facts.stateful
        and not facts.global_state
        and facts.checkpoint_partitions is None
        and not facts.provider_chosen
        and facts.trigger not in _UNTOUCHED_TRIGGERS
    )


def choose_start(now: Situation) -> Choice:
    """Choose the count with which a query starts, after its submission or after a stop."""
    untouched = _untouched(now.facts, now.settings)
    if untouched is not None:
        return _nothing(now, untouched)
    possible = _possible(now)
    if possible is None:
        return _nothing(now, "start_without_resources")
    if now.facts.stateful and now.partitions is not None and now.recovering:
        # Its last batch may have been started: that has to run with the partitions that it was planned for.
        return Choice(
            way="start",
            reason="start_after_failure",
            partitions=now.partitions,
            before=now.partitions,
            after=now.partitions,
        )
    if now.facts.stateful and now.partitions is not None:
        return _choose_start_of_checkpoint(now, possible)
    numbers: dict[str, float | int | str] = {
        "slots": now.slots,
        "session": now.facts.session_partitions,
        "bound_by": now.requirements.bound_by,
    }
    reason = "start_per_slot" if possible >= now.slots else "start_bounded"
    return Choice(way="start", reason=reason, partitions=possible, after=possible, numbers=numbers)


def choose_running(now: Situation) -> Choice:
    """Choose what to do about the count of a query that runs with `now.partitions`."""
    untouched = _untouched(now.facts, now.settings)
    if untouched is not None:
        return _nothing(now, untouched)
    possible = _possible(now)
    if possible is None:
        return _keep_without_slots(now)
    if not now.facts.stateful:
        return _choose_in_place(now, possible)
    if now.facts.trigger in _ENDING_TRIGGERS:
        return _nothing(now, "never_rescaled")
    obstacle = _repartition_obstacle(now.facts, now.provider, now.checkpoint_format)
    if obstacle is not None:
        return _nothing(now, obstacle)
    return _choose_move(now, possible)


def is_movable(facts: QueryFacts, provider: Provider, checkpoint_format: int, settings: CoreSettings) -> bool:
    """Say whether the count of a query can be changed while it runs, by whatever way."""
    if _untouched(facts, settings) is not None:
        return False
    if not facts.stateful:
        return facts.in_place
    ends = facts.trigger in _ENDING_TRIGGERS
    return not ends and _repartition_obstacle(facts, provider, checkpoint_format) is None


def _untouched(facts: QueryFacts, settings: CoreSettings) -> str | None:
    """Name the reason for which the count of this query is nobody's business but the user's."""
    if settings.mode == "off":
        return "untouched_off"
    if facts.trigger in _UNTOUCHED_TRIGGERS:
        return "untouched_trigger"
    if facts.explicit_partitions is not None and settings.explicit_parallelism == "fixed":
        return "untouched_fixed"
    return None


def _repartition_obstacle(facts: QueryFacts, provider: Provider, checkpoint_format: int) -> str | None:
    """Name the reason for which the state of this query cannot be re-partitioned."""
    if facts.global_state:
        return "no_repartition_global"
    if provider != "rocksdb":
        return "no_repartition_provider"
    if checkpoint_format < REPARTITIONED_FORMAT:
        return "no_repartition_format"
    return None


def _possible(now: Situation) -> int | None:
    """Compute the parallelism that the slots allow, None if they do not meet the lower bounds."""
    if now.shortage is not None or now.slots == 0:
        return None
    return now.requirements.shuffle.parallelism(now.slots)


def _keep_without_slots(now: Situation) -> Choice:
    """Leave a query alone whose lower bounds are not met: it is never stopped for them."""
    shortage = now.shortage
    if shortage is None or shortage.total == 0:
        return _nothing(now, "all_executors_lost")
    if shortage.ahead == 0:
        return _nothing(now, "below_lower_bounds")
    return _nothing(now, "lower_bounds_of_others", numbers=shortage.numbers())


def _choose_in_place(now: Situation, possible: int) -> Choice:
    numbers = {"slots": now.slots}
    if not now.facts.in_place:
        return _nothing(now, "untouched_stateless")
    if possible == now.partitions:
        return _nothing(now, "parallelism_fits", after=possible)
    return Choice(
        way="in_place",
        reason="in_place",
        partitions=possible,
        before=now.partitions,
        after=possible,
        numbers=numbers,
    )


def _choose_start_of_checkpoint(now: Situation, possible: int) -> Choice:
    obstacle = _repartition_obstacle(now.facts, now.provider, now.checkpoint_format)
    if obstacle is not None:
        return _nothing(now, obstacle)
    target = _target(now, possible)
    if now.pending:
        return _nothing(now, "start_checkpoint_pending", after=target)
    if target == now.partitions:
        return _nothing(now, "start_checkpoint_same", after=target)
    gain = _gain(now, target)
    if target == now.failed_target:
        return _nothing(now, "failed_before", after=target, numbers=gain.numbers())
    pays = now.settings.rescale_policy == "always" or gain.shortfall() is None
    if not pays and not _is_beyond_bounds(now):
        return _nothing(now, "start_checkpoint_kept", after=target, numbers=gain.numbers())
    if not now.has_room:
        return _nothing(now, "start_checkpoint_deferred", after=target, numbers=gain.numbers())
    return Choice(
        way="start",
        reason="start_repartitioned",
        partitions=target,
        before=now.partitions,
        after=target,
        numbers=gain.numbers(),
        compared=(now, possible),
    )


def _choose_move(now: Situation, possible: int) -> Choice:
    assert now.partitions is not None
    # Whatever the model expects of it: who sets a longest interval wants all that the slots allow.
    forced = now.overdue and possible > now.partitions
    target = possible if forced else _target(now, possible)
    if target == now.partitions:
        return _nothing(now, "parallelism_fits", after=target)
    gain = _gain(now, target)
    current, available = _of_all_vertices(now, now.partitions), _of_all_vertices(now, target)
    numbers = {
        **gain.numbers(),
        "increase": available - current,
        "lower": now.requirements.lower,
        "upper": now.requirements.upper,
    }

    def hold(reason: str) -> Choice:
        return _nothing(now, reason, after=target, numbers=numbers, compared=(now, possible))

    if target == now.failed_target:
        return hold("failed_before")
    always = now.settings.rescale_policy == "always"
    beyond = _is_beyond_bounds(now)
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


def _of_all_vertices(now: Situation, partitions: int) -> int:
    """Add up the parallelism of all vertices of a query with so many partitions.

    Its sources have the slots that its shuffle has, within their own upper bounds if any are declared.
    """
    bounds = now.requirements.sources
    unbounded = len(now.facts.sources) - len(bounds)
    return (1 + unbounded) * partitions + sum(min(source.upper, partitions) for source in bounds)


def _is_beyond_bounds(now: Situation) -> bool:
    """Say whether nobody wants the present count: then it is not the question whether another one pays."""
    assert now.partitions is not None
    return not now.requirements.lower <= now.partitions <= now.requirements.upper


def _target(now: Situation, possible: int) -> int:
    if now.settings.rescale_policy == "always":
        return possible
    best = now.model.best_partitions(now.slots, possible, TOLERANCE, now.seen_slots)
    return max(best, min(now.requirements.lower, possible))


def _gain(now: Situation, target: int) -> Gain:
    """Compare the present count with `target`.

    Each rescale within the last horizon shortens it: where slots come and go, the next change is not far.
    """
    assert now.partitions is not None
    before_ms = now.model.batch_ms(now.partitions, now.slots)
    horizon_ms = HORIZON_MS // (1 + now.rescales)
    batches = 1.0
    if now.facts.trigger not in _ENDING_TRIGGERS:
        batches = max(1.0, horizon_ms / max(now.facts.trigger_ms, before_ms, 1))
    return Gain(
        slots=now.slots,
        before_ms=before_ms,
        after_ms=now.model.batch_ms(target, now.slots),
        batches=batches,
        horizon_ms=horizon_ms,
        cost_ms=now.rescale_cost_ms,
        min_increase=now.settings.min_parallelism_increase,
    )


def _nothing(
    now: Situation,
    reason: str,
    *,
    after: int | None = None,
    numbers: Mapping[str, float | int | str] | None = None,
    compared: tuple[Situation, int] | None = None,
) -> Choice:
    facts: dict[str, float | int | str] = {
        "slots": now.slots,
        "trigger": now.facts.trigger,
        "provider": now.provider,
        "format": now.checkpoint_format,
    }
    if now.facts.explicit_partitions is not None:
        facts["explicit"] = now.facts.explicit_partitions
    return Choice(
        way="nothing",
        reason=reason,
        before=now.partitions,
        after=after,
        numbers={**facts, **(numbers or {})},
        compared=compared,
    )
