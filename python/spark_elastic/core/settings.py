"""The settings that the core uses: a view of the registry's values."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from attrs import field, frozen

from spark_elastic.core.bounds.declared import WantedBounds, WantedSharing
from spark_elastic.core.failures.strategy import NoRestart, RestartPolicy
from spark_elastic.core.keys import application, batch, policies, rescaling
from spark_elastic.core.keys.key import PREFIX, Key, of
from spark_elastic.core.keys.periods import ExcludedPeriod, Window
from spark_elastic.core.keys.policies import DECLARED, PolicyChain
from spark_elastic.core.keys.rescaling import Convert, ExplicitParallelism, Mode, RescalePolicy, StateStore


@frozen(kw_only=True)
class CoreSettings:
    """Everything that a user can decide about the core; `core/keys/` documents each value.

    `mode` is never off for the application: a policy that is off has no core. `decision_wait_ms` is 0 where
    the shim should not ask about batch stages.

    `executor_wait_ms` is the time for which a query may run without an executor: `resource_wait_ms` if the
    user has set it, None for no limit, as in plain Spark.

    `queries` has settings as text, by the name of a query (or a pattern of names) and the name of the
    setting. `texts` holds the application's own values of the settings that a query can have, without those
    left at their default. A query with settings of its own has a `CoreSettings` of its own, with nothing
    given by name; its mode may be off (`own_settings.py`).
    """

    mode: Mode = of(rescaling.MODE)

    warm_up_ms: int = of(rescaling.WARM_UP_MS)
    start_wait_ms: int = of(rescaling.START_WAIT_MS)
    decision_wait_ms: int = of(batch.DECISION_WAIT_MS)
    advise_only: bool = of(application.ADVISE_ONLY)

    resource_wait_ms: int = of(rescaling.RESOURCE_WAIT_MS)
    executor_wait_ms: int | None = None
    submission_stabilization_ms: int = of(rescaling.SUBMISSION_STABILIZATION_MS)
    slot_idle_ms: int = of(application.SLOT_IDLE_MS)
    cooldown_ms: int = of(rescaling.COOLDOWN_MS)
    executing_stabilization_ms: int = of(rescaling.EXECUTING_STABILIZATION_MS)
    max_delay_ms: int | None = of(rescaling.MAX_DELAY_MS)
    max_checkpoint_failures: int = of(rescaling.MAX_CHECKPOINT_FAILURES)
    min_parallelism_increase: int = of(rescaling.MIN_PARALLELISM_INCREASE)
    max_concurrent_rescales: int = of(rescaling.MAX_CONCURRENT_RESCALES)
    prepare_moves: bool = of(rescaling.PREPARE_MOVES)
    max_copy_tasks: int | None = of(rescaling.MAX_COPY_TASKS)
    max_copy_rate: int | None = of(rescaling.MAX_COPY_RATE)
    scaling_interval_max_ms: int | None = of(rescaling.SCALING_INTERVAL_MAX_MS)
    rescale_policy: RescalePolicy = of(rescaling.RESCALE_POLICY)

    policy: PolicyChain = of(policies.POLICY)
    schedule_zone: str = of(policies.ZONE)
    schedule_windows: tuple[Window, ...] = of(policies.WINDOWS)
    schedule_excluded: tuple[ExcludedPeriod, ...] = of(policies.EXCLUDED)
    schedule_lead_ms: int | None = of(policies.LEAD_MS)
    target_load: float | None = of(policies.LOAD)
    load_band: float = of(policies.BAND)
    max_lag_ms: int | None = of(policies.MAX_LAG_MS)
    catch_up_ms: int = of(policies.CATCH_UP_MS)
    backpressure: bool = of(policies.BACKPRESSURE)
    scale_down_window_ms: int = of(policies.WINDOW_MS)
    most_down: float = of(policies.MOST_DOWN)
    batch_gain: float | None = of(policies.BATCH_GAIN)
    min_executors: int = of(policies.MIN_EXECUTORS)
    max_executors: int | None = of(policies.MAX_EXECUTORS)
    quota_cores: int | None = of(policies.QUOTA_CORES)
    quota_memory: int | None = of(policies.QUOTA_MEMORY)

    restart: RestartPolicy = field(factory=NoRestart)

    explicit_parallelism: ExplicitParallelism = of(rescaling.EXPLICIT_PARALLELISM)
    state_store: StateStore = of(rescaling.STATE_STORE)
    convert: Convert = of(rescaling.CONVERT)
    keep_original_ms: int = of(rescaling.KEEP_ORIGINAL_MS)
    max_parallelism: int = of(rescaling.MAX_PARALLELISM)
    divide_ordered: bool = of(batch.DIVIDE_ORDERED)
    bounds: Mapping[str, WantedBounds] = field(factory=dict)
    source_bounds: Mapping[str, Mapping[str, WantedBounds]] = field(factory=dict)
    sharing: Mapping[str, WantedSharing] = field(factory=dict)
    texts: Mapping[str, str] = field(factory=dict)
    queries: Mapping[str, Mapping[str, str]] = field(factory=dict)
    history_size: int = of(application.HISTORY_SIZE)
    savepoint_dir: str | None = of(application.SAVEPOINT_DIR)
    savepoints_kept: int = of(application.SAVEPOINTS_KEPT)

    @staticmethod
    def executor_wait(resource_wait_ms: int, *, is_set: bool) -> int | None:
        """Return the time for which a query may run without an executor, None for no limit."""
        return resource_wait_ms if is_set and resource_wait_ms >= 0 else None

    @property
    def hands_off(self) -> bool:
        """Whether nothing is done to a query: it only gets advice, or is left to plain Spark."""
        return self.advise_only or self.mode == "off"

    @property
    def measures(self) -> bool:
        """Whether more than the declared bounds determines the slots that a query should have."""
        return self.mode == "adaptive" and self.policy != (DECLARED,)


# ---- Values that contradict each other, for the application or for one query.


# Pairs of values, the second not below the first, with the wording for the first in an error.
_ORDERED: tuple[tuple[Key[Any], Key[Any], str], ...] = (
    (rescaling.COOLDOWN_MS, rescaling.SCALING_INTERVAL_MAX_MS, "the cooldown after rescaling"),
    (rescaling.INITIAL_BACKOFF_MS, rescaling.MAX_BACKOFF_MS, "the initial backoff"),
    (batch.MIN_PARALLELISM, batch.MAX_PARALLELISM, batch.MIN_PARALLELISM.full_name),
    (policies.MIN_EXECUTORS, policies.MAX_EXECUTORS, policies.MIN_EXECUTORS.full_name),
)


def contradictions(
    values: Mapping[Key[Any], Any], refused: Set[Key[Any]] = frozenset(), prefix: str = PREFIX
) -> list[str]:
    """Compare the values that belong together; values that were refused are left out.

    `prefix` precedes the name of each setting; for a query it includes the query's name.
    """
    errors: list[str] = []
    for low, high, low_words in _ORDERED:
        least, most = values.get(low), values.get(high)
        if {low, high} & refused or least is None or most is None or most >= least:
            continue
        name = prefix + high.name
        errors.append(
            f"{name} is '{high.format(most)}', allowed is at least {low_words}, "
            f"'{high.format(least)}': set {name}={high.format(least)}"
        )
    errors += _without_schedule(values, refused, prefix)
    return errors


def _without_schedule(values: Mapping[Key[Any], Any], refused: Set[Key[Any]], prefix: str) -> list[str]:
    """Find windows and periods that no policy uses."""
    policy = values.get(policies.POLICY)
    if policy is None or policies.SCHEDULE in policy or policies.POLICY in refused:
        return []
    better = ",".join((policies.SCHEDULE, *(name for name in policy if name != policies.DECLARED)))
    return [
        f"{prefix}{key.name} is '{key.format(values[key])}' while {prefix}{policies.POLICY.name} is "
        f"'{policies.POLICY.format(policy)}', allowed is a chain with {policies.SCHEDULE} then: "
        f"set {prefix}{policies.POLICY.name}={better}"
        for key in (policies.WINDOWS, policies.EXCLUDED)
        if values.get(key)
    ]
