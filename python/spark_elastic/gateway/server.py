"""Fetch requests from the driver and return the answers, with one thread for each queue.

None of these threads is the loop's, or counts as its heartbeat: a loop that hangs is still detected. A write
over HTTP waits for the loop, so reads have a thread that no write can hold up. The planning of a batch stage
waits for its answer, so these questions have a thread as well. The HTTP application is created when it is
first needed, because importing its framework takes longer than the start of the policy process.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

from spark_elastic.gateway.stages import Stages
from spark_elastic.http.metrics import flat
from spark_elastic.http.wsgi import (
    Application,
    HttpAnswer,
    HttpRequest,
    NoRequest,
    call,
    decode_request,
    encode_answer,
)
from spark_elastic.runtime.port import (
    MAX_WAIT_MS,
    GatewayError,
    JsonObject,
    QueueName,
    RequestGateway,
    Unanswered,
)
from spark_elastic.runtime.publisher import Publisher, View
from spark_elastic.runtime.request_queue import RequestQueue

_log = logging.getLogger(__name__)
_END_S = 1.5
# Spark's metrics system reads its values once in this time at most.
_FIGURES_EVERY_S = 1.0
# The pause after a failed call of the driver: the first one, and the longest one.
_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0
# The driver's JSON reader accepts no text of 20 million characters.
_LONGEST_BODY = 16 << 20
_Respond = Callable[[JsonObject], JsonObject | None]
T = TypeVar("T")


class Server:
    """Answers HTTP requests, and questions about batch stages through `stages`.

    Reads are answered from `publisher`, writes go through `requests`. `connect` makes the connection to the
    driver.

    Errors here are logged, lead to a retry, and never end the policy.
    """

    def __init__(
        self,
        connect: Callable[[], RequestGateway],
        publisher: Publisher,
        requests: RequestQueue,
        stages: Stages,
    ) -> None:
        self._connect = connect
        self._publisher = publisher
        self._requests = requests
        self._stages = stages
        self._ending = threading.Event()
        self._lock = threading.Lock()
        self._application: Application | None = None
        self._threads: list[threading.Thread] = []
        self._told: View | None = None
        self._told_at = 0.0

    def start(self) -> None:
        """Start; the connection is made in the background."""
        self._run("rest-reads", self._begin)

    def stop(self) -> None:
        """Stop, and wait a moment for the threads to end."""
        self._ending.set()
        for thread in self._threads:
            thread.join(_END_S)

    def _run(self, name: str, body: Callable[[], None]) -> None:
        """Start a thread. Raises RuntimeError if none can be started."""
        thread = threading.Thread(target=body, name=name, daemon=True)
        thread.start()
        self._threads.append(thread)

    def _begin(self) -> None:
        gateway = self._until_it_works(self._connect)
        if gateway is None:
            return
        self._requests.wake = gateway.wake
        stages = partial(self._serve_stages, gateway)
        self._until_it_works(lambda: self._run("stages", stages))
        writes = partial(self._serve, gateway, "writes", self._answer)
        self._until_it_works(lambda: self._run("rest-writes", writes))
        self._serve(gateway, "reads", self._answer)

    def _until_it_works(self, begin: Callable[[], T]) -> T | None:
        """Call `begin`, which needs a connection or a thread, until it succeeds; return None at the end."""
        pause_s = _PAUSE_S
        while not self._ending.is_set():
            try:
                return begin()
            except (GatewayError, RuntimeError) as error:
                if pause_s == _PAUSE_S:
                    _log.warning(
                        "no REST API, and batch stages run as in plain Spark, until this works: %s", error
                    )
                self._ending.wait(pause_s)
                pause_s = _longer(pause_s)
        return None

    def _serve_stages(self, gateway: RequestGateway) -> None:
        try:
            self._stages.warm_up()
        except Exception:
            _log.exception("the first question about a batch stage may come too late to be answered")
        self._serve(gateway, "stages", self._stages.answer)

    def _serve(self, gateway: RequestGateway, queue: QueueName, respond: _Respond) -> None:
        """Answer the requests of a queue until the end; a request that fails does not end this."""
        answer: JsonObject | None = None
        spare: JsonObject | None = None  # sent instead of an answer that cannot be delivered
        pause_s = _PAUSE_S
        while not self._ending.is_set():
            metrics = self._metrics() if queue == "reads" else None
            try:
                served = gateway.serve(answer, queue=queue, wait_ms=MAX_WAIT_MS, metrics=metrics)
            except Unanswered as error:
                if metrics is not None:
                    continue  # retry without the metrics, which are not sent again
                _log.warning("a request of the queue '%s' was not answered: %s", queue, error)
                if answer is None:
                    self._ending.wait(_PAUSE_S)
                answer, spare = spare, None
                continue
            except Exception as error:
                # Each call connects if necessary. If the driver is gone, the loop ends the process.
                if self._ending.wait(pause_s):
                    return
                _log.warning("the queue '%s' is served again after: %s", queue, error)
                answer = spare = None
                pause_s = _longer(pause_s)
                continue
            if served.stop:
                return
            answer = spare = None
            pause_s = _PAUSE_S
            if served.request is not None:
                spare = _spare(queue, served.request)
                try:
                    answer = respond(served.request)
                except Exception:
                    _log.exception("a request of the queue '%s' failed", queue)
                    answer, spare = spare, None

    def _metrics(self) -> Mapping[str, float] | None:
        """Return the values for Spark's metrics system; None if they are unchanged or were sent just now."""
        view, now = self._publisher.view, time.monotonic()
        if view is None or view is self._told or now - self._told_at < _FIGURES_EVERY_S:
            return None
        self._told, self._told_at = view, now
        try:
            return flat(view)
        except Exception:
            _log.exception("no metrics for Spark's metrics system")
            return None

    def _answer(self, value: JsonObject) -> JsonObject | None:
        try:
            request = decode_request(value)
        except NoRequest as error:
            _log.warning("an HTTP request cannot be read: %s", error)
            return _spare("reads", value)
        answer = self._call(request)
        if len(answer.body) > _LONGEST_BODY:
            answer = _failed(request.id, "the answer would be too large: ask for a part of it, with limit")
        return encode_answer(answer)

    def _call(self, request: HttpRequest) -> HttpAnswer:
        try:
            with self._lock:
                if self._application is None:
                    from spark_elastic.http.app import make_application

                    self._application = make_application(self._publisher, self._requests)
            return call(self._application, request)
        except Exception as error:
            _log.exception("an HTTP request failed")
            return _failed(request.id, f"the request failed in the policy process: {type(error).__name__}")


def _longer(pause_s: float) -> float:
    return min(2 * pause_s, _LONGEST_PAUSE_S)


def _failed(request: str, why: str) -> HttpAnswer:
    return HttpAnswer(
        id=request,
        status=500,
        headers={"content-type": "application/json"},
        body=json.dumps({"errors": [why]}),
    )


def _spare(queue: QueueName, request: JsonObject) -> JsonObject | None:
    """Return an answer that can always be delivered, or None to a request without an id."""
    name = request.get("id") if isinstance(request, Mapping) else None
    if not isinstance(name, str):
        return None
    if queue == "stages":
        return {"id": name, "answers": []}
    return encode_answer(_failed(name, "the request failed in the policy process: see the driver's log"))
