"""POST /queries/{id}/stop, and the same as a PUT, since YARN's proxy passes no POST on."""

from __future__ import annotations

from collections.abc import Mapping

import falcon
from attrs import frozen

from spark_elastic.core.events import CancelRequested
from spark_elastic.core.query.transitions import FINISHED
from spark_elastic.core.query.view import QueryView
from spark_elastic.rest.errors import Refusal
from spark_elastic.rest.lookup import current, find
from spark_elastic.rest.writes import asker, carry_out, guard, read_json
from spark_elastic.runtime.board import Board, MakeEvent


@frozen
class Stop:
    """The end of a query, as its application would bring it about."""

    board: Board

    def on_post(self, request: falcon.Request, response: falcon.Response, query: str) -> None:
        """Stop the query for good; the order is in the journal when the answer comes, the end follows."""
        view = current(self.board)
        guard(request, view)
        find(view.queries, query)
        if request.content_length and read_json(request) != {}:
            raise Refusal(400, "the body says something, allowed is nothing or {}: send {}")
        carry_out(self.board, request, view, _Stop(query, asker(request)))
        response.status = falcon.HTTP_202
        response.text = "{}"

    on_put = on_post


@frozen
class _Stop:
    """Checks that there is something to stop."""

    query: str
    by: str

    def __call__(self, queries: Mapping[str, QueryView]) -> MakeEvent:
        query = find(queries, self.query)
        if query.state == FINISHED:
            raise Refusal(409, "the query has ended already")
        id_ = query.facts.query
        return lambda id, at: CancelRequested(id=id, at=at, query=id_, by=self.by)
