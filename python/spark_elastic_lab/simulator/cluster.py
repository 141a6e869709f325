"""A simulated cluster: executors are requested, start after a while, fail, and are released."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Hashable, Iterator
from functools import partial
from random import Random

from attrs import define, field, frozen
from attrs.validators import and_, ge, gt, le, optional

# ---- The clock of a simulation: runs events in a deterministic order.


Happening = Callable[[], None]


@define
class Clock:
    """A queue of events at their moments (ms since the start); at the same moment, first set runs first."""

    now: int = 0
    _queue: list[tuple[int, int]] = field(factory=list)
    _set: dict[int, tuple[Happening, Hashable | None]] = field(factory=dict)
    _named: dict[Hashable, int] = field(factory=dict)
    _count: int = 0

    def at(self, when: float, happening: Happening, name: Hashable | None = None) -> None:
        """Schedule an event at a moment, not before now; it replaces an event of the same `name`."""
        if name is not None:
            self.forget(name)
            self._named[name] = self._count
        heapq.heappush(self._queue, (max(self.now, -int(-when // 1)), self._count))
        self._set[self._count] = (happening, name)
        self._count += 1

    def after(self, ms: float, happening: Happening, name: Hashable | None = None) -> None:
        """Schedule an event after `ms` milliseconds."""
        self.at(self.now + ms, happening, name)

    def forget(self, name: Hashable) -> None:
        """Cancel the event with this name."""
        number = self._named.pop(name, None)
        if number is not None:
            del self._set[number]

    def run(self, end: int) -> Iterator[int]:
        """Run all events up to `end` and yield the time after each; then set the time to `end`."""
        while self._queue and self._queue[0][0] <= end:
            at, number = heapq.heappop(self._queue)
            happening = self._set.pop(number, None)
            if happening is None:
                continue
            self.now = at
            if happening[1] is not None:
                del self._named[happening[1]]
            happening[0]()
            yield at
        self.now = end


@frozen(kw_only=True)
class ClusterSpec:
    """The properties of a cluster.

    It starts with `initial` executors of `cores` each and never has more than `quota`. An executor takes
    about `startup_s` (s) from its request to its registration, varied by up to the share `startup_spread`. It
    fails after `mtbf_h` hours on average, or never if that is None, and is replaced. `notice_s` (s) before
    its failure it is decommissioned, as a spot instance is; with 0, it fails without notice. A share
    `refusals` of the requests is refused. A decommissioned executor takes `decommission_s` (s) to leave; with
    `decommissions`, released executors leave this way. Until a number is requested, `recorded` replaces
    `initial`: pairs of a moment (ms) and the number of executors from then. Raises ValueError for invalid
    values.
    """

    cores: int = field(default=4, validator=ge(1))
    initial: int = field(default=2, validator=ge(0))
    quota: int = field(default=64, validator=ge(1))
    startup_s: float = field(default=30.0, validator=ge(0))
    startup_spread: float = field(default=0.2, validator=and_(ge(0), le(1)))
    mtbf_h: float | None = field(default=None, validator=optional(gt(0)))
    notice_s: float = field(default=0.0, validator=ge(0))
    refusals: float = field(default=0.0, validator=and_(ge(0), le(1)))
    decommissions: bool = True
    decommission_s: float = field(default=5.0, validator=ge(0))
    recorded: tuple[tuple[int, int], ...] = ()

    def __attrs_post_init__(self) -> None:
        if self.initial > self.quota:
            raise ValueError(f"initial {self.initial} is more than quota {self.quota}: lower the first")

    @property
    def first(self) -> int:
        """The number of executors at the start."""
        return self.recorded[0][1] if self.recorded else self.initial


@frozen(kw_only=True)
class Notices:
    """Callbacks for an executor that has joined, is about to leave, or is gone (lost or not)."""

    joined: Callable[[str], None]
    leaving: Callable[[str], None]
    gone: Callable[[str, bool], None]


@define
class Cluster:
    """The executors of one application; `target` is the last requested total.

    Some `leaving` executors are `noticed`: the cluster takes them, the application did not release them. As
    on Kubernetes, these count toward the requested total until they are gone.
    """

    spec: ClusterSpec
    clock: Clock
    chance: Random
    tell: Notices
    target: int = field(init=False)
    live: list[str] = field(factory=list)
    leaving: set[str] = field(factory=set)
    noticed: set[str] = field(factory=set)
    starting: list[str] = field(factory=list)
    _count: int = 0

    def __attrs_post_init__(self) -> None:
        self.target = self.spec.first
        for _ in range(self.spec.first):
            executor = self._next()
            self.live.append(executor)
            self._may_fail(executor)
        for number, (at, count) in enumerate(self.spec.recorded[1:]):
            self.clock.at(at, partial(self._become, count), ("recorded", number))

    @property
    def staying(self) -> list[str]:
        """The executors that accept tasks, oldest first."""
        return [executor for executor in self.live if executor not in self.leaving]

    @property
    def usable(self) -> int:
        """The number of executors that accept tasks."""
        return len(self.live) - len(self.leaving)

    @property
    def paid(self) -> int:
        """The number of executors that occupy a node, including those that are starting or leaving."""
        return len(self.live) + len(self.starting)

    def request(self, total: int) -> str | None:
        """Request a total of executors; running ones stay. Return the error, or None if it was accepted."""
        if self.spec.refusals and self.chance.random() < self.spec.refusals:
            return "the cluster manager does not answer"
        for number in range(len(self.spec.recorded)):
            self.clock.forget(("recorded", number))
        self.target = total
        self._follow()
        return None

    def release(self, executors: tuple[str, ...], at_once: bool) -> None:
        """Release executors, at once or after they have moved their data away."""
        for executor in executors:
            if executor not in self.live or executor in self.leaving:
                continue
            if at_once or self.spec.decommission_s == 0:
                self._end(executor, False)
            else:
                self.leaving.add(executor)
                self.tell.leaving(executor)
                ms = self.spec.decommission_s * 1_000
                self.clock.after(ms, partial(self._end, executor, False), ("end", executor))

    def fail(self, executor: str) -> None:
        """Fail an executor, after its notice; it is replaced if it is still wanted."""
        if executor in self.leaving:
            return
        if self.spec.notice_s == 0:
            self._end(executor, True)
            return
        self.leaving.add(executor)
        self.noticed.add(executor)
        self.tell.leaving(executor)
        self.clock.after(self.spec.notice_s * 1_000, partial(self._end, executor, False), ("end", executor))

    def _follow(self) -> None:
        """Start missing executors, or cancel starting ones that are no longer wanted."""
        given_back = len(self.leaving) - len(self.noticed)
        counted = len(self.live) - given_back + len(self.starting)
        missing = min(self.target, self.spec.quota - given_back) - counted
        for _ in range(missing):
            executor = self._next()
            self.starting.append(executor)
            spread = self.chance.uniform(-1, 1) * self.spec.startup_spread
            ms = self.spec.startup_s * 1_000 * (1 + spread)
            self.clock.after(ms, partial(self._join, executor), ("join", executor))
        for _ in range(min(-missing, len(self.starting))):
            self.clock.forget(("join", self.starting.pop()))

    def _become(self, count: int) -> None:
        """Add or remove executors until `count` accept tasks, as it was recorded."""
        self.target = count
        for executor in self.staying[count:]:
            self._end(executor, True)
        while self.usable < count:
            self.starting.append(self._next())
            self._join(self.starting[-1])

    def _join(self, executor: str) -> None:
        self.starting.remove(executor)
        self.live.append(executor)
        self._may_fail(executor)
        self.tell.joined(executor)

    def _may_fail(self, executor: str) -> None:
        if self.spec.mtbf_h is not None:
            ms = -math.log(1 - self.chance.random()) * self.spec.mtbf_h * 3_600_000
            self.clock.after(ms, lambda: self.fail(executor), ("fail", executor))

    def _end(self, executor: str, lost: bool) -> None:
        self.live.remove(executor)
        self.leaving.discard(executor)
        self.noticed.discard(executor)
        for what in ("fail", "end"):
            self.clock.forget((what, executor))
        self.tell.gone(executor, lost)
        if self.target > self.usable + len(self.starting):
            self._follow()  # the executor that left made room in the quota

    def _next(self) -> str:
        self._count += 1
        return str(self._count)
