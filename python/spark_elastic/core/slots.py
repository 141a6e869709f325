"""How many slots there are, and how they are shared out.

A slot is what one task needs: an executor has ``cores // spark.task.cpus`` of them, or fewer if it has GPUs
for fewer. Executors that get no new tasks (excluded, decommissioning) have none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from attrs import define, evolve, field

from spark_elastic.core.events import (
    Event,
    ExecutorAdded,
    ExecutorDecommissioning,
    ExecutorExcluded,
    ExecutorInfo,
    ExecutorRemoved,
    ExecutorUnexcluded,
    ExecutorUsage,
)
from spark_elastic.core.requirements import Vertex, slot_groups
from spark_elastic.core.task_size import TaskSize


@define
class SlotPool:
    """The executors of the application, by id."""

    task: TaskSize = field(factory=TaskSize)
    _executors: dict[str, ExecutorInfo] = field(factory=dict)
    _held: dict[str, int] = field(factory=dict)
    # Derived from `_executors` by `_count`, which each change of one of them goes through.
    _usable: dict[str, int] = field(factory=dict)
    _total: int = 0

    @property
    def total(self) -> int:
        """The slots that tasks can use now."""
        return self._total

    @property
    def executors(self) -> Mapping[str, ExecutorInfo]:
        """All known executors, usable or not."""
        return self._executors

    @property
    def usable(self) -> Mapping[str, int]:
        """The slots of each executor that has any."""
        return self._usable

    def slots_of(self, executor: ExecutorInfo) -> int:
        """Count the slots of one executor, 0 if it gets no new tasks."""
        if executor.excluded or executor.decommissioning:
            return 0
        return self.task.slots(executor.cores)

    def held_bytes(self, executor: str) -> int:
        """Count the bytes that would be lost with an executor, as far as it is known."""
        return self._held.get(executor, 0)

    def replace(self, executors: Iterable[ExecutorInfo], task: TaskSize) -> None:
        """Forget everything and take over what a snapshot says."""
        self.task = task
        self._executors = {}
        self._usable = {}
        self._total = 0
        for executor in executors:
            self._put(executor)
        self._held = {id: held for id, held in self._held.items() if id in self._executors}

    def apply(self, event: Event) -> None:
        """Follow an executor event; an event about an unknown executor, or said twice, changes nothing."""
        match event:  # the most frequent first
            case ExecutorUsage(executor=executor):
                if executor in self._executors:
                    self._held[executor] = event.cached_bytes + event.shuffle_bytes
            case ExecutorAdded(executor=executor, host=host, cores=cores):
                self._put(ExecutorInfo(executor=executor, host=host, cores=cores))
            case ExecutorRemoved(executor=executor):
                self._drop(executor)
            case ExecutorExcluded(executor=executor):
                self._mark(executor, lambda info: evolve(info, excluded=True))
            case ExecutorUnexcluded(executor=executor):
                self._mark(executor, lambda info: evolve(info, excluded=False))
            case ExecutorDecommissioning(executor=executor):
                self._mark(executor, lambda info: evolve(info, decommissioning=True))

    def _drop(self, executor: str) -> None:
        if self._executors.pop(executor, None) is not None:
            self._held.pop(executor, None)
            self._count(executor, 0)

    def _put(self, info: ExecutorInfo) -> None:
        self._drop(info.executor)
        self._executors[info.executor] = info
        self._count(info.executor, self.slots_of(info))

    def _mark(self, executor: str, change: Callable[[ExecutorInfo], ExecutorInfo]) -> None:
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
        assert all(key == info.executor for key, info in self._executors.items())


def allocate(vertices: Sequence[Vertex], slots: int) -> Mapping[str, int] | None:
    """Share `slots` out and return the parallelism of each vertex; None if the lower bounds do not fit.

    The group with the narrowest bounds is served first, so that what it cannot use flows to the wider ones.
    """
    if len(vertices) == 1:  # so it is for each query, each time that it is looked at
        (vertex,) = vertices
        bounds = vertex.bounds
        return {vertex.id: min(bounds.upper, slots)} if bounds.lower <= slots else None
    groups = slot_groups(vertices)
    reserved = sum(lower for lower, _ in groups.values())
    if reserved > slots:
        return None
    given: dict[str, int] = {}
    left = slots
    waiting = sorted(groups.items(), key=lambda item: item[1][1] - item[1][0])
    for served, (group, (lower, upper)) in enumerate(waiting):
        share = (left - reserved) // (len(waiting) - served)
        given[group] = lower + min(upper - lower, share)
        left -= given[group]
        reserved -= lower
    return {vertex.id: min(vertex.bounds.upper, given[vertex.group]) for vertex in vertices}
