"""What is taken in of a query: how it runs, what became of orders, what a snapshot shows."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define

from spark_elastic.core import events as ev
from spark_elastic.core.query.ordering import Ordering
from spark_elastic.core.query.record import SAVEPOINTS_KEPT, Savepoint
from spark_elastic.core.rescale.failed_move import FailedMove
from spark_elastic.core.rescale.situation import HORIZON_MS
from spark_elastic.core.turn import Number


@define
class Hearing(Ordering):
    """Brings the record of a query in step with what was heard of it."""

    def started(self, event: ev.QueryStarted) -> None:
        """Take in that the query runs."""
        record = self.record
        # The outcome of a start comes before this: without it the query was let run as it was.
        unasked = self.give_up("start")
        if record.becomes_rescalable and not unasked:
            record.note_rescalable()
        record.becomes_rescalable = False
        record.run = event.run
        record.run_state = "running"
        record.recovering = False
        before = record.partitions
        record.partitions = event.partitions or before or record.facts.session_partitions
        if record.facts.stateful and before not in (None, record.partitions):
            record.moved = True
            record.failed_move = FailedMove()
        record.target = None

    def measured(self, event: ev.QueryProgress, *, warm: bool) -> None:
        """Take in a committed batch; only the duration of a warm one counts."""
        record, slots = self.record, self.slots
        record.last_progress = event
        record.pace = record.pace.after(event, slots, record.measurements.work(event.batch))
        if event.partitions < 1:
            return  # The count is not known to the sender, so there is nothing to learn about it.
        if not record.facts.stateful:
            return  # What is changed in place follows the slots alone: nothing is computed from its batches.
        if event.partitions == record.partitions:
            record.moved = False
        record.partitions = event.partitions
        if warm and slots > 0:
            record.measurements.add(
                batch=event.batch,
                partitions=event.partitions,
                slots=slots,
                duration_ms=event.duration_ms,
                rows=event.input_rows,
            )

    def resting(self) -> None:
        """Take in that there has been nothing to read for a while."""
        self.record.pace = self.record.pace.resting(self.record.run)

    def rescaled(self, count: int, *, took_ms: int | None) -> None:
        """Take in that the query has another count, or has kept its own; None: nobody knows what it took."""
        record = self.record
        before = record.partitions
        if took_ms is not None:
            record.history.ran_until(self.now - took_ms)
        if count == before:
            return
        since = self.now - HORIZON_MS
        record.rescaled += 1
        record.rescales = (*(at for at in record.rescales if at > since), self.now)
        record.partitions = count
        record.moved = True
        record.failed_move = FailedMove()
        if took_ms is None:
            self.report("rescaled_unheard", before=before, after=count)
        else:
            record.rescale_cost_ms = took_ms
            self.report("rescaled", before=before, after=count, numbers={"took_ms": took_ms})

    def saved(self, event: ev.SavepointTaken) -> None:
        """Take in that a savepoint is complete, whoever has waited for it."""
        record = self.record
        taken = Savepoint(at=self.now, path=event.path, batch=event.batch, bytes=event.bytes)
        record.savepoints = (taken, *record.savepoints)[:SAVEPOINTS_KEPT]
        numbers: Mapping[str, Number] = {"path": event.path, "batch": event.batch, "bytes": event.bytes}
        self.report("savepoint_taken", before=record.partitions, numbers=numbers)

    def answered(self, event: ev.ActionDone | ev.ActionFailed) -> None:
        """Take in what became of an order; a count that failed is left alone for a while."""
        record = self.record
        aside = record.aside.pop(event.action, None)
        if aside is not None and isinstance(event, ev.ActionFailed):
            self.report(aside, before=record.partitions, numbers={"error": event.error})
        keeping = record.keeping.pop(event.action, None)
        if keeping is not None and isinstance(event, ev.ActionFailed):
            # Beside what the query does, which stays what was last said of it.
            self.turn.report(keeping, query=record.facts.query, error=event.error)
        self.order = order = record.orders.pop(event.action, None)
        if isinstance(event, ev.ActionDone) or order is None or order.replaced:
            return
        if order.kind in ("start", "rescale"):
            record.failed_move.failed(order.target, self.now)
        if order.target is not None and record.target == order.target:
            record.target = None
        code = {
            "start": "start_failed",
            "rescale": "rescale_failed" if record.facts.stateful else "in_place_failed",
            "end": "end_failed",
            "savepoint": "savepoint_failed",
        }[order.kind]
        numbers: Mapping[str, Number] = {"error": event.error}
        again_at = record.failed_move.again_at
        if code == "rescale_failed":
            if again_at is None:
                code = "rescale_given_up"
            else:
                numbers = {**numbers, "again_ms": again_at - self.now}
        self.report(code, before=record.partitions, after=order.target, numbers=numbers)

    def shown(self, info: ev.QueryInfo) -> None:
        """Take what a snapshot shows of the query for what is so: what was said before may be lost."""
        record = self.record
        record.provider = info.facts.provider
        record.checkpoint_format = info.facts.checkpoint_format
        moved = info.partitions not in (None, record.partitions)
        if record.facts.stateful and record.run_state == "running" and info.partitions is not None and moved:
            self.rescaled(info.partitions, took_ms=None)

    def set_orders_lost(self, partitions: int | None) -> None:
        """Take `partitions` for what is in force, whatever was ordered; None where that is not known."""
        record = self.record
        if record.facts.stateful:
            return
        lost = self.give_up("rescale")
        if not lost and partitions is not None and record.run_state == "running":
            record.partitions = partitions  # whoever knew another count had not heard of a change in place
        for order in lost:
            if record.target == order.target:
                record.target = None
            if partitions == order.target:
                record.partitions = partitions
                self.close_rescale("succeeded")

    def missed(self, info: ev.QueryInfo) -> ev.Event | None:
        """Return the event of which nobody has heard, None if there need not have been any."""
        record, query, cause = self.record, info.facts.query, self.turn.cause
        if info.run_state == "failed" and info.failure is not None:
            if record.state.looks_at_failures_later:
                return None
            # The same failure again can be another one: better one attempt too many than one too few.
            known = [exception.failure for exception in record.exceptions[:1]]
            if record.run_state == "failed" and info.failure in known:
                return None
            return ev.QueryFailed(id=cause, at=self.now, query=query, run=info.run, failure=info.failure)
        if info.run_state == record.run_state:
            return None
        if info.run_state == "running":
            count = info.partitions or 0
            return ev.QueryStarted(id=cause, at=self.now, query=query, run=info.run, partitions=count)
        return ev.QuerySubmitted(id=cause, at=self.now, facts=info.facts, run=info.run)
