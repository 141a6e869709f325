"""Ports on loopback that are kept for a server while it is down."""

from __future__ import annotations

import socket
import sys

_HOST = "127.0.0.1"


class ReservedPorts:
    """Ports chosen by the system; on Linux it gives them to nobody who lets it choose until `close`.

    They are bound and not listened on. A server that sets SO_REUSEADDR, as Java's do, may bind them as well.
    """

    def __init__(self, count: int) -> None:
        self._sockets = [_bound() for _ in range(count)]
        self.numbers = tuple(int(bound.getsockname()[1]) for bound in self._sockets)
        if sys.platform != "linux":
            # Elsewhere a bound port is nobody else's, whatever the options.
            self.close()

    def close(self) -> None:
        """Give the ports back; a second time does nothing."""
        for bound in self._sockets:
            bound.close()


def _bound() -> socket.socket:
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    bound.bind((_HOST, 0))
    return bound
