"""GET /queries and all that is below a query but can only be read."""

from __future__ import annotations

from itertools import islice

import falcon
from attrs import frozen

from spark_elastic.core.query.transitions import FINISHED
from spark_elastic.core.query.view import QueryView
from spark_elastic.rest import present
from spark_elastic.rest.lookup import as_json, current, find
from spark_elastic.rest.parameters import LARGEST, LATEST, before, limit, whole
from spark_elastic.runtime.board import Board


@frozen
class Queries:
    """All queries, the latest finished ones among them."""

    board: Board

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        """List those that have `search` in name or id, ended ones last: `limit` of them from `offset` on."""
        queries = current(self.board).queries
        search = request.get_param("search") or ""
        offset, most = whole(request, "offset", 0, 0, LARGEST), limit(request, LARGEST, LARGEST)
        found = [query for query in queries.values() if _matches(query, search.lower())]
        found.sort(key=lambda query: query.state == FINISHED)
        shown = found[offset : offset + most]
        response.text = as_json({"queries": [present.query(query) for query in shown], "total": len(found)})


def _matches(query: QueryView, search: str) -> bool:
    return search in (query.facts.name or "").lower() or search in query.facts.query


@frozen
class Query:
    """One query."""

    board: Board

    def on_get(self, _: falcon.Request, response: falcon.Response, query: str) -> None:
        """Show it."""
        response.text = as_json(present.query(find(current(self.board).queries, query), points=True))


@frozen
class Rescales:
    """What became of each rescale of a query."""

    board: Board

    def on_get(self, request: falcon.Request, response: falcon.Response, query: str) -> None:
        """List them, the newest first; at most `limit`, `before` a number."""
        history = find(current(self.board).queries, query).history
        last, most = before(request), limit(request, LARGEST, LARGEST)
        shown = islice((record for record in history if record.number < last), most)
        response.text = as_json({"rescales": [present.rescale(record) for record in shown]})


@frozen
class Timeline:
    """What has happened to a query lately, in series for a chart."""

    board: Board

    def on_get(self, request: falcon.Request, response: falcon.Response, query: str) -> None:
        """Show its micro-batches, the slots and the lost executors, all `after` a time (epoch ms)."""
        id = find(current(self.board).queries, query).facts.query
        after = whole(request, "after", 0, 0, LATEST)
        response.text = as_json(present.timeline(self.board.timeline, id, after))


@frozen
class Exceptions:
    """The failures of a query's runs."""

    board: Board

    def on_get(self, _: falcon.Request, response: falcon.Response, query: str) -> None:
        """List them, the newest first."""
        failures = find(current(self.board).queries, query).exceptions
        response.text = as_json({"exceptions": [present.exception(failure) for failure in failures]})
