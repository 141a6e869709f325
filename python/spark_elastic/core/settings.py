"""The settings that the core looks at, as plain values; they are read and checked elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from attrs import field, frozen

from spark_elastic.core.declared import WantedBounds
from spark_elastic.core.failures.strategy import NoRestart, RestartPolicy

Mode = Literal["reactive", "adaptive"]
RescalePolicy = Literal["gain", "always"]
ExplicitParallelism = Literal["fixed", "upperBound", "ignore"]
StateStore = Literal["rescalable", "unchanged"]


@frozen(kw_only=True)
class CoreSettings:
    """All that a user can decide about the core.

    `resource_wait_ms` -1 waits without limit. `max_delay_ms` None means one trigger interval of the query
    more than `max_checkpoint_failures`, at least 1. `scaling_interval_max_ms` None means that a growth below
    `min_parallelism_increase` is never carried out. `history_size` is the number of rescale records kept per
    query, at least 1.
    """

    mode: Mode = "reactive"

    warm_up_ms: int = 10_000
    grace_ms: int = 30_000
    hang_ms: int = 10_000
    start_wait_ms: int = 10_000
    decision_wait_ms: int = 200
    advise_only: bool = False

    resource_wait_ms: int = -1
    submission_stabilization_ms: int = 0
    slot_idle_ms: int = 50_000
    cooldown_ms: int = 30_000
    executing_stabilization_ms: int = 10_000
    max_delay_ms: int | None = None
    max_checkpoint_failures: int = 2
    min_parallelism_increase: int = 1
    scaling_interval_max_ms: int | None = None
    rescale_policy: RescalePolicy = "gain"

    restart: RestartPolicy = field(factory=NoRestart)

    explicit_parallelism: ExplicitParallelism = "ignore"
    state_store: StateStore = "rescalable"
    max_parallelism: int = 32_768
    bounds: Mapping[str, WantedBounds] = field(factory=dict)
    source_bounds: Mapping[str, Mapping[str, WantedBounds]] = field(factory=dict)
    history_size: int = 100
    savepoint_dir: str | None = None
