"""Tests of what the policy process sends to a listener that has not proved to be the driver."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest

from spark_elastic import __version__
from spark_elastic.gateway import client
from spark_elastic.gateway.client import Py4JGateway
from spark_elastic.gateway.handshake import Handshake
from spark_elastic.runtime.port import Exchange, Lost, Mismatch
from tests.unit.runtime.driver import TOKEN, Driver, mac, prove

pytestmark = pytest.mark.long

Address = tuple[str, int]
NO_DRIVER = "is not the driver that started this process"


class Peer:
    """Listens at the driver's address: each connection takes the next of `ways`, and later ones the last."""

    def __init__(self, *ways: Callable[[socket.socket, Address], None]) -> None:
        self._ways = list(ways)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address: Address = self._server.getsockname()
        self.connections = 0
        self.heard: list[bytes] = []
        self._thread = threading.Thread(target=self._serve)
        self._ends = False

    def __enter__(self) -> Peer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends = True
        socket.create_connection(self.address).close()
        self._thread.join(10)
        self._server.close()

    def handshake(self) -> Handshake:
        host, port = self.address
        return Handshake(address=host, port=port, token=TOKEN, version=__version__)

    def _serve(self) -> None:
        while True:
            accepted, _ = self._server.accept()
            with suppress(OSError), accepted:
                if self._ends:
                    return
                self.connections += 1
                way = self._ways.pop(0) if len(self._ways) > 1 else self._ways[0]
                way(accepted, self.address)
                # Everything the peer sends until it closes the connection.
                self.heard.append(b"")
                while part := accepted.recv(4096):
                    self.heard[-1] += part


@pytest.fixture
def hurried(monkeypatch: pytest.MonkeyPatch) -> float:
    """Give the other side half a second for its proof."""
    monkeypatch.setattr(client, "_PROOF_S", 0.5)
    return 0.5


@contextmanager
def lost_in_time(limit: float) -> Iterator[None]:
    since = time.monotonic()
    with pytest.raises(Lost, match="did not prove within"):
        yield
    assert time.monotonic() - since < limit + 1


def says(text: bytes) -> Callable[[socket.socket, Address], None]:
    return lambda accepted, _: accepted.sendall(text)


def leaves(accepted: socket.socket, _: Address) -> None:
    accepted.close()


def test_who_took_the_port_hears_nothing_but_random_bytes() -> None:
    with Peer(says(b"x" * 64)) as impostor:
        for _ in range(2):
            with pytest.raises(Mismatch, match=NO_DRIVER):
                Py4JGateway(impostor.handshake())
    first, second = impostor.heard
    assert (len(first), len(second)) == (32, 32)
    assert first != second
    nothing = b"\0" * 32
    assert first not in {mac(TOKEN, role, impostor.address, nothing) for role in ("policy", "driver")}


def test_who_answers_with_what_it_was_told_is_not_the_driver() -> None:
    def reflect(accepted: socket.socket, _: Address) -> None:
        accepted.sendall(accepted.recv(32, socket.MSG_WAITALL) * 2)

    with Peer(reflect) as impostor, pytest.raises(Mismatch, match=NO_DRIVER):
        Py4JGateway(impostor.handshake())
    assert impostor.heard == [b""]


def test_what_a_driver_once_said_proves_nothing() -> None:
    nonces = b"c" * 32 + b"d" * 32

    def replay(accepted: socket.socket, address: Address) -> None:
        accepted.sendall(nonces[32:] + mac(TOKEN, "driver", address, nonces))

    with Peer(replay) as impostor, pytest.raises(Mismatch, match=NO_DRIVER):
        Py4JGateway(impostor.handshake())


def test_nobody_at_another_address_can_pass_on_what_the_driver_says() -> None:
    with Driver() as driver:

        def relay(accepted: socket.socket, _: Address) -> None:
            with socket.create_connection(driver.address) as asked:
                asked.sendall(accepted.recv(32, socket.MSG_WAITALL))
                accepted.sendall(asked.recv(64, socket.MSG_WAITALL))

        with Peer(relay) as impostor, pytest.raises(Mismatch, match=NO_DRIVER):
            Py4JGateway(impostor.handshake())
    assert impostor.heard == [b""]


def test_the_token_does_not_cross_to_the_driver_either() -> None:
    heard: list[bytes] = []

    def listen(accepted: socket.socket, address: Address) -> None:
        theirs, ours = accepted.recv(32, socket.MSG_WAITALL), b"d" * 32
        accepted.sendall(ours + mac(TOKEN, "driver", address, theirs + ours))
        heard.extend([theirs, accepted.recv(4096)])
        accepted.sendall(b"+")
        heard.append(accepted.recv(4096))
        accepted.sendall(b"!x\n")

    with Peer(listen) as driver, pytest.raises(Lost):
        Py4JGateway(driver.handshake())
    nonce, proof, call = heard
    assert proof == mac(TOKEN, "policy", driver.address, nonce + b"d" * 32)
    assert call.startswith(b"c\nt\nhello\n")
    assert TOKEN.encode() not in b"".join([*heard, *driver.heard])


@pytest.mark.parametrize(
    "text", [b"", b"!yv\n", b"x" * 63, b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"]
)
def test_who_says_too_little_is_left(text: bytes, hurried: float) -> None:
    with Peer(says(text)) as peer, lost_in_time(hurried):
        Py4JGateway(peer.handshake())
    assert peer.connections == 1


def test_who_drips_is_left_in_time(hurried: float) -> None:
    def drip(accepted: socket.socket, _: Address) -> None:
        for _second in range(60):
            accepted.sendall(b"x")
            time.sleep(0.1)

    with Peer(drip) as peer, lost_in_time(hurried):
        Py4JGateway(peer.handshake())


def test_who_proves_and_then_says_nothing_is_left_in_time(hurried: float) -> None:
    def prove_alone(accepted: socket.socket, address: Address) -> None:
        theirs, ours = accepted.recv(32, socket.MSG_WAITALL), b"d" * 32
        accepted.sendall(ours + mac(TOKEN, "driver", address, theirs + ours))

    with Peer(prove_alone) as peer, lost_in_time(hurried):
        Py4JGateway(peer.handshake())


def test_a_driver_that_lets_go_is_asked_again() -> None:
    def greet(accepted: socket.socket, address: Address) -> None:
        assert prove(accepted, TOKEN, address)
        accepted.close()

    with Peer(leaves, leaves, greet) as driver, pytest.raises(Lost, match="for 'hello'"):
        Py4JGateway(driver.handshake())
    assert driver.connections == 3


def test_a_driver_that_lets_go_for_good_is_left_in_time(hurried: float) -> None:
    with Peer(leaves) as driver, lost_in_time(hurried):
        Py4JGateway(driver.handshake())
    assert 2 < driver.connections < 20


def test_an_address_of_ipv6_is_as_good() -> None:
    try:
        driver = Driver({"events": []}, address="::1")
    except OSError:
        pytest.skip("this machine has no IPv6")
    with driver:
        gateway = Py4JGateway(driver.handshake())
        assert gateway.exchange([], 0) == Exchange()
        gateway.close()
