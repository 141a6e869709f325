"""Connections to the driver on which both ends have proved that they know the token, which never crosses.

The driver proves itself first: who took its port is told nothing that depends on the token. This opens each
connection, with HMAC-SHA256 by the token over the role ("driver", "policy"), the driver's address and both
nonces:

    policy process   a nonce
    driver           a nonce, the HMAC for "driver"
    policy process   the HMAC for "policy"
    driver           "+"

A nonce has 32 bytes, as an HMAC has. Py4J's protocol follows. `AuthenticatedPort` is the other end.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import socket
import time
from typing import Any

from py4j.java_gateway import GatewayClient, GatewayConnection, GatewayParameters, JavaGateway

from spark_elastic.gateway.handshake import Handshake
from spark_elastic.gateway.port import Lost, Mismatch

_SIZE = 32
_ACCEPTED = b"+"
# As long as the driver waits for the first word of a policy process.
_PROOF_S = 20.0
_PAUSE_S = 0.05


def connect(handshake: Handshake) -> JavaGateway:
    """Return Py4J's gateway to the driver that wrote `handshake`; it connects with the first call.

    A call raises Lost or Mismatch, or what Py4J raises, if no connection comes about.
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

        Py4J asks again when the answer did not come, but then the events of that answer are lost. A new
        process begins with a snapshot instead.
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
                # When too many connect at once, the driver lets go of the oldest.
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
    """Prove each end to the other. Raises Mismatch; OSError if the other end goes away or is not in time."""
    # Three short messages: none of them is to wait for the one before to be acknowledged.
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
    # With the address in it, nobody at another one can pass on what both ends say.
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
