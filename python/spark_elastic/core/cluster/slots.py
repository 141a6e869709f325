"""The number of slots.

A slot is what one task needs: an executor has ``cores // spark.task.cpus`` of them, or fewer if its GPUs
suffice for fewer. Executors that get no new tasks (excluded, decommissioning) have none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction

from attrs import define, evolve, field, frozen
from attrs.validators import ge, gt, optional

from spark_elastic.core import events as ev

# ---- The needs of one task from an executor, as Spark's settings give them for the whole application.


@frozen(kw_only=True)
class TaskSize:
    """The cores of a task, and the tasks that an executor's other resources (GPUs) suffice for; None: any.

    From Spark 4.3 on a task may need a part of a core. Raises ValueError for a task without any, or a
    negative number of tasks.
    """

    cpus: float = field(default=1.0, converter=float, validator=gt(0.0))
    most: int | None = field(default=None, validator=optional(ge(0)))

    @classmethod
    def of(cls, conf: Mapping[str, str]) -> TaskSize:
        """Read Spark's settings, which Spark itself has checked before."""
        return cls(cpus=conf.get("spark.task.cpus", "1"), most=min(_by_resources(conf), default=None))

    def slots(self, cores: int) -> int:
        """Return the number of tasks that an executor with this many cores runs at once."""
        # Use the decimal number as written: ten tasks of 0.1 cores fit into one.
        by_cores = int(cores / Fraction(str(self.cpus)))
        return by_cores if self.most is None else min(by_cores, self.most)


def _by_resources(conf: Mapping[str, str]) -> Iterator[int]:
    """Yield, for each resource, the number of tasks that an executor has enough of it for."""
    for key, amount in conf.items():
        prefix, _, name = key.partition("spark.task.resource.")
        if prefix or not name.endswith(".amount"):
            continue
        there, wanted = int(conf.get(f"spark.executor.resource.{name}", "0")), float(amount)
        # An amount below one says how many tasks share a unit; Spark rounds that down before it multiplies.
        if wanted > 0:
            yield there * int(1 / wanted) if wanted < 1 else int(there / wanted)


@define
class SlotPool:
    """The executors of the application, by id."""

    task: TaskSize = field(factory=TaskSize)
    _executors: dict[str, ev.ExecutorInfo] = field(factory=dict)
    # Spark's reason for an exclusion, by executor; unknown for one that a snapshot shows as excluded.
    _exclusions: dict[str, str] = field(factory=dict)
    # The bytes of cached blocks and of shuffle data, by executor.
    _held: dict[str, tuple[int, int]] = field(factory=dict)
    # Derived from `_executors` by `_count`, which every change of an executor calls.
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
        """The reason for each exclusion, as far as known."""
        return self._exclusions

    def slots_of(self, executor: ev.ExecutorInfo) -> int:
        """Return the slots of one executor, 0 if it gets no new tasks."""
        if executor.excluded or executor.decommissioning:
            return 0
        return self.task.slots(executor.cores)

    def held_bytes(self, executor: str) -> int:
        """Return the bytes that would be lost with an executor, as far as known."""
        return sum(self._held.get(executor, ()))

    def shuffle_bytes(self, executor: str) -> int:
        """Return the part of them that is shuffle data."""
        return self._held.get(executor, (0, 0))[1]

    def replace(self, executors: Iterable[ev.ExecutorInfo], task: TaskSize) -> None:
        """Forget everything and take over the state of a snapshot."""
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
        """Follow an executor event; one about an unknown executor, or a repeated one, changes nothing."""
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
        """Check derived values, and that nothing is kept of gone executors. Raises AssertionError."""
        slots = {id: self.slots_of(info) for id, info in self._executors.items()}
        assert self._usable == {id: count for id, count in slots.items() if count > 0}
        assert self._total == sum(slots.values())
        assert self._held.keys() <= self._executors.keys()
        assert self._exclusions.keys() <= {id for id, info in self._executors.items() if info.excluded}
        assert all(key == info.executor for key, info in self._executors.items())
