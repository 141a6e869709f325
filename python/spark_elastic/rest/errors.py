"""Every answer that is no success has one form: sentences as Flink gives them, and what they are about.

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

_log = logging.getLogger(__name__)


class Refusal(falcon.HTTPError):
    """A request that cannot be served; the problems say what is wrong with it, each in one sentence."""

    def __init__(
        self, status: int, problems: Iterable[Problem] | str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, headers=dict(headers or {}))
        self.problems = () if isinstance(problems, str) else tuple(problems)
        self.errors = [problems] if isinstance(problems, str) else [p.message for p in self.problems]


def as_json(value: Mapping[str, Any] | Sequence[Any]) -> str:
    """Write a body."""
    return json.dumps(value, separators=(",", ":"))


def serialize(_: falcon.Request, response: falcon.Response, error: falcon.HTTPError) -> None:
    """Write an error, ours or the framework's."""
    body: dict[str, Any]
    if isinstance(error, Refusal):
        body = {"errors": error.errors}
        if error.problems:
            body["problems"] = [
                {"code": problem.code, "where": problem.where, "message": problem.message}
                for problem in error.problems
            ]
    else:
        body = {"errors": [str(error.description or error.title)]}
    response.content_type = falcon.MEDIA_JSON
    response.text = as_json(body)


def unexpected(_: falcon.Request, __: falcon.Response, error: Exception, ___: Any) -> None:
    """Hide what went wrong from the client, and say it in the log."""
    _log.error("an HTTP request failed", exc_info=error)
    raise Refusal(500, f"the policy failed at this request: {type(error).__name__}: see the driver's log")


def unavailable(why: str) -> Refusal:
    """Build the refusal for a policy that is not ready."""
    return Refusal(503, why, {"Retry-After": "1"})
