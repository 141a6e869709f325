"""Cut and slow links, between processes that are not Spark's."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from integration.chaos.network import Network, network, why_not
from integration.chaos.sockets import reset
from integration.streaming.waiting import eventually

pytestmark = [pytest.mark.integration, pytest.mark.timeout(120), pytest.mark.usefixtures("allowed")]

_CHECKOUT = Path(__file__).parents[2]
_PORT = 5000
_ENOUGH_S, _TOO_LONG_S = 30.0, 3.0
# Reads everything that arrives on each connection, and answers when it is complete.
_SERVER = f"""
import socket, sys
with socket.create_server((sys.argv[1], {_PORT})) as server:
    print("listens", flush=True)
    while True:
        with server.accept()[0] as connection:
            while connection.recv(1 << 16):
                pass
            connection.sendall(b"x")
"""
_CLIENT = f"""
import socket, sys, time
began = time.monotonic()
with socket.create_connection((sys.argv[1], {_PORT}), float(sys.argv[2])) as connection:
    connection.sendall(bytes(int(sys.argv[3])))
    connection.shutdown(socket.SHUT_WR)
    assert connection.recv(1) == b"x"
print(time.monotonic() - began)
"""


@pytest.fixture(scope="module")
def allowed() -> None:
    reason = why_not()
    if reason:
        pytest.skip(f"no network can be made on this machine: {reason}")


@pytest.fixture
def apart(allowed: None) -> Iterator[Network]:
    with network() as made:
        yield made


def all_there_is() -> str:
    commands = (["ip", "netns", "list"], ["ip", "-o", "link"], ["ip", "route"])
    return "".join(subprocess.run(c, capture_output=True, text=True, check=True).stdout for c in commands)


@contextmanager
def server(within: Sequence[str], host: str) -> Iterator[None]:
    command = [*within, sys.executable, "-c", _SERVER, host]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "listens\n"
            yield
        finally:
            process.kill()


def seconds_for(within: Sequence[str], host: str, size: int = 1, limit_s: float = _ENOUGH_S) -> float | None:
    """Send `size` bytes; return the seconds that took, or None if it took too long."""
    command = [*within, sys.executable, "-c", _CLIENT, host, str(limit_s), str(size)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=3 * _ENOUGH_S, check=False)
    return float(done.stdout) if done.returncode == 0 else None


def test_a_link_is_cut_and_mended(apart: Network) -> None:
    host, within = apart.join()
    _, other = apart.join()
    with server(within, host):
        assert seconds_for([], host) is not None
        assert seconds_for(other, host) is not None
        apart.cut(host)
        assert seconds_for([], host, limit_s=_TOO_LONG_S) is None
        assert seconds_for(other, host, limit_s=_TOO_LONG_S) is None
        # The process itself continues.
        assert seconds_for(within, host) is not None
        apart.mend(host)
        assert seconds_for([], host) is not None
        assert seconds_for(other, host) is not None


def test_a_link_is_slow_and_mended(apart: Network) -> None:
    host, within = apart.join()
    with server(within, host):
        apart.slow(host, 200)
        slow = seconds_for([], host, size=50_000)
        # 400 kbit; the burst and the contents of the queue are sent at once.
        assert slow is not None
        assert slow > 1.0
        apart.mend(host)

        def is_fast() -> bool:
            took = seconds_for([], host, size=50_000)
            return took is not None and took < slow / 2

        eventually(is_fast, "the link is fast again")


@contextmanager
def connected(family: socket.AddressFamily) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Yield both ends of a connection of this process with itself; the second has an address of `family`."""
    both = family == socket.AF_INET6
    with (
        socket.create_server(("", 0), family=family, dualstack_ipv6=both) as server,
        socket.create_connection(("127.0.0.1", server.getsockname()[1])) as client,
        server.accept()[0] as accepted,
    ):
        yield client, accepted


@pytest.fixture(scope="module")
def resets() -> None:
    with connected(socket.AF_INET) as (client, _):
        port = client.getsockname()[1]
        subprocess.run(["ss", "-K", "-t", "sport", "=", f":{port}"], capture_output=True, check=True)
        try:
            client.sendall(b"x")
        except ConnectionError:
            return
    pytest.skip("this kernel resets no connections: it is built without CONFIG_INET_DIAG_DESTROY")


@pytest.mark.usefixtures("resets")
@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_connections_are_reset(family: socket.AddressFamily) -> None:
    # One end may have an address of either kind, as in a JVM.
    with connected(family) as (client, accepted):
        assert reset(psutil.Process(), "127.0.0.2") == 0
        client.sendall(b"x")
        assert accepted.recv(1) == b"x"
        assert reset(psutil.Process(), "127.0.0.1") >= 2
        for end in (client, accepted):
            with pytest.raises(ConnectionError):
                end.sendall(b"x")


_KILLED = """
import subprocess, time
from integration.chaos.network import network
with network() as made:
    _, within = made.join()
    subprocess.Popen([*within, "sleep", "infinity"])
    print(made.name, flush=True)
    time.sleep(600)
"""


def ended(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_what_a_killed_process_left_is_removed_by_the_next_one(apart: Network) -> None:
    command = [sys.executable, "-c", _KILLED]
    with subprocess.Popen(command, cwd=_CHECKOUT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        name = process.stdout.readline().strip()
        process.kill()
    (left,) = subprocess.run(
        ["ip", "netns", "pids", f"{name}-1"], capture_output=True, text=True, check=True
    ).stdout.split()
    assert name in all_there_is()
    another = "from integration.chaos.network import why_not; assert why_not() is None"
    subprocess.run([sys.executable, "-c", another], cwd=_CHECKOUT, check=True)
    eventually(lambda: name not in all_there_is(), "it is removed")
    assert ended(int(left))
    # Another that is in use stays.
    assert apart.name in all_there_is()


def test_nothing_of_a_network_is_left() -> None:
    with network() as made:
        name = made.name
        made.cut(made.join()[0])
        assert name in all_there_is()
    assert name not in all_there_is()
