"""Has bounds that somebody asked for kept beside the checkpoints of queries, and takes them up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import define, field

from spark_elastic.core import events as ev
from spark_elastic.core.bounds.declarations import Declarations
from spark_elastic.core.bounds.kept import Requested, write
from spark_elastic.core.keep_orders import KeepOrders
from spark_elastic.core.kept_text import Unusable
from spark_elastic.core.turn import Turn


@define
class Keeping:
    """The orders to keep bounds. One that fails is only reported."""

    _orders: KeepOrders = field(factory=KeepOrders)

    def keep(self, query: str, requested: Requested | None, turn: Turn) -> None:
        """Order that these bounds outlive the driver, None: that none do; who only advises keeps nothing."""
        if turn.settings.advise_only:
            return
        self._orders.give(query, "bounds", None if requested is None else write(requested), turn)

    def answered(self, event: ev.ActionOutcome, turn: Turn) -> None:
        """Take in what became of an order, if it is one of these."""
        query = self._orders.answered(event)
        if query is not None and isinstance(event, ev.ActionFailed):
            turn.report("bounds_not_kept", query=query, error=event.error)

    def recall(self, facts: ev.QueryFacts, declarations: Declarations, turn: Turn) -> None:
        """Take up the bounds that are kept beside a query's checkpoint."""
        try:
            recalled = declarations.recall(facts)
        except Unusable as error:
            turn.report("kept_bounds_unusable", query=facts.query, error=str(error))
            return
        if recalled is not None:
            kept, counts = recalled
            reason = "bounds_recalled" if counts else "kept_bounds_outdated"
            turn.report(reason, query=facts.query, bounds=kept.shown)
            if not counts:
                self.keep(facts.query, None, turn)

    def took_over(
        self, live: Iterable[str], shown: Mapping[str, ev.QueryInfo], declarations: Declarations, turn: Turn
    ) -> None:
        """Order again that bounds are kept which a snapshot does not show: the first order may be lost."""
        self._orders.lost()
        for query in live:
            requested = declarations.request_of(query)
            info = shown.get(query)
            if requested is not None and info is not None and info.facts.kept_bounds != write(requested):
                self.keep(query, requested, turn)
