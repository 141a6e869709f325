"""Tests of the driver's port for the policy process, and of any other local process that connects to it."""

from __future__ import annotations

import socket
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from attrs import evolve

from integration.streaming.bare_jvm import bare_jvm
from integration.streaming.driver import LOG4J
from integration.streaming.native_threads import LARGE_STACKS, no_thread_more
from integration.streaming.waiting import eventually
from spark_elastic import __version__
from spark_elastic.gateway.client import Py4JGateway, connect
from spark_elastic.gateway.handshake import Handshake
from spark_elastic.runtime.port import GatewayError, Lost, Mismatch
from tests.unit.runtime.driver import mac

pytestmark = pytest.mark.integration

# The shim's own limits: the time for the proof, and the number of connections that may be in it.
LIMIT_S, MOST = 10.0, 128
# On a busy machine another process's turn takes a while.
SLACK_S = 30.0


class Gateway:
    """The shim's gateway in a JVM, and the handshake of a policy process."""

    def __init__(self, jvm: Any) -> None:
        shim = jvm.org.apache.spark.elastic
        self._jvm = jvm
        self._gateway = shim.PolicyGateway(
            shim.EventStream(), shim.Requests(), shim.PolicyMetrics(), __version__, None, None
        )
        self._gateway.start()
        self.process = psutil.Process(jvm.java.lang.ProcessHandle.current().pid())

    def handshake(self) -> Handshake:
        """Expect another policy process; return its handshake."""
        token, address = self._gateway.expectCall(), self._gateway.address()
        host, port = address.getAddress().getHostAddress(), address.getPort()
        return Handshake(address=host, port=port, token=token, version=__version__)

    def threads(self) -> list[str]:
        """Return the names of the gateway's threads."""
        threads = self._jvm.java.lang.Thread.getAllStackTraces().keySet()
        return sorted(str(t.getName()) for t in threads if t.getName().startswith("elastic-gateway"))

    def daemons(self) -> bool:
        """Return whether none of them would keep the JVM alive."""
        threads = self._jvm.java.lang.Thread.getAllStackTraces().keySet()
        return all(t.isDaemon() for t in threads if t.getName().startswith("elastic-gateway"))

    def shutdown(self) -> None:
        self._gateway.shutdown()


@pytest.fixture(scope="module")
def jvm() -> Iterator[Any]:
    with bare_jvm() as started:
        yield started


@pytest.fixture
def gateway(jvm: Any) -> Iterator[Gateway]:
    with running(jvm) as started:
        yield started


@contextmanager
def running(jvm: Any) -> Iterator[Gateway]:
    started = Gateway(jvm)
    try:
        yield started
    finally:
        started.shutdown()
        eventually(lambda: not started.threads(), "no thread of the gateway is left", timeout_s=SLACK_S)


@contextmanager
def policy(handshake: Handshake) -> Iterator[Py4JGateway]:
    connected = Py4JGateway(handshake)
    try:
        yield connected
    finally:
        connected.close()


def exchanges(handshake: Handshake) -> bool:
    with policy(handshake) as connected:
        return not connected.exchange([], 0).stop


def stranger(handshake: Handshake) -> socket.socket:
    return socket.create_connection((handshake.address, handshake.port), LIMIT_S + SLACK_S)


def hears_the_end(connection: socket.socket) -> bytes:
    """Return everything the driver sends until it closes the connection."""
    heard = b""
    # Unread input turns the close into a reset.
    with suppress(ConnectionError):
        while part := connection.recv(4096):
            heard += part
    return heard


def bytes_taken(connection: socket.socket, part: bytes, every_s: float = 0.0) -> int:
    """Send until the driver closes the connection; return the number of bytes, at most a thousand parts."""
    sent = 0
    with suppress(ConnectionError):
        for _ in range(1_000):
            connection.sendall(part)
            sent += len(part)
            time.sleep(every_s)
    return sent


def said_well(connection: socket.socket, handshake: Handshake) -> bytes:
    """Send a policy process's proof; return the complete answer."""
    ours = b"c" * 32
    connection.sendall(ours)
    reply = connection.recv(64, socket.MSG_WAITALL)
    where = (handshake.address, handshake.port)
    assert reply[32:] == mac(handshake.token, "driver", where, ours + reply[:32])
    proof = mac(handshake.token, "policy", where, ours + reply[:32])
    connection.sendall(proof)
    return ours + proof


