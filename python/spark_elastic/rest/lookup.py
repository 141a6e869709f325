"""What every resource needs to find first: the view, and in it a query."""

from __future__ import annotations

from collections.abc import Mapping

from spark_elastic.core.query.view import QueryView
from spark_elastic.rest.errors import Refusal, as_json, unavailable
from spark_elastic.runtime.board import Board
from spark_elastic.runtime.view import View

__all__ = ["as_json", "current", "find"]


def current(board: Board) -> View:
    """Return what is to be seen now. Raises Refusal (503) before the driver has told the policy anything."""
    view = board.view
    if view is None:
        raise unavailable("the policy has just started and knows nothing yet: try again")
    return view


def find(queries: Mapping[str, QueryView], query: str) -> QueryView:
    """Return a query by its id; as in Flink's job ids, the dashes may be left out. Raises Refusal (404)."""
    dashed = query
    if "-" not in query and len(query) == 32:
        dashed = "-".join((query[:8], query[8:12], query[12:16], query[16:20], query[20:]))
    for name in (query, dashed.lower()):
        if name in queries:
            return queries[name]
    raise Refusal(404, f"no query has the id '{query[:60]}': GET …/elastic/api/v1/queries lists them")
