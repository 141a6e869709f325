"""A network on this machine: a namespace for each worker, with an address and a link that can be cut or slow.

The links meet in a bridge. It has a namespace of its own, where no rule of this machine's firewall counts.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

_COMMAND_S = 30.0
# Few networks have such addresses, and what the machine knows a way to is left alone.
_SECOND = range(201, 251)
# So many workers have addresses with the same three numbers in front.
_IN_A_ROW = 250
_UPLINK = "uplink"
# A queue that holds what comes in so many ms adds that much delay, and what comes on top of it is lost.
_QUEUE_MS, _BURST = 400, "4kb"


class NotAllowed(Exception):
    """This machine does not let us make a network, for the reason that the message has."""


class Network:
    """Its own end, where master and driver are, has the address `host`; workers join it one by one."""

    def __init__(self, closing: ExitStack) -> None:
        self._closing = closing
        # Two runs at once do not meet.
        self.name = f"chaos{os.getpid()}"
        self._front = _free_addresses()
        self._ports: dict[str, str] = {}
        self._slow: set[str] = set()
        self.host = f"{self._front}.0.1"
        self._switch = self._namespace("switch")
        _run("ip", "-n", self._switch, "link", "add", "bridge", "type", "bridge")
        _run("ip", "-n", self._switch, "link", "set", "bridge", "up")
        # Gone at once, while what is in a namespace goes after that.
        _run("ip", "link", "add", self.name, "type", "veth", "peer", "name", "p0", "netns", self._switch)
        closing.callback(_run, "ip", "link", "delete", self.name)
        self._plug_in("p0")
        _run("ip", "address", "add", f"{self.host}/16", "dev", self.name)
        _run("ip", "link", "set", self.name, "up")

    def join(self) -> tuple[str, list[str]]:
        """Make room for one worker more: its address, and what its command line is to begin with."""
        number = len(self._ports) + 1
        row, place = divmod(number, _IN_A_ROW)
        host, port = f"{self._front}.{row}.{place + 2}", f"p{number}"
        name = self._namespace(str(number))
        veth = ("type", "veth", "peer", "name", _UPLINK, "netns", name)
        _run("ip", "-n", self._switch, "link", "add", port, *veth)
        self._plug_in(port)
        _run("ip", "-n", name, "address", "add", f"{host}/16", "dev", _UPLINK)
        for device in ("lo", _UPLINK):
            _run("ip", "-n", name, "link", "set", device, "up")
        self._ports[host] = port
        return host, ["ip", "netns", "exec", name]

    def cut(self, host: str) -> None:
        """Let nothing through to a worker, or from it."""
        _run("ip", "-n", self._switch, "link", "set", self._ports[host], "down")

    def slow(self, host: str, kbit: int) -> None:
        """Let through so many kbit a second each way; what waits for too long is lost."""
        self._slow.add(host)
        for namespace, device in self._ends(host):
            shape = ("tbf", "rate", f"{kbit}kbit", "burst", _BURST, "latency", f"{_QUEUE_MS}ms")
            _run("tc", "-n", namespace, "qdisc", "replace", "dev", device, "root", *shape)

    def mend(self, host: str) -> None:
        """Undo both; nothing happens to a link that is well."""
        _run("ip", "-n", self._switch, "link", "set", self._ports[host], "up")
        if host in self._slow:
            self._slow.remove(host)
            for namespace, device in self._ends(host):
                _run("tc", "-n", namespace, "qdisc", "delete", "dev", device, "root")

    def _ends(self, host: str) -> tuple[tuple[str, str], tuple[str, str]]:
        port = self._ports[host]
        return (self._switch, port), (f"{self.name}-{port.removeprefix('p')}", _UPLINK)

    def _namespace(self, name: str) -> str:
        whole = f"{self.name}-{name}"
        _run("ip", "netns", "add", whole)
        self._closing.callback(_run, "ip", "netns", "delete", whole)
        return whole

    def _plug_in(self, port: str) -> None:
        _run("ip", "-n", self._switch, "link", "set", port, "master", "bridge")
        _run("ip", "-n", self._switch, "link", "set", port, "up")


@contextmanager
def network() -> Iterator[Network]:
    """Make a network, which is gone after the block. Raises NotAllowed.

    A namespace lives as long as a process in it: end them before.
    """
    with ExitStack() as closing:
        yield Network(closing)


def why_not() -> str | None:
    """Try to make a network with all that is done to one; tells why it cannot be made, None if it can."""
    try:
        with network() as made:
            host, within = made.join()
            made.slow(host, 1000)
            made.cut(host)
            made.mend(host)
            _run(*within, "true")
    except NotAllowed as error:
        return str(error)
    return None


def _free_addresses() -> str:
    for tried in range(len(_SECOND)):
        front = f"10.{_SECOND[(os.getpid() + tried) % len(_SECOND)]}"
        if not _run("ip", "-4", "route", "show", "root", f"{front}.0.0/16"):
            return front
    raise NotAllowed(f"all addresses from 10.{_SECOND[0]}.0.0 to 10.{_SECOND[-1]}.255.255 are in use")


def _run(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_COMMAND_S, check=False)
    except OSError as error:
        raise NotAllowed(f"{command[0]} cannot be run: {error.strerror}") from error
    if done.returncode != 0:
        raise NotAllowed(f"{' '.join(command)}: {done.stderr.strip()}")
    return done.stdout
