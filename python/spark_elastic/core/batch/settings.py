"""What a user can decide about batch stages, as plain values; they are read and checked elsewhere."""

from __future__ import annotations

from attrs import evolve, field, frozen
from attrs.validators import ge, gt, in_, optional

from spark_elastic.core.batch.number import highest_parallelism
from spark_elastic.core.batch.presets import PRESETS, Preset, PresetName
from spark_elastic.core.batch.skew import Skew
from spark_elastic.core.requirements import Bounds
from spark_elastic.core.settings import ExplicitParallelism

MOST_WAVES = 128
"""The most waves of a stage if nobody has set an upper bound: beyond it a task's share grows instead."""


@frozen(kw_only=True)
class BatchSettings:
    """All that a user can decide. Sizes are bytes; None leaves a value to the preset.

    `enabled` False leaves everything to Spark, the others a part of it. `kafka_latest` True has the latest
    offsets found out when a query is planned. `explicit_parallelism` says what the
    application's own spark.sql.shuffle.partitions means: its number, the most, nothing. Raises ValueError for
    a value out of its range, or bounds that contradict each other.
    """

    preset: PresetName = field(default="elastic", validator=in_(PRESETS))
    enabled: bool = True
    explicit_parallelism: ExplicitParallelism = "ignore"
    initial_enabled: bool = True
    ranges_enabled: bool = True
    skew_enabled: bool = True
    sources_enabled: bool = True
    kafka_latest: bool = False

    min_parallelism: int = field(default=1, validator=ge(1))
    max_parallelism: int | None = field(default=None, validator=optional(ge(1)))
    avg_data_volume_per_task: int | None = field(default=None, validator=optional(ge(1)))
    default_source_parallelism: int | None = field(default=None, validator=optional(ge(1)))
    skew_factor: float = field(default=4.0, validator=gt(0))
    skew_threshold: int = field(default=256 << 20, validator=ge(0))

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

    def with_volume(self, advised: int | None) -> BatchSettings:
        """Return these settings for an application that has told Spark how many bytes a task should read."""
        if advised is None or self.avg_data_volume_per_task is not None:
            return self
        return evolve(self, avg_data_volume_per_task=advised)

    @property
    def skew(self) -> Skew:
        """When a partition is skewed."""
        return Skew(factor=self.skew_factor, threshold=self.skew_threshold)

    def bounds(self, slots: int) -> Bounds:
        """Return the bounds of every stage: the upper one goes by the slots where nothing else says it."""
        by_slots = None if slots < 1 else max(slots * MOST_WAVES, self.min_parallelism)
        default = by_slots if self.rules.max_parallelism is None else self.rules.max_parallelism
        upper = highest_parallelism(self.max_parallelism, default)
        return Bounds(lower=min(self.min_parallelism, upper), upper=upper)
