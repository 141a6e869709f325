"""A driver without a JVM that speaks just enough of Py4J's protocol to be a peer."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any

from attrs import evolve

from spark_elastic import __version__
from spark_elastic.gateway.handshake import Handshake
from spark_elastic.runtime.port import CONTRACT

TOKEN = "0123456789abcdef-the-secret"
Answer = dict[str, Any] | str | Exception | None


def prove(connection: socket.socket, key: str, address: tuple[str, int]) -> bool:
    """Prove at `address`, as a driver does, that `key` is known; return whether the client proved it, too."""
    nonces = connection.recv(32, socket.MSG_WAITALL)
    if len(nonces) < 32:
        return False
    ours = secrets.token_bytes(32)
    nonces += ours
    connection.sendall(ours + mac(key, "driver", address, nonces))
    if connection.recv(32, socket.MSG_WAITALL) != mac(key, "policy", address, nonces):
        return False
    connection.sendall(b"+")
    return True


def mac(key: str, role: str, address: tuple[str, int], nonces: bytes) -> bytes:
    """Return the proof that a peer in this role knows `key`."""
    text = f"{role} {address[0]} {address[1]} ".encode() + nonces
    return hmac.new(key.encode(), text, hashlib.sha256).digest()


class Driver:
    """Proves that it is the driver, answers each exchange with the next of `answers`, and all others with
    stop.

    An answer that is a text is sent as is; an exception fails the call in the driver, and None closes the
    connection. `requests` records the calls.
    """

    def __init__(self, *answers: Answer, key: str = TOKEN, address: str = "127.0.0.1", **hello: Any) -> None:
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self._answers = iter(answers)
        self._key = key
        self._hello = {"version": __version__, "contract": CONTRACT, **hello}
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._server = socket.create_server((address, 0), family=family)
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> Driver:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        # Wakes up the accept call of a driver that no client has connected to.
        socket.create_connection(self.address).close()
        self._thread.join(10)
        self._server.close()

    @property
    def line(self) -> bytes:
        """The line that the driver writes to the policy process."""
        host, port = self.address
        told = {"address": host, "port": port, "token": TOKEN, "version": __version__}
        return json.dumps(told).encode() + b"\n"

    def handshake(self, **other: Any) -> Handshake:
        """The handshake that the policy process reads by default."""
        host, port = self.address
        told = Handshake(address=host, port=port, token=TOKEN, version=__version__)
        return evolve(told, **other)

    @property
    def address(self) -> tuple[str, int]:
        """The address that it listens at."""
        host, port, *_ = self._server.getsockname()
        return str(host), int(port)

    def _serve(self) -> None:
        connection, _ = self._server.accept()
        # A client that was killed or got a wrong answer closes the connection early.
        stream = connection.makefile("rw", encoding="utf-8", newline="\n")
        with suppress(ConnectionError), connection, stream:
            if prove(connection, self._key, self.address):
                self._talk(stream)

    def _talk(self, stream: IO[str]) -> None:
        commands: dict[str, Callable[[IO[str]], str | None]] = {
            "c": self._call,
            "m": _forget,
        }
        while (command := stream.readline()) and (reply := commands[command.strip()](stream)) is not None:
            stream.write(f"!{reply}\n")
            stream.flush()

    def _call(self, stream: IO[str]) -> str | None:
        target, method, *arguments = iter(lambda: stream.readline().strip(), "e")
        assert target == "t"
        # A call without an argument has no request.
        request = json.loads(arguments[0].removeprefix("s").replace("\\\\", "\\")) if arguments else {}
        self.requests.append((method, request))
        rest: Answer = {"events": [], "stop": True}
        answer = self._hello if method == "hello" else next(self._answers, rest)
        if answer is None:
            return None
        if isinstance(answer, Exception):
            return "xro7"
        text = answer if isinstance(answer, str) else json.dumps(answer)
        return "ys" + text.replace("\\", "\\\\")


def _forget(stream: IO[str]) -> str:
    """Release an exception that was passed to the client."""
    for _ in iter(lambda: stream.readline().strip(), "e"):
        pass
    return "yv"
