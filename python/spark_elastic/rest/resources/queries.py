"""GET /queries and all that is below a query but can only be read."""

from __future__ import annotations

import falcon
from attrs import frozen

from spark_elastic.rest import present
from spark_elastic.rest.lookup import as_json, current, find
from spark_elastic.runtime.board import Board


@frozen
class Queries:
    """All queries, the latest finished ones among them."""

    board: Board

    def on_get(self, _: falcon.Request, response: falcon.Response) -> None:
        """List them."""
        queries = current(self.board).queries.values()
        response.text = as_json({"queries": [present.query(query) for query in queries]})


@frozen
class Query:
    """One query."""

    board: Board

    def on_get(self, _: falcon.Request, response: falcon.Response, query: str) -> None:
        """Show it."""
        response.text = as_json(present.query(find(current(self.board).queries, query)))


@frozen
class Rescales:
    """What became of each rescale of a query."""

    board: Board

    def on_get(self, _: falcon.Request, response: falcon.Response, query: str) -> None:
        """List them, the newest first."""
        history = find(current(self.board).queries, query).history
        response.text = as_json({"rescales": [present.rescale(record) for record in history]})


@frozen
class Exceptions:
    """The failures of a query's runs."""

    board: Board

    def on_get(self, _: falcon.Request, response: falcon.Response, query: str) -> None:
        """List them, the newest first."""
        failures = find(current(self.board).queries, query).exceptions
        response.text = as_json({"exceptions": [present.exception(failure) for failure in failures]})
