"""What a user can configure for batch stages: a view of the registry's values."""

from __future__ import annotations

from attrs import evolve, frozen
from attrs.validators import ge, in_, optional

from spark_elastic.core.bounds.requirements import MAX_PARALLELISM, Bounds
from spark_elastic.core.keys import batch, rescaling
from spark_elastic.core.keys.batch import PRESETS, Preset, PresetName
from spark_elastic.core.keys.key import of
from spark_elastic.core.keys.rescaling import ExplicitParallelism

# ---- The number of tasks, from bytes: enough that none has to read more than its volume, within bounds.


DEFAULT_MAX = 128
"""The most tasks of a stage if no other number is configured."""


def highest_parallelism(configured: int | None, default: int | None = None) -> int:
    """Return the global upper bound: what is configured, else `default`, else 128; at most 32768."""
    chosen = next((number for number in (configured, default) if number is not None), DEFAULT_MAX)
    return min(chosen, MAX_PARALLELISM)


def narrow(bounds: Bounds, lower: int | None = None, upper: int | None = None) -> Bounds:
    """Narrow the global bounds to those of one stage, None for no further bound. The upper bound wins.

    Raises ValueError if `upper` is less than 1.
    """
    most = bounds.upper if upper is None else min(bounds.upper, upper)
    return Bounds(lower=min(max(bounds.lower, lower or 1), most), upper=most)


def clamp(number: int, bounds: Bounds) -> int:
    """Bring a number within bounds."""
    return max(bounds.lower, min(number, bounds.upper))


def tasks_for(bytes_to_read: int, volume: int, bounds: Bounds) -> int:
    """Return the number of tasks with which each reads at most `volume` bytes, within bounds."""
    return clamp(-(-bytes_to_read // volume), bounds)


SMALLEST_TASK = 1 << 20
"""Bytes below which a task is not worth its start, which takes about as long as reading them."""


def least_volume(chosen: int | None) -> int:
    """Return the least bytes that a task should read: what the application has set, else 1 MiB."""
    return SMALLEST_TASK if chosen is None else chosen


MOST_WAVES = 128
"""The most waves of a stage without a configured upper bound; beyond it, each task reads more instead."""


@frozen(kw_only=True)
class BatchSettings:
    """All that a user can configure; `core/keys/` documents each value.

    None leaves a value to the preset. Raises ValueError for a value out of its range, or bounds that
    contradict each other.
    """

    preset: PresetName = of(batch.PRESET, in_(PRESETS))
    enabled: bool = of(batch.ENABLED)
    explicit_parallelism: ExplicitParallelism = of(rescaling.EXPLICIT_PARALLELISM)
    own_parallelism: ExplicitParallelism | None = of(batch.OWN_PARALLELISM)
    initial_enabled: bool = of(batch.INITIAL_ENABLED)
    ranges_enabled: bool = of(batch.RANGES_ENABLED)
    sources_enabled: bool = of(batch.SOURCES_ENABLED)
    divide_ordered: bool = of(batch.DIVIDE_ORDERED)
    kafka_latest: bool = of(batch.KAFKA_LATEST)

    min_parallelism: int = of(batch.MIN_PARALLELISM, ge(1))
    max_parallelism: int | None = of(batch.MAX_PARALLELISM, optional(ge(1)))
    avg_data_volume_per_task: int | None = of(batch.AVG_DATA_VOLUME_PER_TASK, optional(ge(1)))
    default_source_parallelism: int | None = of(batch.DEFAULT_SOURCE_PARALLELISM, optional(ge(1)))

    def __attrs_post_init__(self) -> None:
        if self.max_parallelism is not None and self.min_parallelism > self.max_parallelism:
            raise ValueError(
                f"min_parallelism {self.min_parallelism} is above max_parallelism {self.max_parallelism}"
            )

    @property
    def rules(self) -> Preset:
        """The rules of the preset."""
        return PRESETS[self.preset]

    @property
    def volume(self) -> int:
        """The bytes that one task should read."""
        return self.rules.volume if self.avg_data_volume_per_task is None else self.avg_data_volume_per_task

    def with_volume(self, advised: int | None, smallest: int | None = None) -> BatchSettings:
        """Return these settings for an application that sets Spark's own bytes per task (`advised`).

        As in Spark's own rule (`ShufflePartitionsUtil`), a task reads `smallest` bytes or more, None: 1 MiB.
        """
        if advised is None or self.avg_data_volume_per_task is not None:
            return self
        return evolve(self, avg_data_volume_per_task=max(advised, least_volume(smallest)))

    @property
    def leaves_chosen(self) -> bool:
        """Whether a number that the application has set for its shuffles is left alone."""
        return (self.own_parallelism or self.explicit_parallelism) == "fixed"

    def bounds(self, slots: int, chosen: int | None = None, parallelism: int | None = None) -> Bounds:
        """Return the bounds of every stage; the upper one follows the slots unless something else sets it.

        `chosen` is the application's own number for its shuffles, `parallelism` its default for the rest.
        """
        by_slots = None if slots < 1 else max(slots * MOST_WAVES, self.min_parallelism)
        default = by_slots if self.rules.max_parallelism is None else self.rules.max_parallelism
        if self.own_parallelism != "ignore":
            own = chosen if chosen is not None or not self.rules.default_parallelism else parallelism
            default = default if own is None else own
        upper = highest_parallelism(self.max_parallelism, default)
        return Bounds(lower=min(self.min_parallelism, upper), upper=upper)
