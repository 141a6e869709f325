"""The faults: one class each, which strikes a target of its choice and later heals the damage.

A fault's flags declare its permitted effects; anything else is a defect.
"""

from __future__ import annotations

import random
import signal
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import ClassVar, Generic, TypeVar

import psutil

from integration.chaos.rows import now
from integration.chaos.settings import MOST, Where
from integration.chaos.standalone import Standalone
from integration.chaos.world import World
from integration.streaming.waiting import eventually
from spark_elastic_tools.client import Busy, Failure, NoDriver, Refused

_WAIT_S = 60.0
_APART_S = (0.05, 0.6)


W = TypeVar("W", bound=World)


class Missed(Exception):
    """There was nothing to strike."""


class Fault(ABC, Generic[W]):
    """A fault that can be injected.

    `repeats`: batches may be repeated. `fails`: they may fail. `loses_policy`: the policy process may be
    replaced. `ends_driver`: the driver ends and the application is started again. `ends_burst`: recovery must
    be complete before the next step. `ends_queries`: a query that is not restarted ends. `needs_links`: it
    needs a network, which not every machine allows. `needs_plugin`: plain Spark has nothing to strike.
    `needs_bounds`: there is nothing to strike in reactive mode either. `where`: the only place that has its
    target. It lasts from `shortest` to `longest` seconds.
    """

    name: ClassVar[str]
    where: ClassVar[Where | None] = None
    repeats: ClassVar[bool] = False
    fails: ClassVar[bool] = False
    loses_policy: ClassVar[bool] = False
    ends_driver: ClassVar[bool] = False
    ends_burst: ClassVar[bool] = False
    ends_queries: ClassVar[bool] = False
    needs_links: ClassVar[bool] = False
    needs_plugin: ClassVar[bool] = False
    needs_bounds: ClassVar[bool] = False
    shortest: ClassVar[float] = 0.0
    longest: ClassVar[float] = 0.0

    @abstractmethod
    def strike(self, world: W, query: str, chance: random.Random) -> str:
        """Inject the fault and return its target; `query` is the one whose phase was checked.

        Raises Missed and Failure.
        """

    def heal(self, world: W) -> None:
        """Undo the damage that `World.calm` does not undo."""

    def outcome(self, world: W) -> None:
        """Wait for the required outcome, after everything is healed. Raises AssertionError."""


class LosesExecutors(Fault[W]):
    repeats = True
    fails = True


class KillExecutor(LosesExecutors[World]):
    name = "executor_killed"

    def strike(self, world: World, query: str, chance: random.Random) -> str:
        living = world.executors()
        if not living:
            raise Missed("no executor was there")
        id_ = chance.choice(sorted(living))
        with suppress(psutil.NoSuchProcess):
            living[id_].kill()
        return f"executor {id_}"


class KillWorker(LosesExecutors[Standalone]):
    name = "worker_killed"
    where = "standalone"

    def strike(self, world: Standalone, query: str, chance: random.Random) -> str:
        worker = chance.choice(world.workers)
        world.cluster.kill_worker(worker)
        world.forget_dead_workers()
        return worker.name


class AddWorker(Fault[Standalone]):
    name = "worker_added"
    where = "standalone"

    def strike(self, world: Standalone, query: str, chance: random.Random) -> str:
        if len(world.workers) >= MOST:
            raise Missed("there are enough")
        return world.add_worker().name


class Decommission(LosesExecutors[Standalone]):
    """A worker is decommissioned, with its executors; after a while it ends."""

    name = "worker_decommissioned"
    where = "standalone"
    shortest, longest = 1.0, 5.0

    def strike(self, world: Standalone, query: str, chance: random.Random) -> str:
        self._worker = chance.choice(world.workers)
        world.cluster.decommission_worker(self._worker)
        return self._worker.name

    def heal(self, world: Standalone) -> None:
        world.cluster.remove_worker(self._worker)


class AllWorkersGone(LosesExecutors[Standalone]):
    name = "all_workers_gone"
    where = "standalone"
    shortest, longest = 0.0, 8.0

    def strike(self, world: Standalone, query: str, chance: random.Random) -> str:
        for worker in world.workers:
            world.cluster.kill_worker(worker)
        world.forget_dead_workers()
        return "all"


class Freezes(Fault[W]):
    """A process freezes and then continues."""

    _frozen: psutil.Process | None = None

    @abstractmethod
    def choose(self, world: W, chance: random.Random) -> psutil.Process | None:
        """Return the process, or None if there is none."""

    def strike(self, world: W, query: str, chance: random.Random) -> str:
        self._frozen = self.choose(world, chance)
        if self._frozen is None:
            raise Missed("none was there")
        with suppress(psutil.NoSuchProcess):
            self._frozen.send_signal(signal.SIGSTOP)
        return f"process {self._frozen.pid}"

    def heal(self, world: W) -> None:
        if self._frozen is not None:
            with suppress(psutil.NoSuchProcess):
                self._frozen.send_signal(signal.SIGCONT)


