"""How many executors an application may have, whatever is wanted: as many as fit are granted."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from spark_elastic.core.flags import is_on
from spark_elastic.core.keys.units import parse_size
from spark_elastic.core.settings import CoreSettings

_MIB = 1 << 20
_LEAST_OVERHEAD = "384m"
_OVERHEAD = "0.1"


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
    """Return the bytes that the cluster manager counts for one executor by Spark's settings.

    A Standalone worker counts its heap alone; others its overhead, off-heap memory and that of Python, too.
    None where the settings are not what Spark takes. A number without a unit counts MiB, as it does there.
    """
    try:
        memory = _spark_size(conf.get("spark.executor.memory", "1g"))
        if conf.get("spark.master", "").startswith("spark://"):
            return memory
        overhead = conf.get("spark.executor.memoryOverhead")
        beside = _usual_overhead(conf, memory) if overhead is None else _spark_size(overhead)
        if is_on(conf, "spark.memory.offHeap.enabled"):
            beside += parse_size(conf.get("spark.memory.offHeap.size", "0b"))
        return memory + beside + _spark_size(conf.get("spark.executor.pyspark.memory", "0"))
    except (ValueError, OverflowError):
        return None


def _usual_overhead(conf: Mapping[str, str], memory: int) -> int:
    # Kubernetes' own one has what it counts for a Python application.
    usual = conf.get("spark.kubernetes.memoryOverheadFactor", _OVERHEAD)
    factor = float(conf.get("spark.executor.memoryOverheadFactor", usual))
    least = _spark_size(conf.get("spark.executor.minMemoryOverhead", _LEAST_OVERHEAD))
    return max(least, int(memory * factor))


def _spark_size(text: str) -> int:
    return int(text) * _MIB if text.strip().isdigit() else parse_size(text)
