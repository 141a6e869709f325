"""The outcome of each rescale of a query, newest first, bounded.

A record opens when a cause for a rescale arises and closes with a reason. Causes that arise while one is open
join it, with two exceptions. New bounds begin another record. A failure or a loss becomes the cause of the
open one, which starts over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from attrs import define, evolve, field, frozen

from spark_elastic.core.events import NewExecutor
from spark_elastic.core.transitions import EXECUTING, STOP_WITH_SAVEPOINT

Cause = Literal[
    "initial_schedule",
    "update_requirement",
    "new_resources",
    "lost_resources",
    "load_changed",
    "recoverable_failover",
]
TerminatedReason = Literal[
    "succeeded",
    "exception_occurred",
    "resource_requirements_updated",
    "no_resources_or_parallelisms_change",
    "job_finished",
    "job_failed",
    "job_canceled",
]
Status = Literal["in_progress", "completed", "failed", "ignored"]

_STATUS: Mapping[TerminatedReason, Status] = {
    "succeeded": "completed",
    "exception_occurred": "failed",
    "resource_requirements_updated": "ignored",
    "no_resources_or_parallelisms_change": "ignored",
    "job_finished": "ignored",
    "job_failed": "ignored",
    "job_canceled": "ignored",
}

_RUNNING = (EXECUTING, STOP_WITH_SAVEPOINT)

_OVERTAKING: tuple[Cause, ...] = ("recoverable_failover", "lost_resources")


@frozen(kw_only=True)
class Stay:
    """The time a query spent in one state during a rescale; `left` None means it is still there."""

    state: str
    entered: int
    left: int | None = None


@define(kw_only=True)
class RescaleRecord:
    """One record. The first of a query has no `before` values. Times are epoch ms.

    `requirements` counts the bounds that the query has had, `attempt` its rescales with these bounds.
    `ran_until` is the time until which the query continued while a rescale was pending, None if unknown.
    `executors_used` is when the last of the executors that joined meanwhile had its first task of the query,
    None if none has had any. `warm_up_ms` is the longest warm-up that one of them had before that.
    `prepared_ms` is how long the state was copied beside micro-batches, None if it was moved in the pause.
    `first_batch_ms` is the duration of the first micro-batch with the new count, None if unknown.
    """

    number: int
    requirements: int
    attempt: int
    cause: Cause
    started: int
    slots_before: int | None
    partitions_before: int | None
    slots_after: int | None = None
    partitions_after: int | None = None
    ended: int | None = None
    reason: TerminatedReason | None = None
    stays: tuple[Stay, ...] = ()
    ran_until: int | None = None
    executors_used: int | None = None
    warm_up_ms: int | None = None
    prepared_ms: int | None = None
    first_batch_ms: int | None = None

    @property
    def status(self) -> Status:
        """The status that follows from the reason."""
        return "in_progress" if self.reason is None else _STATUS[self.reason]

    @property
    def paused_ms(self) -> int:
        """Duration for which it kept its query from running; 0 for the first start of a query.

        An ordered rescale does not interrupt the query yet: it begins at the next boundary.
        """
        if self.cause == "initial_schedule":
            return 0
        ran_until = self.ran_until or 0
        stays = (stay for stay in self.stays if stay.state not in _RUNNING and stay.left is not None)
        return sum(max(0, (stay.left or 0) - max(stay.entered, ran_until)) for stay in stays)


@define(kw_only=True)
class History:
    """The rescales of one query: at most `limit`, without the oldest ones.

    `unopened` is the number of the one after which no micro-batch has run, None if there is none.
    """

    limit: int
    records: list[RescaleRecord] = field(factory=list)
    opened: int = 0
    requirements: int = 1
    attempts: int = 0
    unopened: int | None = None

    @property
    def open_record(self) -> RescaleRecord | None:
        """The rescale under way, None if there is none."""
        return self.records[0] if self.records and self.records[0].reason is None else None

    def open(
        self, cause: Cause, *, state: str, at: int, slots: int | None = None, partitions: int | None = None
    ) -> None:
        """Open a record, unless one is open already."""
        record = self.open_record
        if record is not None:
            if cause in _OVERTAKING:
                record.cause = cause
                record.stays = (Stay(state=state, entered=at),)
            return
        self.opened += 1
        self.attempts += 1
        self.records.insert(
            0,
            RescaleRecord(
                number=self.opened,
                requirements=self.requirements,
                attempt=self.attempts,
                cause=cause,
                started=at,
                slots_before=slots,
                partitions_before=partitions,
                stays=(Stay(state=state, entered=at),),
            ),
        )
        del self.records[self.limit :]

    def bounds_changed(self, at: int, *, slots: int | None, partitions: int | None) -> None:
        """Close the record that is open for the old bounds, and count attempts from one again."""
        self.close("resource_requirements_updated", at=at, slots=slots, partitions=partitions)
        self.requirements += 1
        self.attempts = 0

    def entered(self, state: str, at: int) -> None:
        """Note that the query has gone to another state."""
        record = self.open_record
        if record is not None:
            *earlier, last = record.stays
            record.stays = (*earlier, evolve(last, left=at), Stay(state=state, entered=at))

    def ran_until(self, at: int) -> None:
        """Note the time until which the query has continued."""
        record = self.open_record
        if record is not None:
            record.ran_until = at

    def switched(self, ran_until: int, prepared_ms: int | None) -> None:
        """Note that the query has run until its pause began, and how long its state was copied before."""
        self.ran_until(ran_until)
        record = self.open_record
        if record is not None:
            record.prepared_ms = prepared_ms

    def moved(self) -> None:
        """Note that the query has another count; its next micro-batch is the first one with it."""
        record = self.open_record
        self.unopened = None if record is None else record.number

    def ran_first(self, duration_ms: int) -> None:
        """Note a micro-batch with the count in force; it counts if it is the first one after a rescale."""
        place = next((n for n, one in enumerate(self.records) if one.number == self.unopened), None)
        self.unopened = None
        if place is not None:
            self.records[place] = evolve(self.records[place], first_batch_ms=duration_ms)

    def used(self, executors: Iterable[NewExecutor]) -> None:
        """Note since when executors are used, in the record during which each one joined.

        A change replaces the record, so that readers of a closed one keep what they hold.
        """
        for new in executors:
            place = next((n for n, one in enumerate(self.records) if one.started <= new.joined), None)
            if place is None:
                continue
            record = self.records[place]
            if record.cause == "initial_schedule" or (record.ended or new.joined) < new.joined:
                continue
            self.records[place] = evolve(
                record,
                executors_used=max(new.launched, record.executors_used or 0),
                warm_up_ms=max(new.warm_up_ms or 0, record.warm_up_ms or 0) or None,
            )

    def close(
        self,
        reason: TerminatedReason,
        *,
        at: int,
        slots: int | None = None,
        partitions: int | None = None,
    ) -> None:
        """Close the open record, if any; a closed one keeps its first reason."""
        record = self.open_record
        if record is None:
            return
        *earlier, last = record.stays
        record.stays = (*earlier, evolve(last, left=at))
        record.reason = reason
        record.ended = at
        record.slots_after = slots
        record.partitions_after = partitions

    def validate(self) -> None:
        """Check order and bounds. Raises AssertionError."""
        assert len(self.records) <= self.limit
        assert all(record.reason is not None for record in self.records[1:])
        numbers = [record.number for record in self.records]
        assert numbers == sorted(numbers, reverse=True)
