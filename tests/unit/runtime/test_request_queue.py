"""Tests of requests to the loop: each is done once, refused, or given up by exactly one side."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping

import pytest

from spark_elastic.core.events import CancelRequested, Event
from spark_elastic.core.query_view import QueryView
from spark_elastic.runtime.request_queue import Late, MakeEvent, NotJournaled, RequestQueue


def cancel(_: Mapping[str, QueryView]) -> MakeEvent:
    return lambda id, at: CancelRequested(id=id, at=at, query="q", by="alice")


def refuse(_: Mapping[str, QueryView]) -> MakeEvent:
    raise KeyError("q")


class Asker(threading.Thread):
    """Asks from a thread of its own; `error` is the error it got, None if none."""

    def __init__(
        self, requests: RequestQueue, check: Callable[..., MakeEvent], timeout_s: float = 20.0
    ) -> None:
        super().__init__()
        self.error: Exception | None = None
        self._requests, self._check, self._timeout_s = requests, check, timeout_s
        self.start()

    def run(self) -> None:
        try:
            self._requests.ask(self._check, self._timeout_s)
        except Exception as error:
            self.error = error

    def end(self) -> Exception | None:
        self.join(20)
        assert not self.is_alive()
        return self.error


def next_ids() -> Callable[[], str]:
    numbers = itertools.count(1)
    return lambda: f"r{next(numbers)}"


def test_who_asks_goes_on_only_when_the_loop_releases_it() -> None:
    requests, woken = RequestQueue(), threading.Event()
    requests.wake = woken.set
    asker = Asker(requests, cancel)
    assert woken.wait(20)
    (request,) = requests.take()
    event = request.event({}, next_ids(), 5)
    assert event == CancelRequested(id="r1", at=5, query="q", by="alice")
    assert asker.is_alive()
    requests.release()
    assert asker.end() is None
    assert requests.take() == []


def test_a_refusal_takes_no_id_and_reaches_who_asked() -> None:
    requests, woken = RequestQueue(), threading.Event()
    requests.wake = woken.set
    asker = Asker(requests, refuse)
    assert woken.wait(20)
    (request,) = requests.take()

    def no_id() -> str:
        raise AssertionError("an id for nothing")

    assert request.event({}, no_id, 5) is None
    requests.release()
    assert isinstance(asker.end(), KeyError)


def test_what_was_not_journaled_is_said() -> None:
    requests, woken = RequestQueue(), threading.Event()
    requests.wake = woken.set
    asker = Asker(requests, cancel)
    assert woken.wait(20)
    (request,) = requests.take()
    assert request.event({}, next_ids(), 5) is not None
    request.not_journaled()
    requests.release()
    assert isinstance(asker.end(), NotJournaled)


def test_what_was_given_up_never_happens() -> None:
    requests = RequestQueue()
    assert isinstance(Asker(requests, cancel, timeout_s=0.01).end(), Late)
    (request,) = requests.take()
    assert request.event({}, next_ids(), 5) is None


def test_what_the_loop_has_taken_is_not_given_up() -> None:
    requests, events = RequestQueue(), list[Event | None]()

    def take() -> None:
        events.extend(request.event({}, next_ids(), 5) for request in requests.take())

    # The loop takes the request at once, but publishes only after the timeout.
    requests.wake = take
    release = threading.Timer(0.1, requests.release)
    release.start()
    requests.ask(cancel, 0.05)
    release.join()
    assert len(events) == 1


def test_what_is_refused_because_nobody_wakes_never_happens() -> None:
    requests = RequestQueue()

    def broken() -> None:
        raise BrokenPipeError

    requests.wake = broken
    with pytest.raises(BrokenPipeError):
        requests.ask(cancel, 20)
    assert [request.event({}, next_ids(), 5) for request in requests.take()] == [None]


def test_what_the_loop_has_taken_by_itself_is_not_refused() -> None:
    requests, events = RequestQueue(), list[Event | None]()

    def broken() -> None:
        events.extend(request.event({}, next_ids(), 5) for request in requests.take())
        requests.release()
        raise BrokenPipeError

    requests.wake = broken
    requests.ask(cancel, 20)
    assert len(events) == 1


def test_many_who_ask_at_once_are_served_in_order() -> None:
    requests = RequestQueue()
    askers = [Asker(requests, cancel) for _ in range(20)]
    taken = 0
    while taken < 20:
        taken += len(requests.take())
        requests.release()
    assert [asker.end() for asker in askers] == [None] * 20
