"""TCP connections of processes: which there are, and how they are reset."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Any

import psutil

_COMMAND_S = 30.0


def established(process: psutil.Process) -> Iterator[tuple[Any, Any]]:
    """Give the connections of a process, its own end of each first. Raises NoSuchProcess."""
    for connection in process.net_connections("tcp"):
        if connection.raddr and connection.status == psutil.CONN_ESTABLISHED:
            yield connection.laddr, connection.raddr


def host_of(end: Any) -> str:
    """Return the address of an end, as one of IPv4 if it is one; a JVM has both kinds on one socket."""
    return str(end.ip).removeprefix("::ffff:")


def reset(process: psutil.Process, host: str) -> int:
    """Reset all connections of a process with a host; returns how many have gone by that.

    Root may do so, where the kernel has been built for it. Raises NoSuchProcess.
    """
    found = {ends for ends in established(process) if host_of(ends[1]) == host}
    for here, there in found:
        ends = ("src", _written(here), "dst", _written(there))
        subprocess.run(["ss", "-K", "-t", *ends], capture_output=True, timeout=_COMMAND_S, check=False)
    return len(found - set(established(process)))


def _written(end: Any) -> str:
    return f"[{end.ip}]:{end.port}" if ":" in end.ip else f"{end.ip}:{end.port}"
