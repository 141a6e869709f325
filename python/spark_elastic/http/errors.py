"""The form of every answer that is not a success: sentences as in Flink's API, and details of each problem.

{"errors": ["lowerBound of vertex shuffle is 0, allowed is …"],
"problems": [{"code": "not_positive", "where": "shuffle", "message": "lowerBound of …"}]}
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import falcon

from spark_elastic.core.bounds.declared import Problem
from spark_elastic.core.query_view import QueryView
from spark_elastic.http.shapes import TEXT, Object, Shape, list_
from spark_elastic.runtime.publisher import Publisher, View

_log = logging.getLogger(__name__)


class Refusal(falcon.HTTPError):
    """A request that cannot be served; each problem says in one sentence what is wrong with it."""

    def __init__(
        self, status: int, problems: Iterable[Problem] | str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, headers=dict(headers or {}))
        self.problems = () if isinstance(problems, str) else tuple(problems)
        self.errors = [problems] if isinstance(problems, str) else [p.message for p in self.problems]


_BODY = Object[Refusal](
    errors=Shape[list[str]]({**list_(TEXT).schema, "minItems": 1}).of(lambda it: it.errors),
    problems=list_(
        Object[Problem](
            code=TEXT.of(lambda it: it.code),
            where=TEXT.of(lambda it: it.where),
            message=TEXT.of(lambda it: it.message),
        )
    ).may(lambda it: it.problems or None),
)
ERRORS = Shape[Refusal](
    {
        "type": "object",
        "description": "Why a request was refused: one sentence for each error, all at once.",
        **_BODY.described,
    },
    _BODY.json,
    "Errors",
)


def as_json(value: Mapping[str, Any] | Sequence[Any]) -> str:
    """Return a body as compact JSON."""
    return json.dumps(value, separators=(",", ":"))


def serialize(_: falcon.Request, response: falcon.Response, error: falcon.HTTPError) -> None:
    """Write the body of an error, ours or the framework's."""
    if not isinstance(error, Refusal):
        error = Refusal(error.status_code, str(error.description or error.title))
    response.content_type = falcon.MEDIA_JSON
    response.text = as_json(ERRORS.json(error))


def unexpected(_: falcon.Request, __: falcon.Response, error: Exception, ___: Any) -> None:
    """Hide the details of an unexpected error from the client, and log them."""
    _log.error("an HTTP request failed", exc_info=error)
    raise Refusal(500, f"the policy failed at this request: {type(error).__name__}: see the driver's log")


def unavailable(why: str) -> Refusal:
    """Return the refusal for a policy that is not ready."""
    return Refusal(503, why, {"Retry-After": "1"})


# ---- What every resource has to find first: the view, and a query in it.


def current(publisher: Publisher) -> View:
    """Return the current view. Raises Refusal (503) before the driver has sent the policy anything."""
    view = publisher.view
    if view is None:
        raise unavailable("the policy has just started and has no events yet: try again")
    return view


def find(queries: Mapping[str, QueryView], query: str) -> QueryView:
    """Return a query by its id; as in Flink's job ids, dashes may be left out. Raises Refusal (404)."""
    dashed = query
    if "-" not in query and len(query) == 32:
        dashed = "-".join((query[:8], query[8:12], query[12:16], query[16:20], query[20:]))
    for name in (query, dashed.lower()):
        if name in queries:
            return queries[name]
    raise Refusal(404, f"no query has the id '{query[:60]}': GET …/elastic/api/v1/queries lists them")


# ---- Parameters of a request that select a part of a list.


LARGEST = 2**31 - 1
"""The largest value of anything that is counted."""

LATEST = 2**53 - 1
"""The latest time (epoch ms) that every client can represent."""


def whole(request: falcon.Request, name: str, default: int, least: int, most: int) -> int:
    """Return a parameter that is a whole number. Raises Refusal (400)."""
    text = request.get_param(name)
    if text is None:
        return default
    if text.isascii() and text.isdigit() and len(text) <= 16 and least <= int(text) <= most:
        return int(text)
    raise Refusal(
        400,
        f"{name} is '{text[:60]}', allowed is a whole number from {least} to {most}: write {name}={default}",
    )


def limit(request: falcon.Request, default: int, most: int) -> int:
    """Return the maximum number of entries. Raises Refusal (400)."""
    return whole(request, "limit", default, 1, most)


def before(request: falcon.Request) -> int:
    """Return the number below which entries are selected. Raises Refusal (400)."""
    return whole(request, "before", LARGEST, 0, LARGEST)
