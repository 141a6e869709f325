"""A driver that speaks just enough of Py4J's protocol to be talked to: no JVM needed."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any

from spark_elastic import __version__
from spark_elastic.gateway.port import CONTRACT

TOKEN = "0123456789abcdef-the-secret"
Answer = dict[str, Any] | str | Exception | None


class Driver:
    """Answers hello with a proof, each exchange with the next of `answers`, and the rest with stop.

    An answer that is a text is sent as it is; for an exception the call fails in the driver, None closes the
    connection instead. `requests` is what came.
    """

    def __init__(self, *answers: Answer, key: str = TOKEN, **hello: Any) -> None:
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self._answers = iter(answers)
        self._key = key
        self._hello = {"version": __version__, "contract": CONTRACT, **hello}
        self._server = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> Driver:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        # Wakes the accept of a driver that nobody has talked to.
        socket.create_connection(self._server.getsockname()).close()
        self._thread.join(10)
        self._server.close()

    @property
    def line(self) -> bytes:
        """What the driver writes to the policy process."""
        return json.dumps({"port": self.port, "token": TOKEN, "version": __version__}).encode() + b"\n"

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.getsockname()[1])

    def _serve(self) -> None:
        connection, _ = self._server.accept()
        # A client that was told the wrong thing, or killed, goes away in the middle.
        stream = connection.makefile("rw", encoding="utf-8", newline="\n")
        with suppress(ConnectionError), connection, stream:
            self._talk(stream)

    def _talk(self, stream: IO[str]) -> None:
        commands: dict[str, Callable[[IO[str]], str | None]] = {
            "A": self._authenticate,
            "c": self._call,
            "m": _forget,
        }
        while (command := stream.readline()) and (reply := commands[command.strip()](stream)) is not None:
            stream.write(f"!{reply}\n")
            stream.flush()

    def _authenticate(self, stream: IO[str]) -> str:
        return "yv" if stream.readline().strip() == TOKEN else "x"

    def _call(self, stream: IO[str]) -> str | None:
        target, method, *arguments = iter(lambda: stream.readline().strip(), "e")
        assert target == "t"
        # A call without an argument has nothing to say.
        request = json.loads(arguments[0].removeprefix("s").replace("\\\\", "\\")) if arguments else {}
        self.requests.append((method, request))
        answer: Answer
        if method == "hello":
            proof = hmac.new(self._key.encode(), request["challenge"].encode(), hashlib.sha256).hexdigest()
            answer = {"proof": proof, **self._hello}
        else:
            answer = next(self._answers, {"events": [], "stop": True})
        if answer is None:
            return None
        if isinstance(answer, Exception):
            return "xro7"
        text = answer if isinstance(answer, str) else json.dumps(answer)
        return "ys" + text.replace("\\", "\\\\")


def _forget(stream: IO[str]) -> str:
    """Let go of an exception that the client was shown."""
    for _ in iter(lambda: stream.readline().strip(), "e"):
        pass
    return "yv"
