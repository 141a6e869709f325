"""GET /archive, which only the shim can ask for: what the History Server shows of an application."""

from __future__ import annotations

from collections.abc import Iterator

import falcon
from attrs import frozen

from spark_elastic.rest import present
from spark_elastic.rest.lookup import as_json, current
from spark_elastic.runtime.board import Board
from spark_elastic.runtime.view import View

# It becomes one line of the event log.
MOST_CHARACTERS = 8 << 20
# The journal has the older ones.
_STAGES = 200


@frozen
class Archive:
    """Answers of the API by their path, whole lists each."""

    board: Board
    most: int

    def on_get(self, _: falcon.Request, response: falcon.Response) -> None:
        """Show them; details of queries for which there is no room are left out, the last queries first."""
        answers, room = {}, self.most
        for path, answer in self._answers(current(self.board)):
            text = as_json(answer)
            room -= len(text)
            if room < 0:
                break
            answers[path] = text
        response.text = as_json({"answers": answers})

    def _answers(self, view: View) -> Iterator[tuple[str, present.Json]]:
        yield "overview", {**present.overview(view), "mayWrite": False, "ended": True}
        queries = [present.query(query) for query in view.queries.values()]
        yield "queries", {"queries": queries, "total": len(queries)}
        yield "decisions", {"decisions": [present.decision(one) for one in reversed(view.decisions)]}
        yield "stages", present.stages(self.board.stages, most=_STAGES)
        for id, query in view.queries.items():
            yield f"queries/{id}", present.query(query, points=True)
            yield f"queries/{id}/rescales", {"rescales": [present.rescale(one) for one in query.history]}
            yield (
                f"queries/{id}/exceptions",
                {"exceptions": [present.exception(one) for one in query.exceptions]},
            )
            yield f"queries/{id}/timeline", present.timeline(self.board.timeline, id, 0)
