"""Tests of the threads between the driver and the application."""

from __future__ import annotations

import base64
import itertools
import json
import logging
import threading
from collections.abc import Callable, Mapping
from queue import Empty, Queue
from typing import Any, get_args

import pytest

from spark_elastic.core import events as ev
from spark_elastic.gateway.server import Server
from spark_elastic.gateway.stages import Stages
from spark_elastic.http.wsgi import HttpAnswer, HttpRequest, NoRequest, decode_request, encode_answer
from spark_elastic.runtime.port import JsonObject, Lost, QueueName, Served, Unanswered
from spark_elastic.runtime.publisher import Publisher
from spark_elastic.runtime.request_queue import RequestQueue
from tests.unit.http.world import API, REQUIREMENTS, body, world


def message(method: str, path: str, content: object = None, **more: Any) -> dict[str, Any]:
    sent = b"" if content is None else json.dumps(content).encode()
    return {
        "id": path,
        "method": method,
        "path": path,
        "query": "",
        "headers": {"Content-Type": "application/json"},
        "body": base64.b64encode(sent).decode(),
        "user": None,
        "address": "10.0.0.1",
        "may_modify": True,
        "left_ms": 5_000,
        **more,
    }


def asked(queue: QueueName, request: str) -> dict[str, Any]:
    """Return a request with this name for a queue whose requests are answered."""
    if queue == "stages":
        exchange = {"id": "e", "bytes": [1, 2]}
        return {"id": request, "questions": [{"type": "Ranges", "group": "g", "exchanges": [exchange]}]}
    return {**message("GET", f"{API}/overview"), "id": request}


class Driver:
    """Has a queue of requests per kind, and keeps the answers."""

    def __init__(self) -> None:
        self.queues: dict[QueueName, Queue[JsonObject]] = {queue: Queue() for queue in get_args(QueueName)}
        self.answers: Queue[Any] = Queue()
        self.metrics: Queue[Mapping[str, float]] = Queue()
        self.woken = threading.Event()
        self.stop = False
        self.lost: Exception | None = None
        self.fails: Callable[[Any], bool] = lambda _: False

    def serve(
        self,
        answer: JsonObject | None,
        *,
        queue: QueueName,
        wait_ms: int,
        metrics: Mapping[str, float] | None = None,
    ) -> Served:
        if self.fails(metrics or answer):
            raise Unanswered("it is too large")
        if metrics is not None:
            self.metrics.put(metrics)
        if answer is not None:
            self.answers.put(answer)
        try:
            return Served(request=self.queues[queue].get(timeout=0.02), stop=self.stop)
        except Empty:
            if self.lost is not None:
                raise self.lost from None
            return Served(stop=self.stop)

    def wake(self) -> None:
        self.woken.set()

    def answer(self) -> Any:
        return self.answers.get(timeout=20)


def test_neither_reads_nor_stages_wait_for_a_write_that_waits_for_the_loop() -> None:
    with world() as running:
        driver = Driver()
        running.shim.deaf = True
        server = Server(lambda: driver, running.publisher, running.requests, Stages(running.publisher))
        server.start()
        driver.queues["writes"].put(message("PUT", REQUIREMENTS, body(1, 2)))
        assert driver.woken.wait(20)
        driver.queues["stages"].put(asked("stages", "s1"))
        decided = driver.answer()
        assert (decided["id"], decided["answers"][0]["type"]) == ("s1", "RangesAnswer")
        driver.queues["reads"].put(message("GET", REQUIREMENTS))
        read = driver.answer()
        assert (read["status"], json.loads(read["body"])) == (200, body(1, 32_768))
        running.shim.deaf = False
        running.shim.wake()
        written = driver.answer()
        assert (written["id"], written["status"]) == (REQUIREMENTS, 200)
        driver.stop = True
        server.stop()


