"""How many executors an application may have, whatever is wanted: as many as fit are granted."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from spark_elastic.core.keys.units import parse_size
from spark_elastic.core.settings import CoreSettings

_MIB = 1 << 20
_LEAST_OVERHEAD = 384 * _MIB
_OVERHEAD = 0.1


@frozen(kw_only=True)
class ExecutorLimits:
    """How many executors an application may have: from `least` up to `most`, None without a limit.

    `limited_by` names the setting that `most` comes from. With contradicting limits the upper one counts.
    """

    least: int = 0
    most: int | None = None
    limited_by: str = ""

    @classmethod
    def of(cls, settings: CoreSettings, cores: int, memory: int | None) -> ExecutorLimits:
        """Put the settings together; an executor has so many `cores` and bytes of `memory`, None: unknown."""
        limits: list[tuple[int, str]] = []
        if settings.max_executors is not None:
            limits.append((settings.max_executors, "spark.elastic.maxExecutors"))
        if settings.quota_cores is not None:
            limits.append((settings.quota_cores // max(1, cores), "spark.elastic.quota.cores"))
        if settings.quota_memory is not None and memory:
            limits.append((settings.quota_memory // memory, "spark.elastic.quota.memory"))
        most, name = min(limits, default=(None, ""))
        return cls(least=settings.min_executors, most=most, limited_by=name)

    def within(self, executors: int) -> int:
        """Return as many executors as are allowed of those that are wanted."""
        wanted = max(executors, self.least)
        return wanted if self.most is None else min(wanted, self.most)


def executor_memory(conf: Mapping[str, str]) -> int | None:
    """Return the bytes that one executor takes by Spark's settings, its overhead among them.

    None where they are not what Spark takes. A number without a unit counts MiB, as it does there.
    """
    try:
        memory = _spark_size(conf.get("spark.executor.memory", "1g"))
        usual = max(_LEAST_OVERHEAD, int(memory * _OVERHEAD))
        overhead = conf.get("spark.executor.memoryOverhead")
        return memory + (usual if overhead is None else _spark_size(overhead))
    except ValueError:
        return None


def _spark_size(text: str) -> int:
    return int(text) * _MIB if text.strip().isdigit() else parse_size(text)
