"""Standard input of the policy process: one line from the driver, then nothing until the driver is gone."""

from __future__ import annotations

import ipaddress
import json
import os
import threading
from collections.abc import Callable

from attrs import field, frozen

_MAX_LINE_BYTES = 64 * 1024


class BadHandshake(ValueError):
    """The line from the driver cannot be used; the text never contains any of it."""


@frozen(kw_only=True)
class Handshake:
    """Where the driver listens (a loopback address), and the secret that both sides must know.

    `restarts` counts the policy processes before this one; `requests` says that the driver sends requests.
    """

    address: str
    port: int
    token: str = field(repr=False)
    version: str
    restarts: int = 0
    requests: bool = False

    @property
    def where(self) -> str:
        """The address and port as one text."""
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"


def read_handshake(stdin: int) -> Handshake:
    """Read the driver's line from file descriptor `stdin`. Raises BadHandshake."""
    # Byte by byte, without Python's buffers: a thread blocked in a buffered reader is fatal at exit.
    line = bytearray()
    while not line.endswith(b"\n"):
        byte = os.read(stdin, 1)
        if not byte:
            raise BadHandshake(
                "standard input ended before the driver's line: this module is started by the plugin"
            )
        line += byte
        if len(line) > _MAX_LINE_BYTES:
            raise BadHandshake("the driver's line is too long")
    return _parse(bytes(line))


def _parse(line: bytes) -> Handshake:
    try:
        value = json.loads(line)
        address, port = value["address"], value["port"]
        token, version = value["token"], value["version"]
        restarts, requests = value.get("restarts", 0), value.get("requests", False)
    except (ValueError, TypeError, KeyError, AttributeError):
        # Without the cause, because its text may quote the line, including the token.
        raise BadHandshake(
            "the driver's line is no JSON object with address, port, token and version"
        ) from None
    if not _is_loopback(address):
        raise BadHandshake("the address in the driver's line is not on the loopback interface")
    if type(port) is not int or not 0 < port < 65_536:
        raise BadHandshake("the port in the driver's line is not a number from 1 to 65535")
    if not isinstance(token, str) or not token or not isinstance(version, str):
        raise BadHandshake("the token or the version in the driver's line is not text")
    if type(restarts) is not int or type(requests) is not bool:
        raise BadHandshake("restarts or requests in the driver's line has another type")
    return Handshake(
        address=address, port=port, token=token, version=version, restarts=restarts, requests=requests
    )


def _is_loopback(address: object) -> bool:
    try:
        return isinstance(address, str) and ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def watch_for_end(stdin: int, gone: Callable[[], None]) -> None:
    """Call `gone` from a separate thread once the other end of `stdin` is closed, for any reason."""

    def watch() -> None:
        while True:
            try:
                if not os.read(stdin, 4096):
                    break
            except OSError:
                break
        gone()

    threading.Thread(target=watch, name="driver-watch", daemon=True).start()
