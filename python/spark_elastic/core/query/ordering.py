"""What a state may order, and how an order is given up."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, evolve

from spark_elastic.core.actions import (
    Action,
    CancelQuery,
    FailQuery,
    HoldQuery,
    Rescale,
    StartQuery,
    TakeSavepoint,
)
from spark_elastic.core.bounds.sources import order_bounds
from spark_elastic.core.query.record import MOST_ORDERS, OrderKind, PendingOrder
from spark_elastic.core.query.reporting import Reporting
from spark_elastic.core.rescale.situation import Choice, makes_rescalable
from spark_elastic.core.turn import Number


@define
class Ordering(Reporting):
    """The orders of one query. Each waits in its record for its outcome."""

    def start(self, choice: Choice) -> None:
        """Order the start of a query that waits for an answer."""
        record = self.record
        explicit = record.facts.explicit_partitions
        ignored = self.settings.explicit_parallelism == "ignore"
        if choice.partitions is not None and explicit is not None and ignored:
            self.report("explicit_ignored", numbers={"explicit": explicit})
        partitions = None if self.settings.hands_off else choice.partitions
        action = StartQuery(
            id=self.turn.next_action(),
            cause=self.turn.cause,
            query=record.facts.query,
            run=record.run,
            partitions=partitions,
            rescalable=self._makes_rescalable(),
            stages=self.settings.mode != "off",
        )
        record.target = partitions
        record.becomes_rescalable = action.rescalable
        self._ordered("start", action, partitions)

    def _makes_rescalable(self) -> bool:
        record, settings = self.record, self.settings
        return (
            record.run_state == "held" and not settings.hands_off and makes_rescalable(record.facts, settings)
        )

    @property
    def is_to_move(self) -> bool:
        """Whether the state of the query is moved by what is ordered."""
        record = self.record
        before, after = record.partitions, record.target
        return record.facts.stateful and before is not None and after is not None and before != after

    @property
    def may_move_on(self) -> bool:
        """Whether a rescale to another count than the present may be on its way."""
        record = self.record
        orders = record.orders.values()
        return any(order.kind == "rescale" and order.target != record.partitions for order in orders)

    def hold(self, reason: str, *, until: int | None, numbers: Mapping[str, Number]) -> None:
        """Keep the query waiting and say why, also to its application."""
        record = self.record
        choice = Choice(way="nothing", reason=reason, before=record.partitions, numbers=numbers)
        said = record.last_decision
        self.report_hold(choice, until=until)
        if (
            record.run_state != "running"
            and record.last_decision is not None
            and record.last_decision is not said
        ):
            self.turn.emit(
                HoldQuery(
                    id=self.turn.next_action(),
                    cause=self.turn.cause,
                    query=record.facts.query,
                    run=record.run,
                    message=record.last_decision.message,
                    rescalable=self._makes_rescalable(),
                )
            )

    def rescale(self, target: int) -> None:
        """Order another count, with the state that is moved for it."""
        record = self.record
        assert record.run_state == "running"
        record.target = target
        for order in record.orders.values():
            if order.kind == "rescale":
                record.orders[order.action] = evolve(order, replaced=True)
        action = Rescale(
            id=self.turn.next_action(),
            cause=self.turn.cause,
            query=record.facts.query,
            run=record.run,
            partitions=target,
        )
        self._ordered("rescale", action, target)

    def rescale_in_place(self, choice: Choice) -> None:
        """Order another count in place."""
        if self.settings.hands_off:
            self.close_rescale("no_resources_or_parallelisms_change")
            return
        assert choice.partitions is not None
        if choice.reads is not None:
            self.read_in(choice.reads)
        self.rescale(choice.partitions)

    def read_in(self, tasks: int | None) -> None:
        """Let the sources that can follow the slots be read in so many tasks; None: as Spark does."""
        self.record.reads = tasks
        order_bounds(self.record, self.record.requirements, self.turn, self.settings)

    def end_failed(self, message: str | None) -> None:
        """Order the end of a query that has failed, or that cannot be started."""
        record, turn = self.record, self.turn
        query, run = record.facts.query, record.run
        action = FailQuery(id=turn.next_action(), cause=turn.cause, query=query, run=run, message=message)
        self._ordered("end", action)

    def stop_for_good(self) -> None:
        """Order the end of a query."""
        record, turn = self.record, self.turn
        query, run = record.facts.query, record.run
        action = CancelQuery(id=turn.next_action(), cause=turn.cause, query=query, run=run)
        self._ordered("end", action)

    def take_savepoint(self, target: str | None, within: str | None, *, stop: bool = False) -> str | None:
        """Order a savepoint under a folder, None for that of the settings, or publish that there is none.

        It may not leave the folder `within`, None: that folder. With `stop` the query is to end with it.
        Return the id of the order.
        """
        folder = self.savepoint_folder(target)
        if folder is None:
            return None
        if not stop:
            self.report("savepoint", before=self.record.partitions, numbers={"target": folder})
        action = TakeSavepoint(
            id=self.turn.next_action(),
            cause=self.turn.cause,
            query=self.record.facts.query,
            run=self.record.run,
            target=folder,
            within=within or folder,
            keep=self.settings.savepoints_kept if folder == self.settings.savepoint_dir else 0,
            stop=stop,
        )
        if stop:
            self._ordered("savepoint", action)
        else:
            self._ordered("savepoint", action, folder=action.target, within=action.within)
        return action.id

    def savepoint_folder(self, target: str | None) -> str | None:
        """Return where a savepoint goes; if nobody said that, publish it and return None."""
        folder = target or self.settings.savepoint_dir
        if folder is None:
            self.report("savepoint_nowhere", before=self.record.partitions)
        return folder

    def _ordered(
        self,
        kind: OrderKind,
        action: Action,
        target: int | None = None,
        *,
        folder: str | None = None,
        within: str | None = None,
    ) -> None:
        orders = self.record.orders
        orders[action.id] = PendingOrder(
            action=action.id, kind=kind, target=target, at=self.now, folder=folder, within=within
        )
        # An outcome can get lost with the process that owed it. What nothing waits for is given up first.
        if len(orders) > MOST_ORDERS:
            *older, _ = orders.values()
            spare = (order.action for order in older if order.replaced or order.kind == "savepoint")
            del orders[next(spare, older[0].action)]
        self.turn.emit(action)

    def give_up(self, *kinds: OrderKind) -> tuple[PendingOrder, ...]:
        """Give up the orders of these kinds, of any kind if none is named; return them."""
        every = self.record.orders.values()
        given_up = tuple(order for order in every if not kinds or order.kind in kinds)
        for order in given_up:
            del self.record.orders[order.action]
        return given_up
