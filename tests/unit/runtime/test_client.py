"""Tests of the Py4J client against a driver that tells the truth, lies, or goes away."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from py4j import java_gateway, protocol

from spark_elastic.gateway.client import Py4JGateway
from spark_elastic.gateway.handshake import BadHandshake, Handshake, read_handshake
from spark_elastic.runtime.port import Exchange, Lost, Mismatch, Served, Unanswered
from tests.unit.runtime.driver import Driver


@pytest.fixture(autouse=True)
def py4j_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Undo the changes to Py4J by a PySpark session in this process; no policy process has one."""
    monkeypatch.setattr(java_gateway, "get_return_value", protocol.get_return_value)


@contextmanager
def connected(driver: Driver) -> Iterator[Py4JGateway]:
    with driver:
        gateway = Py4JGateway(driver.handshake())
        try:
            yield gateway
        finally:
            gateway.close()


def test_an_exchange_takes_actions_and_brings_events() -> None:
    events = [{"type": "QueryStarted", "id": "s1", "text": "several\nlines \\ and ünicode"}]
    driver = Driver({"events": events, "merged": 3, "dropped": 1, "stop": False})
    with connected(driver) as gateway:
        reply = gateway.exchange([{"type": "CancelQuery", "id": "a1", "text": "a\nb \\ ü"}], 250)
        assert reply == Exchange(events=(events[0],), merged=3, dropped=1, stop=False)
        assert gateway.exchange([], 0).stop
    assert driver.requests[1] == (
        "exchange",
        {"actions": [{"type": "CancelQuery", "id": "a1", "text": "a\nb \\ ü"}], "wait_ms": 250},
    )


def test_a_call_that_fails_in_the_driver_is_no_end_of_the_connection_for_requests() -> None:
    driver = Driver(ValueError("too large"), {"request": None, "stop": False})
    with connected(driver) as gateway:
        with pytest.raises(Unanswered, match="could not answer 'serve'"):
            gateway.serve({"id": "h0"}, queue="reads", wait_ms=5)
        with pytest.raises(Unanswered, match="is not JSON"):
            gateway.serve({"id": {1, 2}}, queue="reads", wait_ms=5)
        assert gateway.serve(None, queue="reads", wait_ms=5) == Served()


def test_an_exchange_that_fails_in_the_driver_is_lost_with_its_events() -> None:
    with connected(Driver(ValueError("no action"))) as gateway, pytest.raises(Lost, match="'exchange'"):
        gateway.exchange([], 5)


def test_a_connection_for_requests_says_so_and_brings_answers_and_requests() -> None:
    request = {"id": "h1", "method": "GET", "path": "/ü"}
    driver = Driver({"request": request, "stop": False}, "null", {"stop": True})
    with driver:
        gateway = Py4JGateway(driver.handshake(requests=True), requests=True)
        answer = {"id": "h0", "status": 200, "headers": {}, "body": "{}\n"}
        assert gateway.serve(answer, queue="writes", wait_ms=5) == Served(request=request, stop=False)
        gateway.wake()
        assert gateway.serve(None, queue="stages", wait_ms=5) == Served(request=None, stop=True)
        gateway.close()
    assert driver.requests[0][1]["requests"] is True
    assert driver.requests[1:] == [
        ("serve", {"answer": answer, "queue": "writes", "wait_ms": 5}),
        ("wake", {}),
        ("serve", {"answer": None, "queue": "stages", "wait_ms": 5}),
    ]


@pytest.mark.parametrize(
    ("lie", "says"),
    [
        ({"key": "another secret"}, "is not the driver that started this process"),
        ({"contract": 2}, "the jar speaks contract 2 and the package contract 1, .* type `make jar`"),
        (
            {"version": "9.9.9", "contract": 2},
            r"the jar is version 9\.9\.9, .*: type `pip install spark-elastic==9",
        ),
    ],
)
def test_another_driver_is_refused(lie: dict[str, Any], says: str) -> None:
    with pytest.raises(Mismatch, match=says), connected(Driver(**lie)):
        pass


def test_a_jar_of_another_version_is_not_even_called() -> None:
    with pytest.raises(Mismatch, match=r"the jar is version 0\.0\.1"):
        Py4JGateway(Handshake(address="127.0.0.1", port=1, token="secret-1", version="0.0.1"))


def test_nobody_listening_is_a_lost_connection() -> None:
    with Driver() as driver:
        nobody = driver.handshake()
    with pytest.raises(Lost, match=f"no connection to the driver at 127.0.0.1:{nobody.port}"):
        Py4JGateway(nobody)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (None, "no connection"),
        ("hello world", "with no JSON"),
        ("[]", "with no JSON object"),
        ("{}", "something else than events"),
        ('{"events": 1}', "something else than events"),
    ],
)
def test_an_answer_that_makes_no_sense_is_a_lost_connection(answer: str | None, says: str) -> None:
    with connected(Driver(answer)) as gateway, pytest.raises(Lost, match=says):
        gateway.exchange([], 0)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b'{"port": 1',
        b"hello\n",
        b"[1]\n",
        b'{"address": "::1", "port": 1, "token": "secret-1"}\n',
        b'{"port": 1, "token": "secret-1", "version": "1"}\n',
        b'{"address": "192.0.2.1", "port": 1, "token": "secret-1", "version": "1"}\n',
        b'{"address": "localhost", "port": 1, "token": "secret-1", "version": "1"}\n',
        b'{"address": 2130706433, "port": 1, "token": "secret-1", "version": "1"}\n',
        b'{"address": "::1", "port": "1", "token": "secret-1", "version": "1"}\n',
        b'{"address": "::1", "port": 65536, "token": "secret-1", "version": "1"}\n',
        b'{"address": "::1", "port": true, "token": "secret-1", "version": "1"}\n',
        b'{"address": "::1", "port": 1, "token": "", "version": "1"}\n',
        b'{"address": "::1", "port": 1, "token": "secret-1", "version": "1", "restarts": "2"}\n',
        b'{"address": "::1", "port": 1, "token": "secret-1", "version": "1", "requests": 1}\n',
        b"x" * 70_000,
    ],
)
def test_a_bad_line_from_the_driver_is_refused_without_showing_it(line: bytes) -> None:
    with pytest.raises(BadHandshake) as caught:
        read(line)
    assert "secret-1" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_unknown_fields_of_the_line_are_ignored_and_the_token_is_not_shown() -> None:
    line = b'{"address": "::1", "port": 5, "token": "secret-1", "version": "1", "later": 1000}\n'
    handshake = read(line)
    assert handshake == Handshake(address="::1", port=5, token="secret-1", version="1")
    assert handshake.where == "[::1]:5"
    more = read(line.replace(b"}", b', "restarts": 2, "requests": true}'))
    assert (more.restarts, more.requests) == (2, True)
    assert "secret-1" not in repr(handshake)


def read(line: bytes) -> Handshake:
    """Read `line` from a pipe. The pipe holds 64 KiB, and a longer line is cut, which must fail as well."""
    out, into = os.pipe()
    try:
        os.set_blocking(into, False)
        os.write(into, line)
        os.close(into)
        return read_handshake(out)
    finally:
        os.close(out)
