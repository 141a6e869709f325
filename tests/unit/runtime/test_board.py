"""Tests of requests to the loop: each is done once, refused, or given up by exactly one side."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Mapping

import pytest

from spark_elastic.core.events import CancelRequested, Event
from spark_elastic.core.view import QueryView
from spark_elastic.runtime.board import Board, Late, MakeEvent, NotJournaled


def cancel(_: Mapping[str, QueryView]) -> MakeEvent:
    return lambda id, at: CancelRequested(id=id, at=at, query="q", by="alice")


def refuse(_: Mapping[str, QueryView]) -> MakeEvent:
    raise KeyError("q")


class Asker(threading.Thread):
    """Asks from a thread of its own; `error` is the error it got, None if none."""

    def __init__(self, board: Board, check: Callable[..., MakeEvent], timeout_s: float = 20.0) -> None:
        super().__init__()
        self.error: Exception | None = None
        self._board, self._check, self._timeout_s = board, check, timeout_s
        self.start()

    def run(self) -> None:
        try:
            self._board.ask(self._check, self._timeout_s)
        except Exception as error:
            self.error = error

    def end(self) -> Exception | None:
        self.join(20)
        assert not self.is_alive()
        return self.error


def next_ids() -> Callable[[], str]:
    numbers = itertools.count(1)
    return lambda: f"r{next(numbers)}"


def test_who_asks_goes_on_only_after_the_loop_has_published() -> None:
    board, woken = Board(), threading.Event()
    board.wake = woken.set
    asker = Asker(board, cancel)
    assert woken.wait(20)
    (request,) = board.take()
    event = request.event(next_ids(), 5)
    assert event == CancelRequested(id="r1", at=5, query="q", by="alice")
    assert asker.is_alive()
    board.publish()
    assert asker.end() is None
    assert board.take() == []


def test_a_refusal_takes_no_id_and_reaches_who_asked() -> None:
    board, woken = Board(), threading.Event()
    board.wake = woken.set
    asker = Asker(board, refuse)
    assert woken.wait(20)
    (request,) = board.take()

    def no_id() -> str:
        raise AssertionError("an id for nothing")

    assert request.event(no_id, 5) is None
    board.publish()
    assert isinstance(asker.end(), KeyError)


def test_what_was_not_journaled_is_said() -> None:
    board, woken = Board(), threading.Event()
    board.wake = woken.set
    asker = Asker(board, cancel)
    assert woken.wait(20)
    (request,) = board.take()
    assert request.event(next_ids(), 5) is not None
    request.not_journaled()
    board.publish()
    assert isinstance(asker.end(), NotJournaled)


def test_what_was_given_up_never_happens() -> None:
    board = Board()
    assert isinstance(Asker(board, cancel, timeout_s=0.01).end(), Late)
    (request,) = board.take()
    assert request.event(next_ids(), 5) is None


def test_what_the_loop_has_taken_is_not_given_up() -> None:
    board, events = Board(), list[Event | None]()

    def take() -> None:
        events.extend(request.event(next_ids(), 5) for request in board.take())

    # The loop takes the request at once, but publishes only after the timeout.
    board.wake = take
    publish = threading.Timer(0.1, board.publish)
    publish.start()
    board.ask(cancel, 0.05)
    publish.join()
    assert len(events) == 1


def test_what_is_refused_because_nobody_wakes_never_happens() -> None:
    board = Board()

    def broken() -> None:
        raise BrokenPipeError

    board.wake = broken
    with pytest.raises(BrokenPipeError):
        board.ask(cancel, 20)
    assert [request.event(next_ids(), 5) for request in board.take()] == [None]


def test_what_the_loop_has_taken_by_itself_is_not_refused() -> None:
    board, events = Board(), list[Event | None]()

    def broken() -> None:
        events.extend(request.event(next_ids(), 5) for request in board.take())
        board.publish()
        raise BrokenPipeError

    board.wake = broken
    board.ask(cancel, 20)
    assert len(events) == 1


def test_many_who_ask_at_once_are_served_in_order() -> None:
    board = Board()
    askers = [Asker(board, cancel) for _ in range(20)]
    taken = 0
    while taken < 20:
        taken += len(board.take())
        board.publish()
    assert [asker.end() for asker in askers] == [None] * 20


def test_a_view_is_there_only_when_something_is_known() -> None:
    board = Board()
    board.publish()
    assert board.view is None
    with pytest.raises(Late):
        board.ask(cancel, 0.01)
