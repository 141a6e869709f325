"""The content of one application's journal: events with the slots after them, orders, decisions."""

from __future__ import annotations

from attrs import define, field, frozen

from spark_elastic.core.actions import Action, Decision, Report, Rescale, StartQuery
from spark_elastic.core.events import Event, ExecutorRemoved
from spark_elastic_lab.demo.chronicle import Batch, Chronicle, QueryChronicle


@frozen
class Seen:
    """An event, and the slots after it."""

    event: Event
    slots: int


@define
class Story(Chronicle):
    """A chronicle that keeps everything."""

    seen: list[Seen] = field(factory=list)
    orders: list[Action] = field(factory=list)
    said: list[Decision] = field(factory=list)

    def follow(self, event: Event) -> None:
        super().follow(event)
        self.seen.append(Seen(event, self.slots.total))

    def order(self, action: Action) -> None:
        super().order(action)
        self.orders.append(action)
        if isinstance(action, Report):
            self.said.append(action.decision)

    def named(self, name: str) -> QueryChronicle:
        """Return a query of the application by its name."""
        return next(query for query in self.queries.values() if query.name == name)

    def reasons(self, name: str, since: int = 0) -> list[str]:
        """Return the reasons of decisions on a query from `since` on (epoch ms), if the query is known."""
        known = {query.query for query in self.queries.values() if query.name == name}
        return [decision.reason for decision in self.said if decision.query in known and decision.at >= since]

    def orders_about(self, name: str, kind: type[Action]) -> list[Action]:
        """Return the orders of a kind about a query; none for an unknown query."""
        known = {query.query for query in self.queries.values() if query.name == name}
        return [order for order in self.orders if isinstance(order, kind) and _query(order) in known]

    def rescaled_to(self, name: str) -> list[int]:
        """Return the counts to which rescales of a query were ordered."""
        return [order.partitions for order in self.orders_about(name, Rescale) if isinstance(order, Rescale)]

    def starts(self, name: str) -> list[StartQuery]:
        """Return the orders to start a query, the first one and those after failures."""
        return [order for order in self.orders_about(name, StartQuery) if isinstance(order, StartQuery)]

    def batches_over_a_loss(self, since: int) -> list[tuple[str, Batch]]:
        """Return the micro-batches during which an executor was lost, from `since` (epoch ms) on."""
        losses = [seen.event.at for seen in self.seen if isinstance(seen.event, ExecutorRemoved)]
        return [
            (query.name, batch)
            for query in self.queries.values()
            for batch in query.batches
            if any(batch.started < at < batch.ended for at in losses if at >= since)
        ]


def _query(order: Action) -> str | None:
    return getattr(order, "query", None)
