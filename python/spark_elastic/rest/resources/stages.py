"""GET /stages and /stages/{number}."""

from __future__ import annotations

import falcon
from attrs import frozen

from spark_elastic.rest import present
from spark_elastic.rest.errors import Refusal
from spark_elastic.rest.lookup import as_json, current
from spark_elastic.rest.parameters import before, limit
from spark_elastic.runtime.board import Board
from spark_elastic.runtime.decided_stages import STAGES_KEPT

_USUAL = 100


@frozen
class Stages:
    """The last decisions about batch stages."""

    board: Board

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        """List them, the newest first; `unanswered` counts the questions that Spark's own rules decided."""
        current(self.board)
        last, most = before(request), limit(request, _USUAL, STAGES_KEPT)
        response.text = as_json(present.stages(self.board.stages, last, most))


@frozen
class Stage:
    """One decision about a batch stage."""

    board: Board

    def on_get(self, _: falcon.Request, response: falcon.Response, number: str) -> None:
        """Show it with all that led to it."""
        current(self.board)
        stages = self.board.stages
        found = next((stage for stage in stages if str(stage.number) == number), None)
        if found is None:
            kept = f"{stages[-1].number} to {stages[0].number}" if stages else "none"
            raise Refusal(404, f"no decision about a stage has the number '{number[:60]}', kept are {kept}")
        response.text = as_json(present.stage(found))
