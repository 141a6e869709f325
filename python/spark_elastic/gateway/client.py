"""The gateway to a real driver, over Py4J on the loopback interface."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import socket
import time
from collections.abc import Mapping, Sequence
from typing import Any

from py4j.java_gateway import GatewayClient, GatewayConnection, GatewayParameters, JavaGateway
from py4j.protocol import Py4JError, Py4JJavaError

from spark_elastic.gateway.handshake import Handshake
from spark_elastic.runtime.port import (
    CONTRACT,
    Exchange,
    JsonObject,
    Lost,
    Mismatch,
    QueueName,
    Served,
    Unanswered,
)
from spark_elastic.version import __version__

# Every user of the machine can connect to loopback. So on each connection to the driver, both ends prove that
# they know the token, which is new for each policy process and never sent. The driver proves itself first: a
# process that has taken its port learns nothing that depends on the token. With the nonces and the address,
# a proof cannot be replayed, or relayed from another address.
# Each connection starts with four messages. The HMACs are HMAC-SHA256, keyed with the token, over the role
# ("driver", "policy"), the driver's address and both nonces:
#   policy process: a nonce
#   driver:         a nonce, the HMAC for "driver"
#   policy process: the HMAC for "policy"
#   driver:         "+"
# A nonce has 32 bytes, as does an HMAC. Py4J's protocol follows. `AuthenticatedPort` is the other end.


_SIZE = 32
_ACCEPTED = b"+"
# The driver waits equally long for the first message of a policy process.
_PROOF_S = 20.0
_PAUSE_S = 0.05


def connect(handshake: Handshake) -> JavaGateway:
    """Return Py4J's gateway to the driver that wrote `handshake`; it connects with the first call.

    A call raises Lost or Mismatch, or what Py4J raises, if no connection can be made.
    """
    parameters = GatewayParameters(address=handshake.address, port=handshake.port, auto_convert=False)
    gateway = JavaGateway(gateway_parameters=parameters)
    gateway.set_gateway_client(_Client(handshake, parameters))
    return gateway


class _Client(GatewayClient):  # type: ignore[misc]  # Py4J has no types
    def __init__(self, handshake: Handshake, parameters: GatewayParameters) -> None:
        super().__init__(gateway_parameters=parameters)
        self._handshake = handshake

    def send_command(self, command: str, retry: bool = True, binary: bool = False) -> Any:
        """Send a request once.

        Py4J would send it again if the answer did not arrive, but the events in that answer would be lost. A
        new process starts with a snapshot instead.
        """
        return super().send_command(command, retry=False, binary=binary)

    def _create_connection(self) -> GatewayConnection:
        deadline = time.monotonic() + _PROOF_S
        while True:
            connection = GatewayConnection(self.gateway_parameters, self.gateway_property)
            connection.socket.settimeout(_PROOF_S)
            connection.start()
            try:
                _authenticate(connection.socket, self._handshake, deadline)
            except OSError as error:
                connection.close(reset=True)
                # When too many clients connect at once, the driver drops the oldest connection.
                if not isinstance(error, ConnectionError) or time.monotonic() + _PAUSE_S > deadline:
                    raise Lost(
                        f"what listens at {self._handshake.where} did not prove within {_PROOF_S:g} s "
                        "that it is the driver"
                    ) from error
                time.sleep(_PAUSE_S)
            except Mismatch:
                connection.close(reset=True)
                raise
            else:
                connection.socket.settimeout(None)
                return connection


def _authenticate(connection: socket.socket, handshake: Handshake, deadline: float) -> None:
    """Authenticate both ends. Raises Mismatch; OSError if the other end goes away or is too slow."""
    # Three short messages: none should wait until the one before is acknowledged.
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    ours = secrets.token_bytes(_SIZE)
    connection.sendall(ours)
    reply = _receive(connection, 2 * _SIZE, deadline)
    nonces, proof = ours + reply[:_SIZE], reply[_SIZE:]
    if not hmac.compare_digest(proof, _mac("driver", handshake, nonces)):
        raise Mismatch(f"what listens at {handshake.where} is not the driver that started this process")
    connection.sendall(_mac("policy", handshake, nonces))
    if _receive(connection, len(_ACCEPTED), deadline) != _ACCEPTED:
        raise Mismatch(f"the driver at {handshake.where} speaks another protocol")


def _mac(role: str, handshake: Handshake, nonces: bytes) -> bytes:
    # The address is included so that no process at another one can relay what both ends send.
    text = f"{role} {handshake.address} {handshake.port} ".encode() + nonces
    return hmac.digest(handshake.token.encode(), text, hashlib.sha256)


def _receive(connection: socket.socket, size: int, deadline: float) -> bytes:
    received = b""
    while len(received) < size:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        connection.settimeout(left)
        part = connection.recv(size - len(received))
        if not part:
            raise ConnectionResetError
        received += part
    return received


class Py4JGateway:
    """A connection to the driver that wrote `handshake`: for events and actions, or for `requests`.

    Raises Lost if no driver listens or answers. Raises Mismatch if the listener cannot prove that it knows
    our token, or has another version.
    """

    def __init__(self, handshake: Handshake, *, requests: bool = False) -> None:
        self._where = handshake.where
        if handshake.version != __version__:
            raise Mismatch(_versions_differ(handshake.version))
        self._gateway = connect(handshake)
        try:
            self._hello(requests)
        except Unanswered as error:
            self.close()
            raise Lost(str(error)) from error
        except BaseException:
            self.close()
            raise

    def exchange(self, actions: Sequence[JsonObject], wait_ms: int) -> Exchange:
        """Send `actions`, then wait up to `wait_ms` for events. Raises Lost."""
        try:
            reply = self._call("exchange", {"actions": list(actions), "wait_ms": wait_ms})
        except Unanswered as error:
            raise Lost(str(error)) from error  # the events in that answer are lost
        try:
            return Exchange(
                events=tuple(reply["events"]),
                merged=int(reply.get("merged", 0)),
                dropped=int(reply.get("dropped", 0)),
                stop=bool(reply.get("stop", False)),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise Lost(
                f"the driver at {self._where} answered something else than events: {error!r}"
            ) from error

    def serve(
        self,
        answer: JsonObject | None,
        *,
        queue: QueueName,
        wait_ms: int,
        metrics: Mapping[str, float] | None = None,
    ) -> Served:
        """Send the answer to a request, then wait up to `wait_ms` for the next one of a queue.

        Threads may call this concurrently. Raises Lost; Unanswered if the next call may succeed.
        """
        request: dict[str, Any] = {"answer": answer, "queue": queue, "wait_ms": wait_ms}
        if metrics is not None:
            request["metrics"] = metrics
        reply = self._call("serve", request)
        return Served(request=reply.get("request"), stop=bool(reply.get("stop", False)))

    def wake(self) -> None:
        """Make a waiting exchange return now. Raises Lost."""
        try:
            self._gateway.entry_point.wake()
        except (Py4JError, OSError) as error:
            raise Lost(f"no connection to the driver at {self._where} for 'wake'") from error

    def close(self) -> None:
        """Close the connection; a second call does nothing."""
        # There is no callback server; the argument avoids a deprecation warning of Py4J.
        self._gateway.close(keep_callback_server=True)

    def _hello(self, requests: bool) -> None:
        reply = self._call("hello", {"version": __version__, "contract": CONTRACT, "requests": requests})
        if reply.get("version") != __version__:
            raise Mismatch(_versions_differ(str(reply.get("version"))))
        if reply.get("contract") != CONTRACT:
            raise Mismatch(
                f"jar and Python package are version {__version__}, but the jar speaks contract "
                f"{reply.get('contract')} and the package contract {CONTRACT}, so they were built from "
                "different sources: type `make jar` in the checkout, or install spark-elastic again"
            )

    def _call(self, method: str, request: dict[str, Any]) -> dict[str, Any]:
        """Call `method` of the entry point with a JSON object, and return one. Raises Lost, Unanswered."""
        try:
            written = json.dumps(request)
        except (TypeError, ValueError, RecursionError) as error:
            raise Unanswered(f"the body of '{method}' is not JSON: {error}") from error
        try:
            text = getattr(self._gateway.entry_point, method)(written)
            reply = json.loads(text)
        except Py4JJavaError as error:
            # The driver logs its own reason; asking for it here would be one more call that may fail.
            raise Unanswered(f"the driver at {self._where} could not answer '{method}'") from error
        except (Py4JError, OSError) as error:
            raise Lost(f"no connection to the driver at {self._where} for '{method}'") from error
        except (TypeError, ValueError) as error:
            raise Lost(f"the driver at {self._where} answered '{method}' with no JSON") from error
        if not isinstance(reply, dict):
            raise Lost(f"the driver at {self._where} answered '{method}' with no JSON object")
        return reply


def _versions_differ(theirs: str) -> str:
    return (
        f"the jar is version {theirs}, this Python package is version {__version__}: "
        f"type `pip install spark-elastic=={theirs}` for the Python of spark.elastic.python, or take the jar "
        f"of version {__version__}"
    )
