"""The whole policy process without a driver: a real loop in its own thread, and the API next to it."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from attrs import evolve, field, frozen

from spark_elastic.core import actions as ac
from spark_elastic.core import events as ev
from spark_elastic.http.app import make_application
from spark_elastic.http.wsgi import HttpRequest, call
from spark_elastic.runtime.custom.host import Host
from spark_elastic.runtime.journal import Journal
from spark_elastic.runtime.loop import Loop
from spark_elastic.runtime.port import Exchange, JsonObject
from spark_elastic.runtime.publisher import Publisher
from spark_elastic.runtime.request_queue import RequestQueue
from spark_elastic.wire import decode_action, encode_event
from tests.unit.core.builder import STATEFUL, snapshot
from tests.unit.http.contract import check
from tests.unit.runtime.memory_gateway import SteppedClock

ID = "6f1c2a34-9d0b-4c1e-8f50-1234567890ab"
COUNTS = evolve(STATEFUL, query=ID)
# A checkpoint that began in plain Spark.
OLD_COUNTS = evolve(COUNTS, checkpoint_partitions=2, provider="hdfs", checkpoint_format=1)
ADAPTIVE = {
    "spark.elastic.schedulerMode": "adaptive",
    "spark.elastic.adaptiveScheduler.submission.resourceStabilizationTimeout": "0",
}
AT_ONCE = {
    "spark.elastic.adaptiveScheduler.rescalePolicy": "always",
    "spark.elastic.adaptiveScheduler.executing.cooldownAfterRescaling": "0",
    "spark.elastic.adaptiveScheduler.executing.resourceStabilizationTimeout": "0",
}
NOW = 1_700_000_000_000
API = "/elastic/api/v1"
REQUIREMENTS = f"{API}/queries/{ID}/resource-requirements"
PATIENCE_S = 20.0
A = TypeVar("A", bound=ac.Action)


@frozen(kw_only=True)
class Reply:
    """A client's answer, with its body parsed."""

    status: int
    headers: Mapping[str, str] = field(factory=dict)
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def errors(self) -> str:
        return "\n".join(self.json["errors"])


