"""TCP connections of processes: how to list and to reset them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Any

import psutil

_COMMAND_S = 30.0


def established(process: psutil.Process) -> Iterator[tuple[Any, Any]]:
    """Yield the connections of a process, each with its own end first. Raises NoSuchProcess."""
    for connection in process.net_connections("tcp"):
        if connection.raddr and connection.status == psutil.CONN_ESTABLISHED:
            yield connection.laddr, connection.raddr


def host_of(end: Any) -> str:
    """Return the address of an end, as IPv4 if possible; a JVM has both kinds on one socket."""
    return str(end.ip).removeprefix("::ffff:")


def reset(process: psutil.Process, host: str) -> int:
    """Reset all connections of a process with a host; return the number that are gone afterwards.

    This needs root, and a kernel that is built for it. Raises NoSuchProcess.
    """
    found = {ends for ends in established(process) if host_of(ends[1]) == host}
    for here, there in found:
        ends = ("src", _written(here), "dst", _written(there))
        subprocess.run(["ss", "-K", "-t", *ends], capture_output=True, timeout=_COMMAND_S, check=False)
    return len(found - set(established(process)))


def _written(end: Any) -> str:
    return f"[{end.ip}]:{end.port}" if ":" in end.ip else f"{end.ip}:{end.port}"