@pytest.mark.parametrize("words", [b"", b"c", b"c" * 32, b"c" * 39], ids=len)
def test_500_who_say_nothing_more_keep_nobody_out_and_cost_no_thread(gateway: Gateway, words: bytes) -> None:
    handshake = gateway.handshake()
    with policy(handshake) as connected:
        connected.exchange([], 0)
        threads, files = gateway.threads(), gateway.process.num_fds()
        idle = [stranger(handshake) for _ in range(500)]
        try:
            for connection in idle:
                with suppress(ConnectionError):
                    connection.sendall(words)
            since = time.monotonic()
            assert exchanges(handshake)
            # Before the time of any of them is up.
            assert time.monotonic() - since < LIMIT_S - 1
            assert gateway.process.num_fds() <= files + MOST + 10
            connected.exchange([], 0)
            eventually(lambda: gateway.threads() == threads, "no thread more", timeout_s=SLACK_S)
        finally:
            for connection in idle:
                connection.close()
        eventually(lambda: gateway.process.num_fds() <= files, "all is closed", timeout_s=LIMIT_S + SLACK_S)


def test_who_connects_again_and_again_keeps_nobody_out(gateway: Gateway) -> None:
    handshake, enough = gateway.handshake(), threading.Event()
    made = 0

    def flood() -> None:
        nonlocal made
        held: deque[socket.socket] = deque()
        while not enough.is_set():
            held.append(stranger(handshake))
            made += 1
            if len(held) > 2 * MOST:
                held.popleft().close()
        for connection in held:
            connection.close()

    flooding = threading.Thread(target=flood)
    flooding.start()
    try:
        eventually(lambda: made > MOST, "there are more than it takes")
        before = made
        for _ in range(20):
            assert exchanges(handshake)
        assert made > before + MOST
    finally:
        enough.set()
        flooding.join()


@pytest.mark.parametrize("every_s", [None, 0.5], ids=["silent", "dripping"])
def test_who_takes_too_long_is_let_go(gateway: Gateway, every_s: float | None) -> None:
    since = time.monotonic()
    with stranger(gateway.handshake()) as connection:
        if every_s is None:
            assert hears_the_end(connection) == b""
        else:
            assert bytes_taken(connection, b"c", every_s) < 32
    assert LIMIT_S - 1 < time.monotonic() - since < LIMIT_S + SLACK_S


def test_a_line_without_an_end_ends_after_the_first_64_bytes(gateway: Gateway) -> None:
    handshake = gateway.handshake()
    with stranger(handshake) as connection:
        assert bytes_taken(connection, b"x" * 65_536) < 20_000_000
        assert len(hears_the_end(connection)) in {0, 64}
    assert exchanges(handshake)


def test_py4j_hears_nobody_before_the_proof(gateway: Gateway) -> None:
    handshake = gateway.handshake()
    with stranger(handshake) as connection:
        connection.sendall(b"c\nt\nwake\ne\n" + b" " * 64)
        assert len(hears_the_end(connection)) in {0, 64}
    assert gateway.threads() == ["elastic-gateway"]


def test_a_wrong_proof_is_the_end(gateway: Gateway) -> None:
    handshake = gateway.handshake()
    where = (handshake.address, handshake.port)
    with stranger(handshake) as connection:
        connection.sendall(b"c" * 32)
        reply = connection.recv(64, socket.MSG_WAITALL)
        # The driver's own proof does not pass for a policy process's either.
        for_driver = mac(handshake.token, "driver", where, b"c" * 32 + reply[:32])
        assert for_driver == reply[32:]
        connection.sendall(for_driver)
        assert hears_the_end(connection) == b""
    assert gateway.threads() == ["elastic-gateway"]


def test_a_proof_opens_one_connection_and_no_other(gateway: Gateway) -> None:
    handshake = gateway.handshake()
    with stranger(handshake) as connection:
        said = said_well(connection, handshake)
        assert connection.recv(1) == b"+"
        both = ["elastic-gateway", "elastic-gateway-call"]
        eventually(lambda: gateway.threads() == both, "a thread serves it")
    with stranger(handshake) as connection:
        connection.sendall(said)
        assert len(hears_the_end(connection)) in {0, 64}


def test_who_knows_another_token_finds_no_driver(gateway: Gateway) -> None:
    handshake = gateway.handshake()
    with pytest.raises(Mismatch, match="is not the driver that started this process"):
        exchanges(evolve(handshake, token="0" * 64))
    assert exchanges(handshake)


def test_a_new_policy_process_has_another_token_and_is_the_only_one_heard(gateway: Gateway) -> None:
    first = gateway.handshake()
    with policy(first) as old:
        old.exchange([], 0)
        with stranger(first) as half:
            half.sendall(b"c" * 32)
            reply = half.recv(64, socket.MSG_WAITALL)
            second = gateway.handshake()
            assert second.token != first.token
            nonces = b"c" * 32 + reply[:32]
            half.sendall(mac(first.token, "policy", (first.address, first.port), nonces))
            assert hears_the_end(half) == b""
        with pytest.raises(Lost):
            old.exchange([], 0)
        with pytest.raises(Mismatch):
            old.exchange([], 0)
        assert exchanges(second)


