"""Faults of the network between a worker, with its executors, and all other processes.

Spark gives up a peer that is silent for `spark.network.timeout` (120 s), and a worker after 60 s. No link is
down for that long: connections wait, and lost data is sent again.
"""

from __future__ import annotations

import random
from abc import abstractmethod

from integration.chaos.faults import Fault, Missed
from integration.chaos.network import Network
from integration.chaos.standalone import Standalone

_KBIT = (200, 4_000)


class _Link(Fault[Standalone]):
    where = "standalone"
    needs_links = True
    ends_burst = True
    shortest, longest = 1.0, 30.0
    _host: str | None = None

    @abstractmethod
    def harm(self, network: Network, host: str, chance: random.Random) -> str:
        """Damage the link of a worker; return a description."""

    def strike(self, world: Standalone, query: str, chance: random.Random) -> str:
        if world.network is None or not world.workers:
            raise Missed("no link was there")
        worker = chance.choice(world.workers)
        self._host = worker.host
        return f"{worker.name}: {self.harm(world.network, worker.host, chance)}"

    def heal(self, world: Standalone) -> None:
        if world.network is not None and self._host is not None:
            world.network.mend(self._host)


class CutLink(_Link):
    """A cable is unplugged and plugged in again."""

    name = "link_cut"

    def harm(self, network: Network, host: str, chance: random.Random) -> str:
        network.cut(host)
        return f"no link to {host}"


class SlowLink(_Link):
    """The link has a low rate, with delay and loss."""

    name = "link_slow"

    def harm(self, network: Network, host: str, chance: random.Random) -> str:
        kbit = chance.randint(*_KBIT)
        network.slow(host, kbit)
        return f"{kbit} kbit/s to {host}"
