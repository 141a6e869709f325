"""What a state may look at, what it may say, and what goes into the history of rescales."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define

from spark_elastic.core import reasons
from spark_elastic.core.cluster.shares import Share
from spark_elastic.core.query.record import PendingOrder, QueryRecord
from spark_elastic.core.rescale.history import Cause, TerminatedReason
from spark_elastic.core.rescale.situation import Choice
from spark_elastic.core.sentences import fill
from spark_elastic.core.settings import CoreSettings
from spark_elastic.core.turn import Number, Turn


def _plain(weight: float) -> Number:
    return int(weight) if weight == int(weight) else round(weight, 3)


@define
class Reporting:
    """One event's view of one query.

    `order` is the order whose outcome the event is, None for all other events.
    """

    record: QueryRecord
    turn: Turn
    order: PendingOrder | None = None

    @property
    def now(self) -> int:
        """The time of the event, epoch ms."""
        return self.turn.now

    @property
    def settings(self) -> CoreSettings:
        """What the user decided, for this query or for all of them."""
        return self.record.settings or self.turn.settings

    @property
    def slots(self) -> int:
        """The slots of now that the query can use."""
        return self.share.slots

    @property
    def slots_before(self) -> int:
        """The slots before the event that the query could use."""
        return self.record.known_share.slots

    @property
    def share(self) -> Share:
        """What the query has of the slots of now."""
        return self.record.share

    @property
    def needed_slots(self) -> int:
        """The slots without which the query is not started."""
        return self.record.requirements.needed

    @property
    def rescale_order(self) -> PendingOrder | None:
        """The rescale whose outcome the event is, None for all other events."""
        return self.order if self.order is not None and self.order.kind == "rescale" else None

    def report(
        self,
        reason: str,
        *,
        before: int | None = None,
        after: int | None = None,
        numbers: Mapping[str, Number] | None = None,
    ) -> None:
        """Publish a decision."""
        shown = Choice(way="nothing", reason=reason, before=before, after=after, numbers=numbers or {})
        self.report_choice(shown)

    def report_choice(self, choice: Choice, *, reason: str | None = None, until: int | None = None) -> None:
        """Publish a choice as a decision; `reason` replaces its own where it cannot be acted on yet."""
        record, reason = self.record, reason or choice.reason
        entry = reasons.REASONS[reason]
        if entry.once:
            if reason in record.said:
                return
            record.said.add(reason)
        numbers: Mapping[str, Number] = {"slots": self.slots, **choice.numbers}
        if self.share.total != self.slots:
            numbers = {**numbers, "total_slots": self.share.total}
        waits = {
            "cooldown_ms": self.settings.cooldown_ms,
            "stabilization_ms": self.settings.executing_stabilization_ms,
            "most": self.settings.max_concurrent_rescales,
        }
        message = reasons.message(
            reason, **{**waits, **numbers, "before": choice.before, "after": choice.after}
        )
        if entry.kind == "held" and choice.reason == "rescale_pays":
            message = reasons.expected(message, **numbers)
        changes = entry.kind in ("start", "rescale_in_place", "rescale_state")
        message = reasons.advised(message, only=changes and self.turn.settings.advise_only)
        record.last_decision = self.turn.publish(
            reason,
            message,
            query=record.facts.query,
            before=choice.before,
            after=choice.after,
            numbers=numbers,
            alternatives=tuple(
                fill(reasons.ALTERNATIVE, partitions=count, batch_ms=batch_ms)
                for count, batch_ms in choice.alternatives
            ),
            until=until,
        )
        record.last_hold = None

    def report_hold(self, choice: Choice, *, reason: str | None = None, until: int | None = None) -> None:
        """Publish that nothing is done, unless that was the last thing said."""
        hold = (reason or choice.reason, choice.before, choice.after, self.slots, until)
        if hold != self.record.last_hold:
            self.report_choice(choice, reason=reason, until=until)
            self.record.last_hold = hold

    def report_share(self) -> None:
        """Publish how the slots are divided where the query has less than it could use, and that is new."""
        share, before = self.share, self.record.known_share
        if not share.suffices or share.content or share.slots == share.total:
            return
        if self.settings.mode == "off":
            return
        if before.suffices and not before.content and before.slots == share.slots:
            return
        values: Mapping[str, Number] = {
            "slots": share.slots,
            "total_slots": share.total,
            "reserved": share.reserved,
            "weight": _plain(share.weight),
            "weights": _plain(share.weights),
        }
        # Beside what the query does, which stays what was last said of it.
        message = reasons.message("slots_shared", **values)
        self.turn.publish(
            "slots_shared",
            message,
            query=self.record.facts.query,
            before=before.slots if before.total else None,
            after=share.slots,
            numbers=values,
        )

    def report_unexpected(self, event: object) -> None:
        """Note, once, that an event made no sense."""
        name, state = type(event).__name__, self.record.state.name
        key = f"unexpected {name} {state}"
        if key not in self.record.said:
            self.record.said.add(key)
            self.report("unexpected", numbers={"event": name, "state": state})

    def open_rescale(self, cause: Cause) -> None:
        """Open a record of the history, unless one is open."""
        first = cause == "initial_schedule"
        self.record.history.open(
            cause,
            state=self.record.state.name,
            at=self.now,
            slots=None if first else self.slots_before,
            partitions=None if first else self.record.partitions,
        )

    def open_rescale_for_bounds(self) -> None:
        """Open a record for a start under way that the bounds before had one for."""
        # A query that has not run yet is still to be scheduled for the first time.
        self.open_rescale("initial_schedule" if self.record.run_state == "held" else "update_requirement")

    def close_rescale(self, reason: TerminatedReason) -> None:
        """Close the open record of the history, if any."""
        self.record.history.close(reason, at=self.now, slots=self.slots, partitions=self.record.partitions)