def test_the_metrics_system_is_told_new_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_elastic.gateway.server._FIGURES_EVERY_S", 0.01)
    with world() as running:
        driver = Driver()
        server = Server(lambda: driver, running.publisher, running.requests, Stages(running.publisher))
        server.start()
        first = driver.metrics.get(timeout=20)
        assert (first["slots"], first["query_partitions.counts"]) == (4, 4)
        assert first["rescales_total.initial_schedule.completed"] == 1
        running.send(ev.ExecutorRemoved, executor="1", reason="lost")
        assert driver.metrics.get(timeout=20)["slots"] == 2
        driver.stop = True
        server.stop()


def test_a_request_that_cannot_be_read_or_breaks_something_is_logged_and_the_next_is_answered(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Driver()
    server = Server(lambda: driver, Publisher(), RequestQueue(), Stages(Publisher()))
    with caplog.at_level(logging.WARNING, "spark_elastic"):
        server.start()
        driver.queues["reads"].put({"id": "h1"})
        assert (unread := driver.answer())["id"] == "h1"
        assert unread["status"] == 500
        driver.queues["reads"].put(message("GET", f"{API}/openapi.json"))
        assert driver.answer()["status"] == 200
        monkeypatch.setattr("spark_elastic.gateway.server.call", lambda *_: 1 / 0)
        driver.queues["reads"].put(message("GET", f"{API}/overview"))
        broken = driver.answer()
        assert broken["status"] == 500
        assert json.loads(broken["body"])["errors"]
    driver.stop = True
    server.stop()
    assert "cannot be read" in caplog.text
    assert "ZeroDivisionError" in caplog.text


@pytest.mark.parametrize("queue", get_args(QueueName))
def test_an_answer_that_does_not_get_through_is_replaced_and_the_next_request_is_answered(
    queue: QueueName, caplog: pytest.LogCaptureFixture
) -> None:
    with world() as running, caplog.at_level(logging.WARNING, "spark_elastic"):
        driver = Driver()
        driver.fails = lambda sent: sent is not None and len(json.dumps(sent)) > 200
        server = Server(lambda: driver, running.publisher, running.requests, Stages(running.publisher))
        server.start()
        for request in ("h1", "h2"):
            driver.queues[queue].put(asked(queue, request))
            answer = driver.answer()
            assert answer["id"] == request
            assert answer["answers"] == [] if queue == "stages" else answer["status"] == 500
        driver.stop = True
        server.stop()
    assert f"a request of the queue '{queue}' was not answered: it is too large" in caplog.text


@pytest.mark.parametrize("request_", [7, [], {"id": 7}, {"no": "id"}])
@pytest.mark.parametrize("queue", get_args(QueueName))
def test_a_queue_outlives_what_is_no_request(queue: QueueName, request_: Any) -> None:
    with world() as running:
        driver = Driver()
        server = Server(lambda: driver, running.publisher, running.requests, Stages(running.publisher))
        server.start()
        driver.queues[queue].put(request_)
        driver.queues[queue].put(asked(queue, "h2"))
        answers = iter(driver.answer, None)
        assert next(answer for answer in answers if answer["id"] == "h2")
        driver.stop = True
        server.stop()


def test_a_driver_that_fails_at_every_call_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_elastic.gateway.server._PAUSE_S", 0.01)
    driver = Driver()
    calls = itertools.count()
    # The failures hit each queue: the three of requests, and that of the metrics.
    driver.fails = lambda _: next(calls) < 20
    server = Server(lambda: driver, Publisher(), RequestQueue(), Stages(Publisher()))
    server.start()
    driver.queues["reads"].put(message("GET", f"{API}/openapi.json"))
    assert driver.answer()["status"] == 200
    assert next(calls) > 20
    driver.stop = True
    server.stop()


def test_an_answer_that_no_driver_could_read_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_elastic.gateway.server._LONGEST_BODY", 10)
    driver = Driver()
    server = Server(lambda: driver, Publisher(), RequestQueue(), Stages(Publisher()))
    server.start()
    driver.queues["reads"].put(message("GET", f"{API}/openapi.json"))
    answer = driver.answer()
    assert (answer["status"], "with limit" in answer["body"]) == (500, True)
    driver.stop = True
    server.stop()


def test_a_connection_that_does_not_come_about_is_tried_again_with_one_line_in_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_elastic.gateway.server._PAUSE_S", 0.01)
    driver = Driver()
    outcomes = iter([Lost("nobody listens"), Lost("nobody listens"), driver])

    def connected() -> Any:
        if isinstance(outcome := next(outcomes), Lost):
            raise outcome
        return outcome

    server = Server(connected, Publisher(), RequestQueue(), Stages(Publisher()))
    with caplog.at_level(logging.WARNING, "spark_elastic"):
        server.start()
        driver.queues["reads"].put(message("GET", f"{API}/openapi.json"))
        assert driver.answer()["status"] == 200
    driver.stop = True
    server.stop()
    assert [record.getMessage() for record in caplog.records] == [
        "no REST API, and batch stages run as in plain Spark, until this works: nobody listens"
    ]


@pytest.mark.parametrize(("thread", "queue"), [("stages", "stages"), ("rest-writes", "writes")])
def test_a_thread_that_is_not_to_be_had_is_tried_again(
    thread: str, queue: QueueName, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_elastic.gateway.server._PAUSE_S", 0.01)
    refused: list[str] = []
    real = threading.Thread.start

    def start(self: threading.Thread) -> None:
        if self.name == thread and len(refused) < 2:
            refused.append(thread)
            raise RuntimeError("can't start new thread")
        real(self)

    monkeypatch.setattr(threading.Thread, "start", start)
    driver = Driver()
    server = Server(lambda: driver, Publisher(), RequestQueue(), Stages(Publisher()))
    server.start()
    driver.queues[queue].put(asked(queue, "h1"))
    assert driver.answer()["id"] == "h1"
    assert len(refused) == 2
    driver.stop = True
    server.stop()


def test_stages_are_asked_about_though_the_warm_up_has_failed(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Stages, "warm_up", lambda _: 1 / 0)
    driver = Driver()
    server = Server(lambda: driver, Publisher(), RequestQueue(), Stages(Publisher()))
    server.start()
    driver.queues["stages"].put(asked("stages", "s1"))
    assert driver.answer()["id"] == "s1"
    assert "ZeroDivisionError" in caplog.text
    driver.stop = True
    server.stop()


@pytest.mark.parametrize("queue", get_args(QueueName))
@pytest.mark.parametrize("error", [Lost("reset"), AttributeError("of Py4J")], ids=["lost", "another"])
def test_a_queue_whose_connection_is_lost_is_served_again(
    queue: QueueName, error: Exception, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark_elastic.gateway.server._PAUSE_S", 0.01)
    with world() as running, caplog.at_level(logging.WARNING, "spark_elastic"):
        driver = Driver()
        driver.lost = error
        server = Server(lambda: driver, running.publisher, running.requests, Stages(running.publisher))
        server.start()
        while f"the queue '{queue}' is served again" not in caplog.text:
            threading.Event().wait(0.01)
        driver.lost = None
        driver.queues[queue].put(asked(queue, "h1"))
        assert driver.answer()["id"] == "h1"
        driver.stop = True
        server.stop()


def test_what_is_lost_at_the_end_is_no_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    driver = Driver()
    driver.lost = Lost("gone")
    server = Server(lambda: driver, Publisher(), RequestQueue(), Stages(Publisher()))
    server.start()
    server.stop()
    assert caplog.records == []


def test_messages_keep_their_types() -> None:
    value = message("PUT", "/x", {"a": 1}, user="alice")
    request = decode_request(value)
    assert request == HttpRequest(
        id="/x", method="PUT", path="/x", headers={"Content-Type": "application/json"}, body=b'{"a": 1}',
        user="alice", address="10.0.0.1", may_modify=True, left_ms=5_000,
    )  # fmt: skip
    answer = HttpAnswer(id="h1", status=200, headers={"etag": '"1"'}, body="{}")
    assert json.loads(json.dumps(encode_answer(answer))) == {
        "id": "h1",
        "status": 200,
        "headers": {"etag": '"1"'},
        "body": "{}",
    }
    for wrong in ({}, {**value, "body": "no base64!"}, {**value, "headers": 1}):
        with pytest.raises(NoRequest):
            decode_request(wrong)
