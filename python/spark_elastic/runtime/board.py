"""Where the loop and others than the driver meet: they see a view, and ask for events.

The loop never waits here, and who looks at `view` never waits for the loop. Who asks for an event waits until
the loop has written it into the journal and handled it, or has refused it.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from spark_elastic.core.actions import Action, Report
from spark_elastic.core.events import BatchStages, Event, ExecutorUsage, Snapshot, StageCompleted
from spark_elastic.core.query.view import QueryView
from spark_elastic.core.scheduler import Scheduler
from spark_elastic.core.settings import CoreSettings
from spark_elastic.gateway.port import JsonObject
from spark_elastic.runtime.decided_stages import DecidedStage, DecidedStages
from spark_elastic.runtime.timeline import Timeline
from spark_elastic.runtime.view import Decisions, QueryViews, Totals, View
from spark_elastic.settings import Settings

MakeEvent = Callable[[str, int], Event]
"""Makes an event of its id and its time (epoch ms)."""

Check = Callable[[Mapping[str, QueryView]], MakeEvent]
"""Looks at the queries as they are, says which event is to happen, or raises because none can."""


class Late(Exception):
    """The loop has not come to it in time; nothing was done."""


class NotJournaled(Exception):
    """The journal cannot be written; nothing was done."""


class Request:
    """One event that somebody asks for, from the asking to the answer."""

    def __init__(self, check: Check) -> None:
        self._check = check
        self._lock = threading.Lock()
        self._taken = False
        self._given_up = False
        self._settled = threading.Event()
        self._error: Exception | None = None
        self.queries: Mapping[str, QueryView] = {}

    def wait(self, timeout_s: float) -> None:
        """Return when it was done. Raises what it was refused with; Late if it was not begun in time."""
        if not self._settled.wait(timeout_s):
            if self.give_up():
                raise Late
            # The loop is at it: to say now that nothing was done would be wrong.
            self._settled.wait()
        if self._error is not None:
            raise self._error

    def give_up(self) -> bool:
        """Let it not happen; return whether that could be had: what the loop is at cannot be stopped."""
        with self._lock:
            self._given_up = not self._taken
            return self._given_up

    def event(self, next_id: Callable[[], str], at: int) -> Event | None:
        """Return the event if nobody has given it up and nothing speaks against it (in the loop's thread)."""
        with self._lock:
            if self._given_up:
                return None
            self._taken = True
        try:
            make = self._check(self.queries)
        except Exception as error:  # whatever it is, it is the answer to who has asked
            self._error = error
            return None
        return make(next_id(), at)

    def not_journaled(self) -> None:
        """Refuse it."""
        self._error = NotJournaled()

    def settle(self) -> None:
        """Let the one who has asked continue."""
        self._settled.set()


class Board:
    """The meeting place; `restarts` counts the policy processes before this one.

    `view` is None until the world is known. `timeline` may be read by anybody. `wake` brings the loop round.
    """

    def __init__(self, restarts: int = 0) -> None:
        self.view: View | None = None
        self.wake: Callable[[], None] = lambda: None
        self.restarts = restarts
        self._asked: deque[Request] = deque()
        self._decided: deque[DecidedStage] = deque()
        self._stages = DecidedStages()
        self._taken: list[Request] = []
        self._settings: Settings | None = None
        self._snapshot: Snapshot | None = None
        self._scheduler: Scheduler | None = None
        self._shared = (0, 0)
        self._query_views = QueryViews()
        self._decisions = Decisions()
        self.timeline = Timeline()
        self._at = 0
        self._news = False

    # For whoever looks and asks, in any thread

    def ask(self, check: Check, timeout_s: float) -> None:
        """Let an event happen, and wait until it has.

        Raises what `check` raises, NotJournaled, or Late; and what `wake` raises, then nothing was done.
        """
        request = Request(check)
        self._asked.append(request)
        try:
            self.wake()
        except Exception:
            # The loop can come round by itself, and what is refused here is not to happen then.
            if request.give_up():
                raise
        request.wait(timeout_s)

    @property
    def waiting(self) -> int:
        """Count the requests that the loop has not taken."""
        return len(self._asked)

    def decided(self, stage: JsonObject) -> None:
        """Note a question about a batch stage with its answer, for the loop to write down."""
        self._decided.append(self._stages.add(stage))

    @property
    def stages(self) -> Sequence[DecidedStage]:
        """Return the last decisions about batch stages, the newest first."""
        return self._stages.newest_first()

    # For the loop, in its thread

    def take_decided(self) -> Iterator[JsonObject]:
        """Return the decisions about batch stages that are not written down yet."""
        while self._decided:
            decided = self._decided.popleft()
            yield decided.stage
            decided.measured()

    def scheduler(self, settings: CoreSettings) -> Watched:
        """Make the scheduler that is to be seen."""
        return self.watch(Scheduler(settings))

    def watch(self, scheduler: Scheduler) -> Watched:
        """Let a scheduler be seen."""
        self._scheduler = scheduler
        return Watched(scheduler, self)

    def begin(self, settings: Settings, snapshot: Snapshot) -> None:
        """Note what is known of the application."""
        self._settings = settings
        self._snapshot = snapshot

    def take(self) -> Sequence[Request]:
        """Return what is asked for, each to be answered before the next `publish`."""
        fresh: list[Request] = []
        while self._asked:
            request = self._asked.popleft()
            request.queries = {} if self._scheduler is None else self._scheduler.queries
            fresh.append(request)
        self._taken += fresh
        return fresh

    def note(self, event: Event, actions: tuple[Action, ...], seconds: float) -> None:
        """Note what an event has led to."""
        self._decisions.took(seconds)
        self._at = max(self._at, event.at)
        self._news = True
        if self._scheduler is not None:
            self.timeline.note(event, self._scheduler.slots.total)
            # What happens to one query can give others more slots, or fewer.
            # And policies look at all of them together.
            shared = self._scheduler.divisions, self._scheduler.plans
            if shared != self._shared:
                self._shared = shared
                self._query_views.all_stale = True
        # A stage changes no query, nor does what an executor holds.
        if not isinstance(event, StageCompleted | BatchStages | ExecutorUsage):
            self._mark(event)
        for action in actions:
            if isinstance(action, Report):
                self._decisions.keep(action.decision)
                if action.decision.query is not None:
                    # What ends one query's move lets another one begin.
                    self._query_views.stale.add(action.decision.query)

    def _mark(self, event: Event) -> None:
        """Note whose view is to be made anew."""
        query = getattr(event, "query", None)
        if query is not None:
            self._query_views.stale.add(query)
        else:
            # An executor, a policy file: any query may be meant.
            self._query_views.all_stale = True

    def publish(self) -> None:
        """Show what has changed, then let go those who have asked."""
        if self._news and self._scheduler is not None and self._settings and self._snapshot:
            self._news = False
            self.view = self._look(self._scheduler, self._settings, self._snapshot)
        taken, self._taken = self._taken, []
        for request in taken:
            request.settle()

    def _look(self, scheduler: Scheduler, settings: Settings, snapshot: Snapshot) -> View:
        queries = self._query_views.renew(scheduler)
        self.timeline.keep_only(queries)
        return View(
            at=self._at,
            application=snapshot.application,
            application_name=snapshot.application_name,
            spark_version=snapshot.spark_version,
            parts=snapshot.parts,
            settings=settings,
            restarts=self.restarts,
            slots=scheduler.slots.total,
            executors=tuple(scheduler.slots.executors.values()),
            usable=dict(scheduler.slots.usable),
            exclusions=dict(scheduler.slots.exclusions),
            usual_slots=scheduler.usual_slots,
            queries=queries,
            custom_policies=scheduler.custom_policies,
            decisions=self._decisions.kept(),
            totals=Totals(
                rescales=self._query_views.rescales(),
                paused=self._query_views.paused(),
                queries=self._query_views.tallies(),
                decision_buckets=self._decisions.buckets(),
                decision_seconds=self._decisions.seconds,
            ),
        )


class Watched:
    """A scheduler whose every step the board is told of."""

    def __init__(self, scheduler: Scheduler, board: Board) -> None:
        self.scheduler = scheduler
        self._board = board

    def handle(self, event: Event) -> tuple[Action, ...]:
        """Take in one event and return what is to be done about it."""
        begin = time.perf_counter()
        actions = self.scheduler.handle(event)
        self._board.note(event, actions, time.perf_counter() - begin)
        return actions

    def save(self) -> dict[str, Any]:
        """Return the whole state, ready for JSON."""
        return self.scheduler.save()
