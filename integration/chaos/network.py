"""A network on this machine: a namespace for each worker, with an address and a link that can be cut or slow.

The links meet in a bridge. It has its own namespace, to which this machine's firewall rules do not apply.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import psutil

from integration.commands import output_of
from spark_elastic_tools.maven import locked

_COMMAND_S = 30.0
_END_S = 10.0
_POLL_S = 0.05
# Few networks use such addresses, and those that the machine has a route to are skipped.
_SECOND = range(201, 251)
# The number of workers with the same first three address bytes.
_IN_A_ROW = 250
_UPLINK = "uplink"
# A queue that holds the data of this many ms adds that much delay; data beyond it is dropped.
_QUEUE_MS, _BURST = 400, "4kb"


class NotAllowed(Exception):
    """This machine does not let us create a network; the message has the reason."""


class Network:
    """The network; its own end, with master and driver, has the address `host`. Workers join one by one.

    `name` is the beginning of the names of its parts, at most 5 letters.
    """

    def __init__(self, closing: ExitStack, name: str = "chaos") -> None:
        self._closing = closing
        # Two concurrent runs must not collide, and what a killed one left has to be found.
        self.name = f"{name}{os.getpid()}"
        self._front = _free_addresses()
        self._ports: dict[str, str] = {}
        self._slow: set[str] = set()
        self._behind: dict[str, str] = {}
        self.host = f"{self._front}.0.1"
        self._switch = self._namespace("switch")
        _run("ip", "-n", self._switch, "link", "add", "bridge", "type", "bridge")
        _run("ip", "-n", self._switch, "link", "set", "bridge", "up")
        # It is deleted at once; devices in a namespace are deleted some time after it.
        _run("ip", "link", "add", self.name, "type", "veth", "peer", "name", "p0", "netns", self._switch)
        closing.callback(_run, "ip", "link", "delete", self.name)
        self._plug_in("p0")
        _run("ip", "address", "add", f"{self.host}/16", "dev", self.name)
        _run("ip", "link", "set", self.name, "up")

    def join(self) -> tuple[str, list[str]]:
        """Add a worker; return its address, and the prefix of its command line."""
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
        for subnet, behind in self._behind.items():
            _run("ip", "-n", name, "route", "add", subnet, "via", behind)
        self._ports[host] = port
        return host, ["ip", "netns", "exec", name]

    def route(self, subnet: str, host: str) -> None:
        """Let this machine and all workers, also later ones, reach a subnet behind a worker."""
        _run("ip", "route", "add", subnet, "via", host, "dev", self.name)
        for other, port in self._ports.items():
            if other != host:
                _run("ip", "-n", self._of(port), "route", "add", subnet, "via", host)
        self._behind[subnet] = host

    def cut(self, host: str) -> None:
        """Drop all traffic to and from a worker."""
        _run("ip", "-n", self._switch, "link", "set", self._ports[host], "down")

    def slow(self, host: str, kbit: int) -> None:
        """Limit the rate to `kbit` kbit/s each way; data that waits too long is dropped."""
        self._slow.add(host)
        for namespace, device in self._ends(host):
            shape = ("tbf", "rate", f"{kbit}kbit", "burst", _BURST, "latency", f"{_QUEUE_MS}ms")
            _run("tc", "-n", namespace, "qdisc", "replace", "dev", device, "root", *shape)

    def mend(self, host: str) -> None:
        """Undo both; do nothing for a healthy link."""
        _run("ip", "-n", self._switch, "link", "set", self._ports[host], "up")
        if host in self._slow:
            self._slow.remove(host)
            for namespace, device in self._ends(host):
                _run("tc", "-n", namespace, "qdisc", "delete", "dev", device, "root")

    def _ends(self, host: str) -> tuple[tuple[str, str], tuple[str, str]]:
        port = self._ports[host]
        return (self._switch, port), (self._of(port), _UPLINK)

    def _of(self, port: str) -> str:
        """Return the namespace of the worker that is plugged in there."""
        return f"{self.name}-{port.removeprefix('p')}"

    def _namespace(self, name: str) -> str:
        whole = f"{self.name}-{name}"
        _run("ip", "netns", "add", whole)
        self._closing.callback(_run, "ip", "netns", "delete", whole)
        return whole

    def _plug_in(self, port: str) -> None:
        _run("ip", "-n", self._switch, "link", "set", port, "master", "bridge")
        _run("ip", "-n", self._switch, "link", "set", port, "up")


@contextmanager
def network(name: str = "chaos") -> Iterator[Network]:
    """Create a network, which is removed after the block. Raises NotAllowed.

    A namespace lives as long as any process in it: end these processes first. Networks of the same name that
    killed processes have left are removed before.
    """
    remove_abandoned(name)
    with ExitStack() as closing:
        yield Network(closing, name)


def has_ended(owner: int) -> bool:
    """Return whether what is named after this process id belongs to no living process."""
    return not psutil.pid_exists(owner)


def remove_abandoned(name: str) -> None:
    """Remove networks of this name whose process has ended, and end what runs in them. Raises NotAllowed."""
    with locked("networks"):
        namespaces = _abandoned(rf"^({name}(\d+)-\w+)", _run("ip", "netns", "list"))
        for namespace in namespaces:
            _end_processes(namespace)
        for link in _abandoned(rf"^\d+: ({name}(\d+))[@:]", _run("ip", "-o", "link", "show")):
            _run("ip", "link", "delete", link)
        for namespace in namespaces:
            _run("ip", "netns", "delete", namespace)


def _abandoned(pattern: str, listed: str) -> list[str]:
    found = re.finditer(pattern, listed, re.MULTILINE)
    return [each[1] for each in found if has_ended(int(each[2]))]


def _end_processes(namespace: str) -> None:
    deadline = time.monotonic() + _END_S
    while (found := _run("ip", "netns", "pids", namespace).split()) and time.monotonic() < deadline:
        for pid in found:
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        time.sleep(_POLL_S)


def why_not() -> str | None:
    """Create a test network and use all its functions; return why it fails, or None if it works."""
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
        return output_of(command, NotAllowed, timeout_s=_COMMAND_S)
    except OSError as error:
        raise NotAllowed(f"{command[0]} cannot be run: {error.strerror}") from error
