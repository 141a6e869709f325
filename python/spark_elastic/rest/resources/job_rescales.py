"""GET /jobs/{id}/rescales/overview, …/history, …/summary and …/details/{rescale}, as Flink 2.3 has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import falcon
from attrs import frozen

from spark_elastic.core.query.view import QueryView
from spark_elastic.rest import flink_rescales
from spark_elastic.rest.errors import Refusal
from spark_elastic.rest.lookup import as_json, current, find
from spark_elastic.runtime.board import Board

PARTS: Mapping[str, Callable[[QueryView], Any]] = {
    "overview": flink_rescales.overview,
    "history": flink_rescales.history,
    "summary": flink_rescales.summary,
}


@frozen
class JobRescales:
    """A `part` of what is known of all rescales of a query that are kept."""

    board: Board
    part: str

    def on_get(self, _: falcon.Request, response: falcon.Response, query: str) -> None:
        """Show it."""
        response.text = as_json(PARTS[self.part](find(current(self.board).queries, query)))


@frozen
class RescaleDetails:
    """One rescale of a query."""

    board: Board

    def on_get(self, _: falcon.Request, response: falcon.Response, query: str, rescale: str) -> None:
        """Show it, with the states that the query was in."""
        view = find(current(self.board).queries, query)
        for record in view.history:
            if flink_rescales.rescale_id(view.facts.query, record) == rescale.lower():
                response.text = as_json(flink_rescales.details(view, record, states=True))
                return
        raise Refusal(404, f"no rescale of this query that is kept has the id '{rescale[:60]}'")