class FreezeExecutor(Freezes[World]):
    name = "executor_frozen"
    shortest, longest = 1.0, 30.0

    def choose(self, world: World, chance: random.Random) -> psutil.Process | None:
        living = world.executors()
        return living[chance.choice(sorted(living))] if living else None


class FreezeWorker(Freezes[Standalone]):
    name = "worker_frozen"
    where = "standalone"
    shortest, longest = 1.0, 30.0

    def choose(self, world: Standalone, chance: random.Random) -> psutil.Process | None:
        with suppress(psutil.NoSuchProcess, IndexError):
            return psutil.Process(chance.choice(world.workers).process.pid)
        return None


class KillMaster(Fault[Standalone]):
    """The master ends and is started again, with its recorded workers and applications."""

    name = "master_killed"
    where = "standalone"
    shortest, longest = 0.5, 10.0

    def strike(self, world: Standalone, query: str, chance: random.Random) -> str:
        world.cluster.kill_master()
        return world.cluster.master_url

    def heal(self, world: Standalone) -> None:
        world.cluster.start_master_again()


class SetBounds(Fault[World]):
    """A client declares valid bounds, and half the time withdraws them."""

    name = "bounds_set"
    needs_plugin = needs_bounds = True
    shortest, longest = 0.0, 3.0
    _taken_back: str | None = None

    def strike(self, world: World, query: str, chance: random.Random) -> str:
        upper = chance.randint(1, MOST)
        world.set_bounds(query, chance.randint(1, upper), upper)
        self._taken_back = query if chance.random() < 1 / 2 else None
        return f"{query}: at most {upper}, {'taken back' if self._taken_back else 'kept'}"

    def heal(self, world: World) -> None:
        if self._taken_back is not None:
            try:
                world.take_bounds_back(self._taken_back)
            except Failure as why:
                # Another fault may have hit the policy or the query.
                world.say(f"{self._taken_back}: its bounds are not taken back: {why}")


class FlapBounds(Fault[World]):
    """A client keeps changing bounds, for all stateful queries at once, and faster than they can follow."""

    name = "bounds_flap"
    needs_plugin = needs_bounds = True

    def strike(self, world: World, query: str, chance: random.Random) -> str:
        times = chance.randint(3, 10)
        for number in range(times):
            for name in world.stateful:
                world.set_bounds(name, 1, 1 if number % 2 else MOST)
            time.sleep(chance.uniform(*_APART_S))
        return f"{times} times"


class SetWrongBounds(Fault[World]):
    """A client declares invalid bounds: they are refused, and nothing changes."""

    name = "bounds_refused"
    needs_plugin = needs_bounds = True
    _BODIES: ClassVar[tuple[dict[str, object], ...]] = (
        {"shuffle": {"parallelism": {"lowerBound": 0, "upperBound": 2}}},
        {"shuffle": {"parallelism": {"lowerBound": 3, "upperBound": 2}}},
        {"shuffle": {"parallelism": {"lowerBound": 1, "upperBound": 10**9}}},
        {"shuffle": {"parallelism": {"lowerBound": "one", "upperBound": 2}}},
        {"nothing": {"parallelism": {"lowerBound": 1, "upperBound": 2}}},
        {"shuffle": []},
    )

    def strike(self, world: World, query: str, chance: random.Random) -> str:
        before = world.bounds(query)
        body = chance.choice(self._BODIES)
        try:
            world.api.put(f"{world.path(query)}/resource-requirements", body, "*")
        except Refused:
            after = world.bounds(query)
            assert after == before, f"bounds that were refused have changed {before} to {after}"
            return f"{query}: {body}"
        raise AssertionError(f"{query}: taken for bounds: {body}")


class TakeSavepoint(Fault[World]):
    """A client requests a savepoint; it is taken, unless the query's state does not allow it."""

    name = "savepoint"
    needs_plugin = True
    _wanted: tuple[str, int] | None = None
    _driver: int | None = None
    _OUTCOMES = ("savepoint_taken", "savepoint_failed", "savepoint_refused")

    def strike(self, world: World, query: str, chance: random.Random) -> str:
        since = now()
        world.api.order(f"{world.path(query)}/savepoints", {})
        self._wanted, self._driver = (query, since), world.process.pid
        return query

    def outcome(self, world: World) -> None:
        # The request is lost once its driver has ended.
        if self._wanted is not None and self._driver == world.process.pid:
            query, since = self._wanted
            eventually(lambda: self._told(world, query, since), f"a savepoint of {query}", _WAIT_S, 0.2)

    def _told(self, world: World, query: str, since: int) -> bool:
        try:
            id_ = world.query(query)["id"]
            said = world.api.get(f"/decisions?query={id_}")["decisions"]
        except (Busy, NoDriver):
            return False
        return any(made["reason"] in self._OUTCOMES and made["at"] >= since for made in said)
