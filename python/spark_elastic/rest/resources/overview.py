"""GET /overview."""

from __future__ import annotations

import falcon
from attrs import frozen

from spark_elastic.rest import present
from spark_elastic.rest.lookup import as_json, current
from spark_elastic.runtime.board import Board


@frozen
class Overview:
    """The application at a glance."""

    board: Board

    def on_get(self, _: falcon.Request, response: falcon.Response) -> None:
        """Show mode, slots, executors, and how many queries are in which state."""
        response.text = as_json(present.overview(current(self.board)))
