"""The inputs and the result of a choice of the partition count, and the questions common to both kinds.

Pure arithmetic on a `Situation`. Each answer is a `Choice` that carries its reason, the numbers that were
compared and the alternatives considered; it does not act yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from attrs import field, frozen

from spark_elastic.core.bounds.requirements import Requirements
from spark_elastic.core.bounds.shares import Shortage
from spark_elastic.core.events import Provider, QueryFacts
from spark_elastic.core.load.reading import Reading
from spark_elastic.core.rescale.gain import BatchModel
from spark_elastic.core.settings import CoreSettings

# ---- The savings and the cost of a rescale: whether it pays.


MIN_GAIN = 0.05
"""The share of a batch's time that a rescale has to save: less is within the noise of a measurement."""


@frozen(kw_only=True)
class MoveCost:
    """The time that a move of the state costs its query.

    That is the pause, and for a prepared move what the copy takes from the micro-batches beside it;
    `slowdown_ms` is None for one in the pause.
    """

    pause_ms: int
    slowdown_ms: int | None = None

    @property
    def total_ms(self) -> int:
        """The sum of both."""
        return self.pause_ms + (self.slowdown_ms or 0)

    def numbers(self) -> dict[str, float | int | str]:
        """Return the numbers for the record of a decision."""
        total: dict[str, float | int | str] = {"cost_ms": self.total_ms}
        if self.slowdown_ms is None:
            return total
        return {**total, "pause_ms": self.pause_ms, "slowdown_ms": self.slowdown_ms}


@frozen(kw_only=True)
class Gain:
    """The savings of another count, over the time in which a rescale has to pay for itself.

    `before_ms` and `after_ms` are the durations of a batch; there are `batches` of them in `horizon_ms`.
    `slots` and `min_increase` are for the record only.
    """

    slots: int
    before_ms: float
    after_ms: float
    batches: float
    horizon_ms: int
    cost: MoveCost
    min_increase: int

    @property
    def saved_ms(self) -> float:
        """The time that each batch saves, negative if it takes longer."""
        return self.before_ms - self.after_ms

    @property
    def saved_total_ms(self) -> float:
        """The total savings within the horizon."""
        return self.saved_ms * self.batches

    @property
    def net_ms(self) -> float:
        """The savings minus the cost of the rescale, negative if it never pays."""
        return self.saved_total_ms - self.cost.total_ms

    def shortfall(self) -> str | None:
        """Return the reason why the rescale does not pay, None if it does."""
        if self.saved_ms < self.before_ms * MIN_GAIN:
            return "gain_too_small"
        if self.saved_total_ms <= self.cost.total_ms:
            return "cost_too_high"
        return None

    def numbers(self) -> dict[str, float | int | str]:
        """Return the numbers for the record of a decision, rounded for reading."""
        return {
            "slots": self.slots,
            "before_ms": round(self.before_ms, 1),
            "after_ms": round(self.after_ms, 1),
            "saved_ms": round(self.saved_ms, 1),
            "batches": round(self.batches, 1),
            "saved_total_ms": round(self.saved_total_ms, 1),
            "horizon_ms": self.horizon_ms,
            **self.cost.numbers(),
            "min_gain_percent": round(MIN_GAIN * 100),
            "min_increase": self.min_increase,
        }


HORIZON_MS = 600_000
"""A rescale that moves state has to pay for itself within this time."""

RESCALE_COST_MS = 1_500
"""The duration of a re-partitioning, until measured."""

SWITCH_COST_MS = 500
"""The pause of a prepared move, until measured: a few tenths of a second, whatever the size of the state.

The copy is expected to take nothing from the micro-batches, as it leaves them their slots.
"""

TOLERANCE = 0.03
"""Counts this close to the fastest are as good: one that suits other numbers of slots is better."""

GROWTH = 4
"""A permanent count leaves room for this multiple of the slots."""

UNTOUCHED_TRIGGERS = ("continuous", "real_time")
ENDING_TRIGGERS = ("once", "available_now")
OWN_FORMAT = 2
"""The checkpoint format of new queries: names of state files are unique."""

Alternative = tuple[int, float]
"""Another count, and the duration of a batch with it in ms."""

Way = Literal["nothing", "in_place", "move", "start"]


