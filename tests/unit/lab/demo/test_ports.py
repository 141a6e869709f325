"""Tests of ports that are kept free for the demonstration's servers."""

from __future__ import annotations

import socket
import sys

import pytest

from spark_elastic_lab.demo.broker import ReservedPorts


def bind(port: int, *, reuse: bool) -> None:
    with socket.socket() as other:
        if reuse:
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        other.bind(("127.0.0.1", port))
        other.listen()


@pytest.mark.skipif(sys.platform != "linux", reason="kept on Linux only")
def test_ports_are_kept_for_a_server_that_shares_its_address() -> None:
    ports = ReservedPorts(2)
    assert len(set(ports.numbers)) == 2
    for port in ports.numbers:
        with pytest.raises(OSError, match="in use"):
            bind(port, reuse=False)
        bind(port, reuse=True)
        bind(port, reuse=True)
    ports.close()


def test_released_ports_are_anybodys() -> None:
    ports = ReservedPorts(1)
    ports.close()
    ports.close()
    bind(ports.numbers[0], reuse=False)
