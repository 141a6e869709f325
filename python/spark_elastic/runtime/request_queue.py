"""The queue in which other threads request events of the loop.

The loop never blocks here. A client that requests an event waits until the loop has written it to the journal
and handled it, or has refused it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from spark_elastic.core.events import Event
from spark_elastic.core.query_view import QueryView

MakeEvent = Callable[[str, int], Event]
"""Creates an event from its id and its time (epoch ms)."""

Check = Callable[[Mapping[str, QueryView]], MakeEvent]
"""Checks the current queries and returns what creates the event, or raises because no event is possible.

It runs in the loop's thread, so that two writers, or a writer and the policy file, cannot overtake each
other.
"""


class Late(Exception):
    """The loop did not get to the request in time; nothing was done."""


class NotJournaled(Exception):
    """The journal cannot be written; nothing was done."""


class Request:
    """One requested event, from the request to the answer."""

    def __init__(self, check: Check) -> None:
        self._check = check
        self._lock = threading.Lock()
        self._taken = False
        self._given_up = False
        self._settled = threading.Event()
        self._error: Exception | None = None

    def wait(self, timeout_s: float) -> None:
        """Wait until the request is done. Raises its refusal, or Late if it was not started in time."""
        if not self._settled.wait(timeout_s):
            if self.give_up():
                raise Late
            # The loop is handling it, so it would be wrong to report that nothing was done.
            self._settled.wait()
        if self._error is not None:
            raise self._error

    def give_up(self) -> bool:
        """Withdraw the request; return whether that was possible. One being handled cannot be stopped."""
        with self._lock:
            self._given_up = not self._taken
            return self._given_up

    def event(self, queries: Mapping[str, QueryView], next_id: Callable[[], str], at: int) -> Event | None:
        """Return the event, or None if it was withdrawn or refused (in the loop's thread).

        `queries` are the current ones, which the request is checked against.
        """
        with self._lock:
            if self._given_up:
                return None
            self._taken = True
        try:
            make = self._check(queries)
        except Exception as error:  # any error is the answer to the client
            self._error = error
            return None
        return make(next_id(), at)

    def not_journaled(self) -> None:
        """Refuse the request, because it could not be journaled."""
        self._error = NotJournaled()

    def settle(self) -> None:
        """Let the waiting client continue."""
        self._settled.set()


class RequestQueue:
    """The requested events, in their order; `wake` makes the loop start its next round."""

    def __init__(self) -> None:
        self.wake: Callable[[], None] = lambda: None
        self._waiting: deque[Request] = deque()
        self._taken: list[Request] = []

    def ask(self, check: Check, timeout_s: float) -> None:
        """Request an event, and wait until it has been handled (in any thread but the loop's).

        Raises what `check` raises, NotJournaled, or Late. Raises what `wake` raises; then nothing was done.
        """
        request = Request(check)
        self._waiting.append(request)
        try:
            self.wake()
        except Exception:
            # The loop may start a round on its own; it must not carry out then what is refused here.
            if request.give_up():
                raise
        request.wait(timeout_s)

    @property
    def waiting(self) -> int:
        """The number of requests that the loop has not taken yet."""
        return len(self._waiting)

    def take(self) -> Sequence[Request]:
        """Return the new requests; each must be answered before the next `release` (in the loop's thread)."""
        fresh: list[Request] = []
        while self._waiting:
            fresh.append(self._waiting.popleft())
        self._taken += fresh
        return fresh

    def release(self) -> None:
        """Let the clients continue whose requests were taken (in the loop's thread)."""
        taken, self._taken = self._taken, []
        for request in taken:
            request.settle()
