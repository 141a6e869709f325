"""GET /stages."""

from __future__ import annotations

from typing import Any

import falcon
from attrs import frozen

from spark_elastic.gateway.port import JsonObject
from spark_elastic.rest.lookup import as_json, current
from spark_elastic.runtime.board import Board


@frozen
class Stages:
    """The last decisions about batch stages."""

    board: Board

    def on_get(self, _: falcon.Request, response: falcon.Response) -> None:
        """List them, the newest first; `unanswered` counts the questions that Spark's own rules decided."""
        current(self.board)
        stages = self.board.stages
        unanswered = stages[-1]["unanswered"] if stages else 0
        response.text = as_json(
            {"stages": [_shown(stage) for stage in reversed(stages)], "unanswered": unanswered}
        )


def _shown(stage: JsonObject) -> dict[str, Any]:
    question = stage["question"]
    return {
        "at": stage["at"],
        "group": question["scan"] if question["type"] == "SplitSize" else question["group"],
        "question": question["type"],
        "tookUs": stage["took_us"],
        **stage["answer"]["record"],
    }
