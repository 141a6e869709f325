"""Faults of the application itself: its driver freezes or ends, its queries are stopped, it is slow."""

from __future__ import annotations

import random
import signal

import psutil

from integration.chaos.faults import Fault, Freezes, Missed
from integration.chaos.settings import QUEUES
from integration.chaos.standalone import Standalone
from integration.chaos.world import World
from integration.streaming.waiting import eventually

# Regardless of the query's own waits. Spark itself waits up to half a minute until old logs are removed.
_STOPPED_S = 40.0
_STARTED_S = 60.0
_MS = (20, 300)


class FreezeDriver(Freezes[World]):
    """The driver's JVM freezes, as in a long GC or a VM migration. Nothing is lost."""

    name = "driver_frozen"
    shortest, longest = 1.0, 30.0

    def choose(self, world: World, chance: random.Random) -> psutil.Process | None:
        return psutil.Process(world.process.pid) if world.process.running else None


class _EndsDriver(Fault[Standalone]):
    where = "standalone"
    repeats = True
    fails = True
    loses_policy = True
    ends_driver = True
    ends_burst = True


class KillDriver(_EndsDriver):
    """The driver is killed, and its user starts the application again: each query from its checkpoint."""

    name = "driver_killed"

    def strike(self, world: Standalone, query: str, chance: random.Random) -> str:
        return world.end_driver(signal.SIGKILL)


class EndDriver(_EndsDriver):
    """The same with SIGTERM, on which Spark stops its context."""

    name = "driver_ended"

    def strike(self, world: Standalone, query: str, chance: random.Random) -> str:
        return world.end_driver(signal.SIGTERM)


class StopContext(_EndsDriver):
    """The application itself ends with `spark.stop()`, and is started again."""

    name = "context_stopped"

    def strike(self, world: Standalone, query: str, chance: random.Random) -> str:
        if not world.process.running:
            raise Missed("no driver was there")
        return world.stop_context()


class StopQuery(Fault[World]):
    """The application stops a query and starts it again from the same checkpoint."""

    name = "query_stopped"
    repeats = True
    _query = ""

    def strike(self, world: World, query: str, chance: random.Random) -> str:
        self._query = query
        world.stop_and_start(query)
        # Its end must not depend on the healing of other faults.
        eventually(
            lambda: world.has_stopped(query) or world.is_frozen_or_gone,
            f"{query} is stopped",
            _STOPPED_S,
            0.1,
        )
        return query

    def outcome(self, world: World) -> None:
        # An application that was started again meanwhile has started its queries anyway.
        eventually(
            lambda: world.has_started(self._query), f"{self._query} is stopped and started", _STARTED_S
        )


class TakeQueryOver(StopQuery):
    """The application starts two more on a query's checkpoint: as in Spark, each ends the one before."""

    name = "query_taken_over"

    def strike(self, world: World, query: str, chance: random.Random) -> str:
        self._query = query
        world.take_over(query)
        return query


class EndQuery(StopQuery):
    """A client ends a query over the API, maybe with a savepoint, and the application starts it again."""

    name = "query_ended"
    needs_plugin = True
    longest = 3.0

    def strike(self, world: World, query: str, chance: random.Random) -> str:
        self._query = query  # a request without an answer may have been carried out
        saved = chance.random() < 0.5
        if saved:
            world.api.order(f"{world.path(query)}/savepoints", {"stop": True})
        else:
            world.api.order(f"{world.path(query)}/stop", {})
        return f"{query}, {'with' if saved else 'without'} a savepoint"

    def heal(self, world: World) -> None:
        if self._query:
            world.stop_and_start(self._query)


class SlowListener(Fault[Standalone]):
    """A listener of the application is so slow that Spark drops events, for all listeners in its queue."""

    name = "listener_slow"
    where = "standalone"
    shortest, longest = 1.0, 10.0

    def strike(self, world: Standalone, query: str, chance: random.Random) -> str:
        if not world.process.running:
            raise Missed("no driver was there")
        queue, ms = chance.choice(QUEUES), chance.randint(*_MS)
        world.slow_down(queue, ms)
        return f"{ms} ms an event in {queue}"

    def heal(self, world: Standalone) -> None:
        world.speed_up()
