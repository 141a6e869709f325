"""What a state may look at and do: the whole of its world."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from spark_elastic.core.events import Failure, QueryProgress, QueryStarted, QueryTerminated
from spark_elastic.core.failures.judge import Judgement
from spark_elastic.core.history import Cause, TerminatedReason
from spark_elastic.core.parallelism import Choice
from spark_elastic.core.query.record import Order, Record
from spark_elastic.core.query.transition_manager import Resources, TransitionManager
from spark_elastic.core.settings import CoreSettings
from spark_elastic.core.turn import Number


class Context(Protocol):
    """One event's view of one query, and the ways out of its state.

    `now` is the time of the event, `order` the order whose outcome it is (None for all other events).
    """

    @property
    def now(self) -> int:
        """The time of the event, epoch ms."""
        ...

    @property
    def record(self) -> Record:
        """What is known about the query."""
        ...

    @property
    def settings(self) -> CoreSettings:
        """What the user decided."""
        ...

    @property
    def slots(self) -> int:
        """The slots of now."""
        ...

    @property
    def slots_before(self) -> int:
        """The slots before the event."""
        ...

    @property
    def needed_slots(self) -> int:
        """The slots without which the query is not started."""
        ...

    @property
    def desired_slots(self) -> int:
        """The slots beyond which the query could use no more."""
        ...

    @property
    def may_start(self) -> bool:
        """Whether the query may be started with the slots of now once it has waited in vain."""
        ...

    @property
    def order(self) -> Order | None:
        """The order whose outcome the event is, None for all other events."""
        ...

    @property
    def paused_ms(self) -> int | None:
        """How long the restart under way has kept the query from running, None if there is none."""
        ...

    # Decide

    def choose_start(self) -> Choice:
        """Choose the count for a start, with the slots of now."""
        ...

    def choose_running(self, *, overdue: bool) -> Choice:
        """Choose what to do about the count while it runs, with the slots of now."""
        ...

    def submission_resources(self) -> Resources:
        """Answer for a query that waits to be started."""
        ...

    def new_executing_manager(self) -> TransitionManager:
        """Begin a new cooldown."""
        ...

    def judge(self, failure: Failure) -> Judgement:
        """Note the failure of a run, say what is to become of the query, and publish that."""
        ...

    # Say

    def report(
        self,
        reason: str,
        *,
        before: int | None = None,
        after: int | None = None,
        numbers: Mapping[str, Number] | None = None,
    ) -> None:
        """Publish a decision."""
        ...

    def report_choice(self, choice: Choice, *, reason: str | None = None, until: int | None = None) -> None:
        """Publish a choice as a decision; `reason` replaces its own where it cannot be acted on yet."""
        ...

    def report_hold(self, choice: Choice, *, reason: str | None = None, until: int | None = None) -> None:
        """Publish that nothing is done, unless that was the last thing said."""
        ...

    # Act

    def start(self, choice: Choice) -> None:
        """Order the start of a held or stopped query."""
        ...

    def hold(self, reason: str, *, until: int | None, numbers: Mapping[str, Number]) -> None:
        """Keep the query waiting and say why; one that was just submitted is told to its application."""
        ...

    def stop(self, target: int | None) -> None:
        """Order the stop for a restart with `target`, None for a stop that no restart is to follow."""
        ...

    def end_failed(self, message: str | None) -> None:
        """Order the end of a query that has failed, or that cannot be started."""
        ...

    def stop_for_good(self) -> None:
        """Order the end of a query."""
        ...

    def take_savepoint(self, target: str | None) -> str | None:
        """Order a savepoint under a folder, None for that of the settings, or publish that there is none.

        Return the id of the order.
        """
        ...

    def refuse_savepoint(self) -> None:
        """Publish that this is no time for a savepoint."""
        ...

    def set_parallelism(self, choice: Choice) -> None:
        """Order another count in place."""
        ...

    # Note

    def started(self, event: QueryStarted) -> None:
        """Take in that the query runs."""
        ...

    def measured(self, event: QueryProgress, *, warm: bool) -> None:
        """Take in a committed batch; only the duration of a warm one counts."""
        ...

    def ran_until_now(self) -> None:
        """Note that a query that is to stop has ended another micro-batch: its pause begins later."""
        ...

    def open_rescale(self, cause: Cause) -> None:
        """Open a record of the history, unless one is open."""
        ...

    def open_rescale_for_bounds(self) -> None:
        """Open a record for a start under way that the bounds before had one for."""
        ...

    def close_rescale(self, reason: TerminatedReason) -> None:
        """Close the open record of the history, if any."""
        ...

    # Go to

    def wait_for_resources(self) -> None:
        """Go to WaitingForResources."""
        ...

    def create_execution_graph(self, *, waited_ms: int = 0, planned: int | None = None) -> None:
        """Go to CreatingExecutionGraph, with the count that a restart was made for."""
        ...

    def execute(self) -> None:
        """Go to Executing."""
        ...

    def restart(self, target: int) -> None:
        """Go to Restarting."""
        ...

    def run_failed(self, failure: Failure, *, savepoint: str | None = None) -> None:
        """Go to Restarting with a backoff, or to Failing with an exception that names the `savepoint`."""
        ...

    def fail(self, message: str | None = None) -> None:
        """Go to Failing; the query ends with the exception of its run, or with one that says `message`."""
        ...

    def fail_without_resources(self, waited_ms: int) -> None:
        """Go to Failing; the query ends with an exception that says what it has waited for."""
        ...

    def stop_with_savepoint(self, target: str | None, by: str) -> None:
        """Go to StopWithSavepoint, or publish that nobody said where the savepoint is to be."""
        ...

    def cancel(self, by: str) -> None:
        """Go to Canceling, as asked for."""
        ...

    def finish(self, event: QueryTerminated) -> None:
        """Go to Finished, saying how it ended."""
        ...
