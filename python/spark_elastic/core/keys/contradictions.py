"""Values that do not go together, whether the application has them or one query."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from spark_elastic.core.keys import autoscale, batch, policies, rescaling, restarts, schedule
from spark_elastic.core.keys.key import PREFIX, Key

# Two values of which the second may not be below the first, and what to call the first.
_ORDERED: tuple[tuple[Key[Any], Key[Any], str], ...] = (
    (rescaling.COOLDOWN_MS, rescaling.SCALING_INTERVAL_MAX_MS, "the cooldown after rescaling"),
    (restarts.INITIAL_BACKOFF_MS, restarts.MAX_BACKOFF_MS, "the initial backoff"),
    (batch.MIN_PARALLELISM, batch.MAX_PARALLELISM, batch.MIN_PARALLELISM.full_name),
    (autoscale.MIN_EXECUTORS, autoscale.MAX_EXECUTORS, autoscale.MIN_EXECUTORS.full_name),
)


def contradictions(
    values: Mapping[Key[Any], Any], refused: Set[Key[Any]] = frozenset(), prefix: str = PREFIX
) -> list[str]:
    """Compare the values that belong together; what was refused is no value to compare with.

    `prefix` comes before the name of each setting, for a query it has its name in it.
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
    """Find windows and periods that no policy looks at."""
    policy = values.get(policies.POLICY)
    if policy is None or policies.SCHEDULE in policy or policies.POLICY in refused:
        return []
    better = ",".join((policies.SCHEDULE, *(name for name in policy if name != policies.DECLARED)))
    return [
        f"{prefix}{key.name} is '{key.format(values[key])}' while {prefix}{policies.POLICY.name} is "
        f"'{policies.POLICY.format(policy)}', allowed is a chain with {policies.SCHEDULE} then: "
        f"set {prefix}{policies.POLICY.name}={better}"
        for key in (schedule.WINDOWS, schedule.EXCLUDED)
        if values.get(key)
    ]
