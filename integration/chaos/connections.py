"""Faults of clients that connect and then stay silent."""

from __future__ import annotations

import random
import socket
import time
from abc import abstractmethod
from contextlib import suppress
from urllib.parse import urlsplit

import psutil

from integration.chaos.faults import Fault, Missed
from integration.chaos.sockets import established
from integration.chaos.standalone import Standalone

_CONNECT_S = 5.0
_MANY = 500
_WORDS = (
    ("nothing", b""),
    ("a letter", b"G"),
    ("half a request", b"GET /elastic/api/v1/queries HTTP/1.1\r\n"),
    ("nonsense", b"\0\xff" * 40),
)


class _Idles(Fault[Standalone]):
    where = "standalone"
    shortest, longest = 1.0, 5.0

    @abstractmethod
    def address(self, world: Standalone) -> tuple[str, int] | None:
        """Return host and port of the driver to connect to."""

    def strike(self, world: Standalone, query: str, chance: random.Random) -> str:
        self._held: list[socket.socket] = []
        address = self.address(world)
        if address is None:
            raise Missed("no such port")
        # Some send the start of a request.
        said, words = chance.choice(_WORDS)
        deadline = time.monotonic() + _CONNECT_S
        # Spark's UI lets one connection wait in line: not all of them may be established in time.
        while len(self._held) < _MANY and time.monotonic() < deadline:
            with suppress(OSError):
                connection = socket.create_connection(address, _CONNECT_S)
                self._held.append(connection)
                connection.sendall(words)
        return f"{len(self._held)} connections to port {address[1]}, each says {said}"

    def heal(self, world: Standalone) -> None:
        for connection in self._held:
            connection.close()


class IdleAtUi(_Idles):
    name = "idle_at_ui"

    def address(self, world: Standalone) -> tuple[str, int] | None:
        url = urlsplit(world.api.url)
        return (url.hostname, url.port) if url.hostname and url.port else None


class IdleAtGateway(_Idles):
    name = "idle_at_gateway"
    needs_plugin = True

    def address(self, world: Standalone) -> tuple[str, int] | None:
        with suppress(psutil.NoSuchProcess):
            for policy in world.policies():
                for _, there in established(policy):
                    return there.ip, there.port
        return None
