"""How many slots there are.

A slot is what one task needs: an executor has ``cores // spark.task.cpus`` of them, or fewer if it has GPUs
for fewer. Executors that get no new tasks (excluded, decommissioning) have none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction

from attrs import define, evolve, field, frozen
from attrs.validators import ge, gt, optional

from spark_elastic.core import events as ev

# What one task needs of an executor, as Spark's settings say it for the whole application.


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


@define
class SlotPool:
    """The executors of the application, by id."""

    task: TaskSize = field(factory=TaskSize)
    _executors: dict[str, ev.ExecutorInfo] = field(factory=dict)
    # Why Spark has excluded an executor, by executor; not known of one that a snapshot shows so.
    _exclusions: dict[str, str] = field(factory=dict)
    # The bytes of cached blocks and of shuffle data, by executor.
    _held: dict[str, tuple[int, int]] = field(factory=dict)
    # Derived from `_executors` by `_count`, which each change of one of them goes through.
    _usable: dict[str, int] = field(factory=dict)
    _total: int = 0

    @property
    def total(self) -> int:
        """The slots that tasks can use now."""
        return self._total

    @property
    def executors(self) -> Mapping[str, ev.ExecutorInfo]:
        """All known executors, usable or not."""
        return self._executors

    @property
    def usable(self) -> Mapping[str, int]:
        """The slots of each executor that has any."""
        return self._usable

    @property
    def exclusions(self) -> Mapping[str, str]:
        """Why each excluded executor is that, as far as it is known."""
        return self._exclusions

    def slots_of(self, executor: ev.ExecutorInfo) -> int:
        """Count the slots of one executor, 0 if it gets no new tasks."""
        if executor.excluded or executor.decommissioning:
            return 0
        return self.task.slots(executor.cores)

    def held_bytes(self, executor: str) -> int:
        """Count the bytes that would be lost with an executor, as far as it is known."""
        return sum(self._held.get(executor, ()))

    def shuffle_bytes(self, executor: str) -> int:
        """Count those of them that are shuffle data."""
        return self._held.get(executor, (0, 0))[1]

    def replace(self, executors: Iterable[ev.ExecutorInfo], task: TaskSize) -> None:
        """Forget everything and take over what a snapshot says."""
        self.task = task
        self._executors = {}
        self._usable = {}
        self._total = 0
        for executor in executors:
            self._put(executor)
        self._held = {id: held for id, held in self._held.items() if id in self._executors}
        excluded = {info.executor for info in self._executors.values() if info.excluded}
        self._exclusions = {id: reason for id, reason in self._exclusions.items() if id in excluded}

    def apply(self, event: ev.Event) -> None:
        """Follow an executor event; an event about an unknown executor, or said twice, changes nothing."""
        match event:  # the most frequent first
            case ev.ExecutorUsage(executor=executor):
                if executor in self._executors:
                    self._held[executor] = event.cached_bytes, event.shuffle_bytes
            case ev.ExecutorAdded(executor=executor, host=host, cores=cores):
                self._put(ev.ExecutorInfo(executor=executor, host=host, cores=cores))
            case ev.ExecutorRemoved(executor=executor):
                self._drop(executor)
            case ev.ExecutorExcluded(executor=executor):
                self._mark(executor, lambda info: evolve(info, excluded=True))
                if event.reason and executor in self._executors:
                    self._exclusions[executor] = event.reason
            case ev.ExecutorUnexcluded(executor=executor):
                self._mark(executor, lambda info: evolve(info, excluded=False))
                self._exclusions.pop(executor, None)
            case ev.ExecutorDecommissioning(executor=executor):
                self._mark(executor, lambda info: evolve(info, decommissioning=True))

    def _drop(self, executor: str) -> None:
        if self._executors.pop(executor, None) is not None:
            self._held.pop(executor, None)
            self._exclusions.pop(executor, None)
            self._count(executor, 0)

    def _put(self, info: ev.ExecutorInfo) -> None:
        self._drop(info.executor)
        self._executors[info.executor] = info
        self._count(info.executor, self.slots_of(info))

    def _mark(self, executor: str, change: Callable[[ev.ExecutorInfo], ev.ExecutorInfo]) -> None:
        info = self._executors.get(executor)
        if info is not None:
            self._executors[executor] = changed = change(info)
            self._count(executor, self.slots_of(changed))

    def _count(self, executor: str, slots: int) -> None:
        self._total += slots - self._usable.pop(executor, 0)
        if slots > 0:
            self._usable[executor] = slots

    def validate(self) -> None:
        """Check what is derived, and that nothing is kept of who is gone. Raises AssertionError."""
        slots = {id: self.slots_of(info) for id, info in self._executors.items()}
        assert self._usable == {id: count for id, count in slots.items() if count > 0}
        assert self._total == sum(slots.values())
        assert self._held.keys() <= self._executors.keys()
        assert self._exclusions.keys() <= {id for id, info in self._executors.items() if info.excluded}
        assert all(key == info.executor for key, info in self._executors.items())