class Shim:
    """Carries out orders at once, except copies; with `deaf` it carries out none and keeps the loop waiting.

    With `copied` a rescale only has to switch over.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._events: deque[JsonObject] = deque()
        self._woken = False
        self._ended = False
        self._sent = 0
        self.deaf = False
        self.copied = False
        self.idle = 0
        self.actions: list[ac.Action] = []

    def exchange(self, actions: Iterable[JsonObject], wait_ms: int) -> Exchange:
        for value in actions:
            action = decode_action(value)
            self.actions.append(action)
            self.send(*outcomes(action, copied=self.copied))
        with self._changed:
            self.idle += not self._events
            self._changed.notify_all()
            self._changed.wait_for(
                lambda: self._ended or (not self.deaf and (self._woken or bool(self._events)))
            )
            self._woken = False
            events = tuple(self._events)
            self._events.clear()
            return Exchange(events=events, stop=self._ended)

    def send(self, *events: tuple[type[ev.Event], dict[str, Any]]) -> None:
        with self._changed:
            for kind, fields in events:
                self._sent += 1
                event = kind(**{"id": f"s{self._sent}", "at": NOW, **fields})
                self._events.append(encode_event(event))
            self._changed.notify_all()

    def settle(self) -> None:
        """Wait until the loop has processed everything that was sent and what followed from it."""
        with self._changed:
            seen = self.idle
            self._woken = True
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: self.idle > seen and not self._events, PATIENCE_S)

    def ordered(self, kind: type[A]) -> A:
        """Wait for an order of this kind, and return the first one."""
        found: list[A] = []

        def look() -> bool:
            found[:] = [action for action in self.actions if isinstance(action, kind)]
            return bool(found)

        with self._changed:
            assert self._changed.wait_for(look, PATIENCE_S), f"no {kind.__name__}"
        return found[0]

    def wake(self) -> None:
        with self._changed:
            self._woken = True
            self._changed.notify_all()

    def end(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()


def outcomes(action: ac.Action, *, copied: bool) -> list[tuple[type[ev.Event], dict[str, Any]]]:
    done = (ev.ActionDone, {"action": action.id, "query": ac.ordered_for(action), "took_ms": 5})
    match action:
        case ac.StartQuery(query=query, partitions=partitions):
            return [done, (ev.QueryStarted, {"query": query, "run": "r1", "partitions": partitions or 2})]
        case ac.CancelQuery(query=query):
            return [done, (ev.QueryTerminated, {"query": query, "run": "r1"})]
        case ac.Rescale():
            kind, fields = done
            return [(kind, {**fields, "prepared": True} if copied else fields)]
    return []


class World:
    """A running policy, and a client of its API."""

    def __init__(self, shim: Shim, publisher: Publisher, requests: RequestQueue) -> None:
        self.shim = shim
        self.publisher = publisher
        self.requests = requests
        self.application = make_application(publisher, requests)

    def send(self, kind: type[ev.Event], **fields: Any) -> None:
        self.shim.send((kind, fields))
        self.shim.settle()

    def until_asked(self, many: int) -> None:
        """Wait until this many requests are queued for a deaf loop."""
        deadline = time.monotonic() + PATIENCE_S
        while self.requests.waiting < many:
            assert time.monotonic() < deadline
            time.sleep(0.001)

    def get(self, path: str, **more: Any) -> Reply:
        return self.request("GET", path, **more)

    def put(self, path: str, body: object, **headers: str) -> Reply:
        """Send a body as JSON, or unchanged if it is bytes; an underscore in a header stands for a dash."""
        return self._write("PUT", path, body, headers)

    def post(self, path: str, body: object = b"", **headers: str) -> Reply:
        return self._write("POST", path, body, headers)

    def _write(self, method: str, path: str, body: object, headers: Mapping[str, str]) -> Reply:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.request(method, path, headers={"Content-Type": "application/json", **named}, body=content)

    def request(self, method: str, path: str, **more: Any) -> Reply:
        """Send a request, and check the answer against the API's own description."""
        path, _, query = path.partition("?")
        fields: dict[str, Any] = {
            "may_modify": True,
            "left_ms": 10_000,
            "address": "10.0.0.1",
            "hosts": ("driver",),
            **more,
        }
        request = HttpRequest(id="h1", method=method, path=path, query=query, **fields)
        answer = call(self.application, request)
        assert answer.id == "h1"
        reply = Reply(status=answer.status, headers=answer.headers, text=answer.body)
        check(method, path.removeprefix(API), reply.status, reply.headers, reply.text)
        return reply

    def prepares(self) -> ac.PrepareMove:
        """Let the query follow two more slots, and return the order to copy its state."""
        for batch in (1, 2):
            if batch == 2:
                self.send(ev.ExecutorAdded, executor="3", host="h", cores=2)
            self.commits(batch, partitions=4, duration_ms=300)
        return self.shim.ordered(ac.PrepareMove)

    def switches(self) -> None:
        """Complete the copy after 4 s and the rescale after 5 ms, and commit a batch of 420 ms."""
        self.shim.copied = True
        copied = self.shim.ordered(ac.PrepareMove).id
        self.send(ev.ActionDone, action=copied, query=ID, took_ms=4_000)
        self.shim.settle()
        self.commits(3, partitions=6, duration_ms=420)

    def commits(self, batch: int, *, partitions: int, duration_ms: int) -> None:
        """Commit a micro-batch that began just now."""
        times = {"started": NOW + batch, "duration_ms": duration_ms}
        self.send(ev.QueryProgress, query=ID, run="r1", batch=batch, partitions=partitions, **times)

    def bounds(self) -> tuple[int, int]:
        bound = self.get(REQUIREMENTS).json["shuffle"]["parallelism"]
        return bound["lowerBound"], bound["upperBound"]


def body(lower: int, upper: int, vertex: str = "shuffle") -> dict[str, Any]:
    return {vertex: {"parallelism": {"lowerBound": lower, "upperBound": upper}}}


@contextmanager
def world(
    conf: Mapping[str, str] | None = None,
    *,
    journal: Callable[[], Journal] = lambda: Journal(None),
    queries: Iterable[ev.QueryFacts] = (COUNTS,),
    parts: Mapping[str, str] | None = None,
    spark: str = "4.2.0",
    begun: bool = True,
) -> Iterator[World]:
    """Start a policy with two executors of two cores; without `begun` it has no snapshot yet."""
    shim, publisher, requests = Shim(), Publisher(restarts=3), RequestQueue()
    requests.wake = shim.wake
    custom = Host(shim.wake)
    loop = Loop(
        shim,
        SteppedClock(NOW),
        publisher.scheduler,
        lambda _settings, _first: journal(),
        publisher,
        requests,
        custom=custom,
    )
    failed: list[BaseException] = []

    def run() -> None:
        try:
            loop.run()
        # reported below: an exception that ends a thread is not seen otherwise
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        running = World(shim, publisher, requests)
        if begun:
            executors = [ev.ExecutorInfo(executor=str(n), host="h", cores=2) for n in (1, 2)]
            told = {"conf": dict(ADAPTIVE if conf is None else conf), "parts": parts or {}}
            first = {**snapshot(executors), **told, "spark_version": spark}
            running.send(ev.Snapshot, **first)
            for facts in queries:
                running.send(ev.QuerySubmitted, facts=facts, run="r1")
        yield running
    finally:
        shim.end()
        thread.join(PATIENCE_S)
    assert failed == []
    assert not thread.is_alive()
