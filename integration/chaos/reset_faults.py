"""Faults of TCP connections that are reset at both ends, as by a firewall that has lost their state."""

from __future__ import annotations

import random
from abc import abstractmethod
from contextlib import suppress

import psutil

from integration.chaos.faults import Fault, Missed
from integration.chaos.sockets import established, host_of, reset
from integration.chaos.standalone import Standalone


class _Resets(Fault[Standalone]):
    where = "standalone"
    needs_links = True

    @abstractmethod
    def chosen(self, world: Standalone, chance: random.Random) -> tuple[psutil.Process, str]:
        """Return a process, and the host at the other end. Raises Missed, NoSuchProcess."""

    def strike(self, world: Standalone, query: str, chance: random.Random) -> str:
        with suppress(psutil.NoSuchProcess):
            process, host = self.chosen(world, chance)
            times = reset(process, host)
            if times:
                return f"{times} connections of process {process.pid} with {host}"
        raise Missed("no connection was there that could be reset")


class ResetGateway(_Resets):
    """The connections between the policy process and the driver; it is not expected to open new ones."""

    name = "gateway_reset"
    needs_plugin = True
    loses_policy = True

    def chosen(self, world: Standalone, chance: random.Random) -> tuple[psutil.Process, str]:
        for policy in world.policies():
            for _, there in established(policy):
                return policy, host_of(there)
        raise Missed("no policy process was connected")


class ResetWorker(_Resets):
    """The connections between the driver and the executors on one worker: Spark replaces the executors."""

    name = "executors_reset"
    repeats = True
    fails = True

    def chosen(self, world: Standalone, chance: random.Random) -> tuple[psutil.Process, str]:
        if not world.workers or not world.process.running:
            raise Missed("no driver or no worker was there")
        return psutil.Process(world.process.pid), chance.choice(world.workers).host
