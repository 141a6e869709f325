"""GET /decisions and /decisions/{number}."""

from __future__ import annotations

from itertools import islice
from typing import get_args

import falcon
from attrs import frozen

from spark_elastic.core.actions import DecisionKind
from spark_elastic.rest import present
from spark_elastic.rest.errors import Refusal
from spark_elastic.rest.lookup import as_json, current
from spark_elastic.rest.parameters import LARGEST, before, limit, whole
from spark_elastic.runtime.board import Board
from spark_elastic.runtime.view import DECISIONS_KEPT

_USUAL = 100


@frozen
class Decisions:
    """The last decisions."""

    board: Board

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        """List them, the newest first: those of a `query`, of a `kind`, `after` or `before` a number."""
        decisions = current(self.board).decisions
        query, kind = request.get_param("query"), request.get_param("kind")
        if kind is not None and kind not in get_args(DecisionKind):
            allowed = ", ".join(get_args(DecisionKind))
            raise Refusal(400, f"kind is '{kind[:60]}', allowed is {allowed}: write kind=held")
        after, last = whole(request, "after", 0, 0, LARGEST), before(request)
        most = limit(request, _USUAL, DECISIONS_KEPT)
        found = (
            present.decision(decision)
            for decision in reversed(decisions)
            if after < decision.number < last
            and (query is None or decision.query == query)
            and (kind is None or decision.kind == kind)
        )
        response.text = as_json({"decisions": list(islice(found, most))})


@frozen
class Decision:
    """One decision."""

    board: Board

    def on_get(self, _: falcon.Request, response: falcon.Response, number: str) -> None:
        """Show it with all that led to it."""
        decisions = current(self.board).decisions
        found = next((d for d in decisions if str(d.number) == number), None)
        if found is None:
            kept = f"{decisions[0].number} to {decisions[-1].number}" if decisions else "none"
            raise Refusal(404, f"no decision has the number '{number[:60]}', kept are {kept}")
        response.text = as_json(present.decision(found))
