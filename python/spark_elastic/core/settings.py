"""The settings that the core looks at: a view of the registry's values."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from spark_elastic.core.bounds.declared import WantedBounds
from spark_elastic.core.bounds.sharing import WantedSharing
from spark_elastic.core.failures.strategy import NoRestart, RestartPolicy
from spark_elastic.core.keys import autoscale, batch, policies, records, rescaling, resources, schedule
from spark_elastic.core.keys.key import of
from spark_elastic.core.keys.periods import ExcludedPeriod, Window
from spark_elastic.core.keys.policies import DECLARED, PolicyChain
from spark_elastic.core.keys.rescaling import ExplicitParallelism, Mode, RescalePolicy, StateStore


@frozen(kw_only=True)
class CoreSettings:
    """All that a user can decide about the core; `core/keys/` says what each value means.

    `mode` is never off for the application: a policy that is off has no core. `decision_wait_ms` 0 means that
    nobody asks about batch stages.

    `executor_wait_ms` is how long a query may run without an executor: `resource_wait_ms` if somebody has set
    that, None: for ever, as plain Spark waits.

    `queries` has settings by the name of a query, or a pattern of names, and by the name of the setting, as
    text. `texts` are the application's own values of those that a query can have, without what was left at
    its default. A query with settings of its own has a `CoreSettings` of its own, in which nothing stands by
    name and the mode may be off (`own_settings.py`).
    """

    mode: Mode = of(rescaling.MODE)

    warm_up_ms: int = of(rescaling.WARM_UP_MS)
    start_wait_ms: int = of(rescaling.START_WAIT_MS)
    decision_wait_ms: int = of(batch.DECISION_WAIT_MS)
    advise_only: bool = of(records.ADVISE_ONLY)

    resource_wait_ms: int = of(rescaling.RESOURCE_WAIT_MS)
    executor_wait_ms: int | None = None
    submission_stabilization_ms: int = of(rescaling.SUBMISSION_STABILIZATION_MS)
    slot_idle_ms: int = of(resources.SLOT_IDLE_MS)
    cooldown_ms: int = of(rescaling.COOLDOWN_MS)
    executing_stabilization_ms: int = of(rescaling.EXECUTING_STABILIZATION_MS)
    max_delay_ms: int | None = of(rescaling.MAX_DELAY_MS)
    max_checkpoint_failures: int = of(rescaling.MAX_CHECKPOINT_FAILURES)
    min_parallelism_increase: int = of(rescaling.MIN_PARALLELISM_INCREASE)
    max_concurrent_rescales: int = of(rescaling.MAX_CONCURRENT_RESCALES)
    scaling_interval_max_ms: int | None = of(rescaling.SCALING_INTERVAL_MAX_MS)
    rescale_policy: RescalePolicy = of(rescaling.RESCALE_POLICY)

    policy: PolicyChain = of(policies.POLICY)
    schedule_zone: str = of(schedule.ZONE)
    schedule_windows: tuple[Window, ...] = of(schedule.WINDOWS)
    schedule_excluded: tuple[ExcludedPeriod, ...] = of(schedule.EXCLUDED)
    schedule_lead_ms: int | None = of(schedule.LEAD_MS)
    target_load: float | None = of(autoscale.LOAD)
    load_band: float = of(autoscale.BAND)
    max_lag_ms: int | None = of(autoscale.MAX_LAG_MS)
    catch_up_ms: int = of(autoscale.CATCH_UP_MS)
    backpressure: bool = of(autoscale.BACKPRESSURE)
    scale_down_window_ms: int = of(autoscale.WINDOW_MS)
    most_down: float = of(autoscale.MOST_DOWN)
    batch_gain: float | None = of(autoscale.BATCH_GAIN)
    min_executors: int = of(autoscale.MIN_EXECUTORS)
    max_executors: int | None = of(autoscale.MAX_EXECUTORS)
    quota_cores: int | None = of(autoscale.QUOTA_CORES)
    quota_memory: int | None = of(autoscale.QUOTA_MEMORY)

    restart: RestartPolicy = field(factory=NoRestart)

    explicit_parallelism: ExplicitParallelism = of(rescaling.EXPLICIT_PARALLELISM)
    state_store: StateStore = of(rescaling.STATE_STORE)
    max_parallelism: int = of(rescaling.MAX_PARALLELISM)
    divide_ordered: bool = of(batch.DIVIDE_ORDERED)
    bounds: Mapping[str, WantedBounds] = field(factory=dict)
    source_bounds: Mapping[str, Mapping[str, WantedBounds]] = field(factory=dict)
    sharing: Mapping[str, WantedSharing] = field(factory=dict)
    texts: Mapping[str, str] = field(factory=dict)
    queries: Mapping[str, Mapping[str, str]] = field(factory=dict)
    history_size: int = of(records.HISTORY_SIZE)
    savepoint_dir: str | None = of(resources.SAVEPOINT_DIR)
    savepoints_kept: int = of(resources.SAVEPOINTS_KEPT)

    @staticmethod
    def executor_wait(resource_wait_ms: int, *, is_set: bool) -> int | None:
        """Return how long a query may run without an executor."""
        return resource_wait_ms if is_set and resource_wait_ms >= 0 else None

    @property
    def hands_off(self) -> bool:
        """Whether nothing is done to a query: it is only advised, or left to plain Spark."""
        return self.advise_only or self.mode == "off"

    @property
    def measures(self) -> bool:
        """Whether more than the declared bounds says how many slots a query should have."""
        return self.mode == "adaptive" and self.policy != (DECLARED,)