def test_where_no_file_descriptor_is_left_it_goes_on_when_there_is_one(gateway: Gateway) -> None:
    handshake, process = gateway.handshake(), gateway.process
    soft, hard = process.rlimit(psutil.RLIMIT_NOFILE)
    with stranger(handshake) as before, stranger(handshake) as late:
        eventually(lambda: len(open_at(process, handshake)) == 2, "both are accepted")
        late.sendall(b"c" * 32)
        process.rlimit(psutil.RLIMIT_NOFILE, (process.num_fds(), hard))
        try:
            with stranger(handshake) as after:
                after.settimeout(2)
                after.sendall(b"c" * 32)
                busy = sum(process.cpu_times()[:2])
                with pytest.raises(TimeoutError):
                    after.recv(64, socket.MSG_WAITALL)
                # It waits instead of retrying in a busy loop.
                assert sum(process.cpu_times()[:2]) - busy < 1
                # Open connections are served meanwhile.
                said_well(before, handshake)
                assert before.recv(1) == b"+"
                process.rlimit(psutil.RLIMIT_NOFILE, (soft, hard))
                after.settimeout(SLACK_S)
                assert len(after.recv(64, socket.MSG_WAITALL)) == 64
        finally:
            process.rlimit(psutil.RLIMIT_NOFILE, (soft, hard))
    assert exchanges(handshake)


def test_where_no_thread_is_left_it_says_so_and_goes_on_when_there_is_one(tmp_path: Path) -> None:
    log, settings = tmp_path / "log", tmp_path / "log4j2.properties"
    settings.write_text(LOG4J.format(log=log))
    with (
        bare_jvm(LARGE_STACKS, f"-Dlog4j2.configurationFile={settings}") as jvm,
        running(jvm) as gateway,
    ):
        for times in (1, 2):
            handshake = gateway.handshake()
            assert exchanges(handshake)
            eventually(lambda: gateway.threads() == ["elastic-gateway"], "no thread more", timeout_s=SLACK_S)
            with no_thread_more(jvm):
                for _ in range(2):
                    with pytest.raises(GatewayError):
                        exchanges(handshake)

            def said() -> list[str]:
                return [line for line in log.read_text().splitlines() if "cannot accept connections" in line]

            lines = eventually(lambda n=times: said() if len(said()) >= n else [], "it is said")  # type: ignore[misc]
            assert len(lines) == times
            assert all("OutOfMemoryError: unable to create native thread" in line for line in lines)
        assert exchanges(handshake)


def test_100_reconnections_leave_nothing_behind(gateway: Gateway) -> None:
    assert exchanges(gateway.handshake())
    files = gateway.process.num_fds()
    for _ in range(100):
        assert exchanges(gateway.handshake())
    eventually(lambda: gateway.threads() == ["elastic-gateway"], "no thread more", timeout_s=SLACK_S)
    eventually(lambda: gateway.process.num_fds() <= files, "no socket more", timeout_s=SLACK_S)


def test_its_threads_keep_no_jvm_and_it_leaves_no_port(jvm: Any) -> None:
    with running(jvm) as gateway:
        handshake = gateway.handshake()
        with policy(handshake) as connected, stranger(handshake) as waiting:
            connected.exchange([], 0)
            assert gateway.threads() == ["elastic-gateway", "elastic-gateway-call"]
            assert gateway.daemons()
            gateway.shutdown()
            assert hears_the_end(waiting) == b""
            with pytest.raises(Lost):
                connected.exchange([], 0)
        with pytest.raises(ConnectionRefusedError):
            stranger(handshake)
        with pytest.raises(GatewayError):
            exchanges(handshake)


@pytest.mark.parametrize(
    ("option", "family"),
    [
        ("-Djava.net.preferIPv6Addresses=true", socket.AF_INET6),
        ("-Djava.net.preferIPv6Addresses=false", socket.AF_INET),
        ("-Djava.net.preferIPv4Stack=true", socket.AF_INET),
    ],
)
def test_the_address_is_the_one_that_java_is_told_to_prefer(
    option: str, family: socket.AddressFamily
) -> None:
    if family is socket.AF_INET6 and not has_ipv6():
        pytest.skip("this machine has no IPv6")
    with bare_jvm(option) as other, running(other) as gateway:
        handshake = gateway.handshake()
        assert socket.getaddrinfo(handshake.address, None)[0][0] is family
        assert exchanges(handshake)


def test_a_text_of_megabytes_arrives_whole_both_ways(gateway: Gateway) -> None:
    connected = connect(gateway.handshake())
    text = "several\nlines \\ and ünicode " * 200_000
    try:
        assert connected.jvm.java.lang.String(text) == text
    finally:
        connected.close(keep_callback_server=True)


def open_at(process: psutil.Process, handshake: Handshake) -> list[Any]:
    """Return the connections of a process that other processes have made to its port."""
    return [
        connection
        for connection in process.net_connections("tcp")
        if connection.status == psutil.CONN_ESTABLISHED and connection.laddr.port == handshake.port
    ]


def has_ipv6() -> bool:
    with suppress(OSError), socket.create_server(("::1", 0), family=socket.AF_INET6):
        return True
    return False
