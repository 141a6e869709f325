"""GET /overview."""

from __future__ import annotations

import falcon
from attrs import frozen

from spark_elastic.rest import present
from spark_elastic.rest.lookup import as_json, current
from spark_elastic.rest.writes import may_write
from spark_elastic.runtime.board import Board


@frozen
class Overview:
    """The application at a glance."""

    board: Board

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        """Show mode, slots, executors, states of queries, and whether who asks may change something."""
        view = current(self.board)
        response.text = as_json({**present.overview(view), "mayWrite": may_write(request, view)})
