"""The event loop: one thread that passes events to the scheduler and its actions to the driver."""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from attrs import evolve, frozen

from spark_elastic.core.actions import Action, CancelTimer, SetTimer, TurnOff
from spark_elastic.core.events import Event, PolicyFileChanged, Snapshot, TimerFired
from spark_elastic.core.keys import application, rescaling
from spark_elastic.core.policies.policy import AskPolicy
from spark_elastic.core.settings import CoreSettings
from spark_elastic.runtime.clock import Clock, ClockReading
from spark_elastic.runtime.custom.host import Host
from spark_elastic.runtime.entries import StateEntry
from spark_elastic.runtime.journal import Journal
from spark_elastic.runtime.port import MAX_WAIT_MS, Exchange, Gateway, JsonObject
from spark_elastic.runtime.publisher import Publisher
from spark_elastic.runtime.request_queue import RequestQueue
from spark_elastic.settings import Settings, SettingsError, load
from spark_elastic.wire import WireError, decode_event, encode_action, encode_event

if TYPE_CHECKING:
    from spark_elastic.runtime.policy_watch import PolicyWatch


# ---- The timers set by the scheduler.


class Timers:
    """Timers in the order of their time; setting a timer again replaces it."""

    def __init__(self) -> None:
        self._set: dict[str, SetTimer] = {}
        # Replaced and cancelled timers stay in the heap until their time; `_set` tells them apart.
        self._heap: list[tuple[int, str]] = []

    def set(self, order: SetTimer) -> None:
        """Set a timer."""
        self._set[order.timer] = order
        heapq.heappush(self._heap, (order.at, order.timer))

    def cancel(self, timer: str) -> None:
        """Cancel a timer; one that is not set is ignored."""
        self._set.pop(timer, None)

    def next_at(self) -> int | None:
        """Return the time of the next timer (epoch ms), or None if none is set."""
        while self._heap:
            at, timer = self._heap[0]
            if timer in self._set and self._set[timer].at == at:
                return at
            heapq.heappop(self._heap)
        return None

    def pop_due(self, now: int) -> SetTimer | None:
        """Remove and return the earliest timer that has expired at `now` (epoch ms), or None if none has."""
        at = self.next_at()
        if at is None or at > now:
            return None
        return self._set.pop(heapq.heappop(self._heap)[1])


_log = logging.getLogger(__name__)

# The scheduler numbers its actions from a1.
_TURN_OFF_ID = "a0"
# A timer that sets itself again for now must not keep the loop from the driver.
_MAX_TIMERS_PER_ROUND = 1_000


class Decider(Protocol):
    """The scheduler, as the loop sees it."""

    def handle(self, event: Event) -> tuple[Action, ...]:
        """Handle `event` and return the resulting actions."""

    def save(self) -> dict[str, Any]:
        """Return the complete state, ready for JSON."""


@frozen(kw_only=True)
class Resumed:
    """What remains of a policy process that has died: its policy, restored, and the state around it.

    `own_events` is the number of events created by the runtime, `last_event` the id of the last event and
    `last_at` its time (epoch ms). `clock` is an earlier reading of its clock, `file` the last valid content
    of the policy file.
    """

    policy: Decider
    own_events: int
    last_event: str
    last_at: int
    clock: ClockReading | None
    file: PolicyFileChanged | None


