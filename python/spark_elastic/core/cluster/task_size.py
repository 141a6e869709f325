"""What one task needs of an executor, as Spark's settings say it for the whole application."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction

from attrs import field, frozen
from attrs.validators import ge, gt, optional


@frozen(kw_only=True)
class TaskSize:
    """The cores of a task, and how many tasks an executor's other resources (GPUs) suffice for; None: any.

    From Spark 4.3 on it may be a part of a core. Raises ValueError for a task without any, or a negative
    number of tasks.
    """

    cpus: float = field(default=1.0, converter=float, validator=gt(0.0))
    most: int | None = field(default=None, validator=optional(ge(0)))

    @classmethod
    def of(cls, conf: Mapping[str, str]) -> TaskSize:
        """Read Spark's settings, which Spark itself has checked before."""
        return cls(cpus=conf.get("spark.task.cpus", "1"), most=min(_by_resources(conf), default=None))

    def slots(self, cores: int) -> int:
        """Count the tasks that an executor with so many cores runs at once."""
        # By the number that was written: ten tasks of 0.1 cores fit into one.
        by_cores = int(cores / Fraction(str(self.cpus)))
        return by_cores if self.most is None else min(by_cores, self.most)


def _by_resources(conf: Mapping[str, str]) -> Iterator[int]:
    """Count the tasks that an executor has enough of each resource for."""
    for key, amount in conf.items():
        prefix, _, name = key.partition("spark.task.resource.")
        if prefix or not name.endswith(".amount"):
            continue
        there, wanted = int(conf.get(f"spark.executor.resource.{name}", "0")), float(amount)
        # Less than one says how many tasks share one; Spark rounds that down before it multiplies.
        if wanted > 0:
            yield there * int(1 / wanted) if wanted < 1 else int(there / wanted)
