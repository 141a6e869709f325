"""A connection to an application that listens for orders on a socket (AF_UNIX)."""

from __future__ import annotations

from multiprocessing.connection import Client, Connection
from pathlib import Path

from integration.streaming.waiting import eventually
from spark_elastic_lab.demo.processes import LoggedProcess, ProcessFailure


def connected(process: LoggedProcess, address: Path, timeout_s: float) -> Connection:
    """Wait until it listens, up to a limit. Raises ProcessFailure if it has ended, else AssertionError."""

    def look() -> Connection | None:
        if not process.running:
            raise ProcessFailure(f"the application has ended\n{process.log_tail()}")
        try:
            return Client(str(address), family="AF_UNIX")
        except OSError:
            return None

    found = eventually(look, "the application listens", timeout_s)
    assert found is not None
    return found