class Loop:
    """Runs a policy until the application ends.

    The settings come with the first snapshot. If they cannot be used, the policy is turned off with a message
    about all errors in them. Other threads read from `publisher`, and put what they want changed into
    `requests`. `custom` asks the custom policies. `skipped` counts the events that could not be understood
    and were left out.
    """

    def __init__(
        self,
        gateway: Gateway,
        clock: Clock,
        make_policy: Callable[[CoreSettings], Decider],
        open_journal: Callable[[Settings, Snapshot], Journal],
        publisher: Publisher | None = None,
        requests: RequestQueue | None = None,
        resume: Callable[[Settings, Snapshot], Resumed | None] = lambda _settings, _snapshot: None,
        custom: Host | None = None,
    ) -> None:
        self._gateway = gateway
        self._clock = clock
        self._make_policy = make_policy
        self._open_journal = open_journal
        self._resume = resume
        self._publisher = Publisher() if publisher is None else publisher
        self._requests = RequestQueue() if requests is None else requests
        self._custom = Host() if custom is None else custom
        self._timers = Timers()
        self._policy: Decider | None = None
        self._journal: Journal | None = None
        self._outgoing: list[JsonObject] = []
        self._off = False
        self._own_events = 0
        self._last_event = ""
        self._watch: PolicyWatch | None = None
        self._lost_logged = 0
        self.skipped = 0

    def run(self) -> None:
        """Return when the driver reports that the application ends.

        Raises GatewayError if the driver is lost, and whatever the policy raises. The policy's state cannot
        be trusted after that, and a new process starts from a new snapshot.
        """
        try:
            stop = False
            while not stop:
                outgoing, self._outgoing = self._outgoing, []
                reply = self._gateway.exchange(outgoing, self._wait_ms())
                self._count_lost(reply)
                for value in reply.events:
                    self._take(value)
                self._look_at_policy_file()
                self._take_requests()
                self._take_answers()
                self._fire_timers()
                self._write_stages()
                if self._journal is not None:
                    self._journal.end_batch(self._state)
                self._publisher.publish()
                self._requests.release()  # only now, so that a client sees what its request has changed
                stop = reply.stop
        finally:
            self._custom.close()
            self._write_stages()
            if self._journal is not None:
                self._journal.close()

    def _wait_ms(self) -> int:
        at = self._timers.next_at()
        return MAX_WAIT_MS if at is None else max(0, min(MAX_WAIT_MS, at - self._clock.now()))

    def _take(self, value: JsonObject) -> None:
        if self._off:
            return
        try:
            event = decode_event(value)
        except (WireError, AttributeError) as error:
            self._skip(str(error))
            return
        if self._policy is None:
            if not isinstance(event, Snapshot):
                self._skip(f"{type(event).__name__} came before the first snapshot")
                return
            self._begin(event)
        self._handle(self._clock.shifted(event))
        if isinstance(event, Snapshot):
            self._look_at_policy_file()  # before any query in the same batch

    def _begin(self, snapshot: Snapshot) -> None:
        try:
            settings = load(snapshot.conf)
        except SettingsError as error:
            self._turn_off(snapshot, f"unusable settings: {error}")
            return
        if settings[rescaling.MODE] == "off":
            self._turn_off(snapshot, f"{rescaling.MODE.full_name} is off")
            return
        resumed = self._resume(settings, snapshot)
        self._custom.begin(settings)
        # A resumed run does not wait for custom policies, because their last wishes are known.
        problems = self._custom.problems(settings.custom_policies) if resumed is None else ()
        if problems:
            self._custom.close()
            self._turn_off(snapshot, f"unusable settings: {'; '.join(problems)}")
            return
        self._journal = self._open_journal(settings, snapshot)
        if resumed is None:
            self._policy = self._make_policy(settings.core())
        else:
            self._policy = resumed.policy
            if resumed.clock is not None:
                self._clock.follow(resumed.clock)
            self._clock.advance_to(resumed.last_at)
            self._own_events, self._last_event = resumed.own_events, resumed.last_event
            self._journal.goes_on_from(self._state())
        self._publisher.begin(settings, snapshot)
        if (file := settings[application.POLICY_FILE]) is not None:
            # Imported only if needed: importing YAML takes a third of the process's startup time.
            from spark_elastic.runtime.policy_watch import PolicyWatch

            known = None if resumed is None else resumed.file
            self._watch = PolicyWatch(Path(file), self._next_id, known)

    def _state(self) -> StateEntry:
        assert self._policy is not None
        return StateEntry(state=self._policy.save(), own_events=self._own_events, last_event=self._last_event)

    def _turn_off(self, cause: Event, message: str) -> None:
        self._off = True
        self._outgoing.append(encode_action(TurnOff(id=_TURN_OFF_ID, cause=cause.id, message=message)))

    def _handle(self, event: Event) -> None:
        if self._policy is None or self._journal is None:
            return
        # Written first, so that an event that breaks the policy is the last line of the journal.
        self._journal.event(encode_event(event))
        self._decide(event, self._policy, self._journal)

    def _decide(self, event: Event, policy: Decider, journal: Journal) -> None:
        actions = policy.handle(event)
        self._last_event = event.id
        written = [encode_action(action) for action in actions]
        journal.actions(written)
        for action, value in zip(actions, written, strict=True):
            if isinstance(action, SetTimer):
                self._timers.set(action)
            elif isinstance(action, CancelTimer):
                self._timers.cancel(action.timer)
            elif isinstance(action, AskPolicy):
                self._custom.ask(action)
            else:
                self._outgoing.append(value)

    def _fire_timers(self) -> None:
        for _ in range(_MAX_TIMERS_PER_ROUND):
            now = self._clock.now()
            due = self._timers.pop_due(now)
            if due is None:
                return
            self._handle(TimerFired(id=self._next_id(), at=now, timer=due.timer, query=due.query))

    def _look_at_policy_file(self) -> None:
        event = None if self._watch is None else self._watch.poll(self._clock.now())
        if event is not None:
            self._handle(event)

    def _take_requests(self) -> None:
        """Handle the requests of clients other than the driver; refuse what cannot be journaled."""
        if self._policy is None or self._journal is None:
            return
        for request in self._requests.take():
            event = request.event(self._publisher.queries, self._next_id, self._clock.now())
            if event is None:
                continue
            self._journal.event(encode_event(event))
            self._journal.end_batch()
            if self._journal.failed:
                request.not_journaled()
            else:
                self._decide(event, self._policy, self._journal)

    def _take_answers(self) -> None:
        """Handle the answers that custom policies have given in the meantime."""
        for answer in self._custom.take():
            self._handle(evolve(answer, id=self._next_id(), at=self._clock.now()))

    def _write_stages(self) -> None:
        """Write the decisions about batch stages that another thread has made in the meantime."""
        if self._journal is not None:
            for decided in self._publisher.stages.take_unwritten():
                self._journal.stage(decided)

    def _next_id(self) -> str:
        self._own_events += 1
        return f"r{self._own_events}"

    def _skip(self, why: str) -> None:
        self.skipped += 1
        _log.warning("event left out (%d so far): %s", self.skipped, why)

    def _count_lost(self, reply: Exchange) -> None:
        # Logged again only once it has doubled, so that a driver that merges a lot does not flood the log.
        lost = reply.merged + reply.dropped
        if lost > 2 * self._lost_logged:
            self._lost_logged = lost
            _log.warning(
                "the driver has merged %d events and dropped %d: the policy was too slow",
                reply.merged,
                reply.dropped,
            )
