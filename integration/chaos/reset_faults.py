"""Faults of TCP connections that are reset at both ends, as by a firewall that has forgotten them."""

from __future__ import annotations

import random
import subprocess
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import psutil

from integration.chaos.faults import Fault, Missed
from integration.chaos.world import World

_COMMAND_S = 30.0


class _Resets(Fault):
    needs_links = True

    @abstractmethod
    def chosen(self, world: World, chance: random.Random) -> tuple[psutil.Process, str]:
        """Return a process, and the host at the other end of its connections. Raises Missed."""

    def strike(self, world: World, query: str, chance: random.Random) -> str:
        process, host = self.chosen(world, chance)
        with suppress(psutil.NoSuchProcess):
            times = reset(process, host)
            if times:
                return f"{times} connections of process {process.pid} with {host}"
        raise Missed("no connection was there that could be reset")


class ResetGateway(_Resets):
    """Those between the policy process and the driver; nobody says that it could make new ones."""

    name = "gateway_reset"
    needs_plugin = True
    loses_policy = True

    def chosen(self, world: World, chance: random.Random) -> tuple[psutil.Process, str]:
        for policy in world.policies():
            for _, there in _established(policy):
                return policy, _host(there)
        raise Missed("no policy process was connected")


class ResetWorker(_Resets):
    """Those between the driver and the executors on one worker: Spark lets these end and starts others."""

    name = "executors_reset"
    repeats = True
    fails = True

    def chosen(self, world: World, chance: random.Random) -> tuple[psutil.Process, str]:
        if not world.workers or not world.process.running:
            raise Missed("no driver or no worker was there")
        return psutil.Process(world.process.pid), chance.choice(world.workers).host


def reset(process: psutil.Process, host: str) -> int:
    """Reset all connections of a process with a host; returns how many have gone by that.

    Root may do so, where the kernel has been built for it. Raises NoSuchProcess.
    """
    found = {ends for ends in _established(process) if _host(ends[1]) == host}
    for here, there in found:
        ends = ("src", _written(here), "dst", _written(there))
        subprocess.run(["ss", "-K", "-t", *ends], capture_output=True, timeout=_COMMAND_S, check=False)
    return len(found - set(_established(process)))


def _established(process: psutil.Process) -> Iterator[tuple[Any, Any]]:
    """Give the connections of a process, its own end of each first."""
    for connection in process.net_connections("tcp"):
        if connection.raddr and connection.status == psutil.CONN_ESTABLISHED:
            yield connection.laddr, connection.raddr


def _host(end: Any) -> str:
    """Return the address of an end, as one of IPv4 if it is one; a JVM has both kinds on one socket."""
    return str(end.ip).removeprefix("::ffff:")


def _written(end: Any) -> str:
    return f"[{end.ip}]:{end.port}" if ":" in end.ip else f"{end.ip}:{end.port}"