@frozen(kw_only=True)
class Situation:
    """Everything that a choice depends on.

    `partitions` is the count in force or, before a start, in the checkpoint (None if new). `slots` are those
    that the query can use; with a `shortage` they do not meet its lower bounds. `seen_slots` are its recent
    numbers of slots, and `cost` is that of another rescale. `reach` is 0, or under Spark's dynamic allocation
    the count that gives a task to each executor that can come, up to Spark's own count. `rescales` counts
    those of this query within the last horizon. `pending` says that the checkpoint's last batch has to run
    first, `recovering` that the last run has failed. `failed_target` is a count to which re-partitioning has
    just failed. `overdue` says that any growth should be carried out by now. `has_room` says that its state
    may be moved alongside those already moving. `expects_slots` says that it lacks slots that it was granted
    within the last horizon, `behind` that more rows wait than its last micro-batch has read. `reading` is set
    for a query whose micro-batches have no shuffle.
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
    cost: MoveCost = MoveCost(pause_ms=RESCALE_COST_MS)
    rescales: int = 0
    pending: bool = False
    recovering: bool = False
    failed_target: int | None = None
    overdue: bool = False
    has_room: bool = True
    expects_slots: bool = False
    behind: bool = False
    reach: int = 0
    reading: Reading | None = None

    @property
    def brings_executors(self) -> bool:
        """Whether executors may be missing that only tasks bring."""
        return self.reach > self.slots


@frozen(kw_only=True)
class Choice:
    """An answer: `partitions` None leaves the count alone. `before` and `after` are the counts compared.

    `gain` is the computed gain of a move, `reads` the number of tasks that should read the sources. With
    `converts` the start also converts the checkpoint.

    Most choices are made only to see that nothing has changed: alternatives are computed on access.
    """

    way: Way
    reason: str
    partitions: int | None = None
    before: int | None = None
    after: int | None = None
    numbers: Mapping[str, float | int | str] = field(factory=dict)
    gain: Gain | None = None
    reads: int | None = None
    converts: bool = False
    _compared: tuple[Situation, int] | None = field(default=None, alias="compared", repr=False)

    @property
    def is_into_bounds(self) -> bool:
        """Whether the present count is outside the bounds."""
        return self.reason == "rescale_into_bounds"

    @property
    def alternatives(self) -> tuple[Alternative, ...]:
        """The obvious other counts, with the model's estimate for each."""
        if self._compared is None:
            return ()
        now, possible = self._compared
        others = {possible, 2 * possible, max(1, possible // 2)}
        if now.partitions is not None:
            others.add(now.partitions)
        return tuple((count, now.model.batch_ms(count, now.slots)) for count in sorted(others - {self.after}))


def makes_rescalable(facts: QueryFacts, settings: CoreSettings) -> bool:
    """Return whether a query should get a checkpoint whose state can be re-partitioned later."""
    return (
        settings.state_store == "rescalable"
        and facts.stateful
        and facts.moves_state
        and not facts.global_state
        and facts.checkpoint_partitions is None
        and not facts.provider_chosen
        and facts.trigger not in UNTOUCHED_TRIGGERS
    )


def converts(facts: QueryFacts, provider: Provider, checkpoint_format: int, settings: CoreSettings) -> bool:
    """Return whether the start of a query converts its checkpoint to the form of new queries."""
    return (
        settings.convert == "atStart"
        and not settings.hands_off
        and facts.checkpoint_partitions is not None
        and facts.moves_state
        and not facts.global_state
        and not facts.provider_chosen
        and (provider == "hdfs" or (provider == "rocksdb" and checkpoint_format < OWN_FORMAT))
    )


def is_movable(facts: QueryFacts, provider: Provider, settings: CoreSettings) -> bool:
    """Return whether the count of a query can be changed while it runs, in any way."""
    if untouched(facts, settings) is not None:
        return False
    if not facts.stateful:
        return facts.in_place
    ends = facts.trigger in ENDING_TRIGGERS
    return not ends and repartition_obstacle(facts, provider, settings) is None


def untouched(facts: QueryFacts, settings: CoreSettings) -> str | None:
    """Return the reason why the count of this query is left to its user, None without one."""
    if settings.mode == "off":
        return "untouched_off"
    if facts.trigger in UNTOUCHED_TRIGGERS:
        return "untouched_trigger"
    if facts.explicit_partitions is not None and settings.explicit_parallelism == "fixed":
        return "untouched_fixed"
    return None


def repartition_obstacle(facts: QueryFacts, provider: Provider, settings: CoreSettings) -> str | None:
    """Return the reason why the state of this query cannot be re-partitioned, None if it can."""
    if facts.global_state:
        return "no_repartition_global"
    if not facts.moves_state:
        return "no_repartition_spark"
    if provider == "rocksdb":
        return None
    if provider != "hdfs" or settings.convert == "never":
        return "no_repartition_provider"
    if facts.store_needed:
        return "no_repartition_needed"
    return "no_repartition_chosen" if facts.provider_chosen else "no_repartition_unconverted"


def possible_count(now: Situation) -> int | None:
    """Compute the parallelism that the slots allow, None if they do not meet the lower bounds."""
    if now.shortage is not None or now.slots == 0:
        return None
    return now.requirements.shuffle.parallelism(max(now.slots, now.reach))


def is_beyond_bounds(now: Situation) -> bool:
    """Return whether the present count is outside the bounds: then another one need not pay."""
    assert now.partitions is not None
    return not now.requirements.lower <= now.partitions <= now.requirements.upper


def wanted_count(now: Situation, possible: int) -> int:
    """Return the count that suits the slots best, which may be less than `possible`."""
    if now.settings.rescale_policy == "always" or now.brings_executors:
        return possible
    best = now.model.best_partitions(now.slots, possible, TOLERANCE, now.seen_slots)
    return max(best, min(now.requirements.lower, possible))


def gain_of(now: Situation, target: int) -> Gain:
    """Compare the present count with `target`.

    Each rescale within the last horizon shortens it: where slots come and go, the next change is near.
    """
    assert now.partitions is not None
    before_ms = now.model.batch_ms(now.partitions, now.slots)
    horizon_ms = HORIZON_MS // (1 + now.rescales)
    batches = 1.0
    if now.facts.trigger not in ENDING_TRIGGERS:
        batches = max(1.0, horizon_ms / max(now.facts.trigger_ms, before_ms, 1))
    return Gain(
        slots=now.slots,
        before_ms=before_ms,
        after_ms=now.model.batch_ms(target, now.slots),
        batches=batches,
        horizon_ms=horizon_ms,
        cost=now.cost,
        min_increase=now.settings.min_parallelism_increase,
    )


def nothing(
    now: Situation,
    reason: str,
    *,
    after: int | None = None,
    numbers: Mapping[str, float | int | str] | None = None,
    compared: tuple[Situation, int] | None = None,
) -> Choice:
    """Return the choice to leave the count alone, for a reason."""
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
