"""GET and POST /queries/{id}/savepoints; PUT does what POST does, since YARN's proxy passes no POST on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import falcon
from attrs import frozen

from spark_elastic.core.events import SavepointRequested
from spark_elastic.core.keys.application import SAVEPOINT_DIR
from spark_elastic.core.query.transitions import EXECUTING, RESTARTING
from spark_elastic.core.query.view import QueryView
from spark_elastic.rest import present
from spark_elastic.rest.errors import Refusal, as_json
from spark_elastic.rest.lookup import current, find
from spark_elastic.rest.targets import permitted
from spark_elastic.rest.writes import asker, carry_out, guard, read_json
from spark_elastic.runtime.board import Board, MakeEvent

_LONGEST_TARGET = 4096
_EXAMPLE = '{"target": "hdfs://namenode/savepoints", "stop": false}'


@frozen
class Savepoints:
    """The savepoints of a query, and the wish for another one."""

    board: Board

    def on_get(self, request: falcon.Request, response: falcon.Response, query: str) -> None:
        """List the last savepoints that were completed, the newest first.

        What has become of them since is not looked at: one may have been removed.
        """
        found = find(current(self.board).queries, query)
        response.text = as_json({"savepoints": [present.savepoint(taken) for taken in found.savepoints]})

    def on_post(self, request: falcon.Request, response: falcon.Response, query: str) -> None:
        """Ask for one; the order is in the journal when the answer comes, the savepoint follows."""
        view = current(self.board)
        guard(request, view)
        find(view.queries, query)
        target, stop = _read(read_json(request) if request.content_length else {})
        within = None
        if target is not None:
            target, within = permitted(target, view.settings)
        elif view.settings[SAVEPOINT_DIR] is None:
            raise Refusal(
                400,
                "there is no target, and spark.elastic.savepointDir is not set: "
                f"name the folder under which the savepoint is to stand, as in {_EXAMPLE}",
            )
        wish = _Savepoint(query, asker(request), target, within, stop)
        carry_out(self.board, request, view, wish)
        response.status = falcon.HTTP_202
        response.text = "{}"

    on_put = on_post


def _read(body: Any) -> tuple[str | None, bool]:
    if not isinstance(body, dict):
        raise Refusal(400, f"the body is no object: send {_EXAMPLE}")
    wrong = [
        f"'{name[:60]}' is no field, allowed are target and stop" for name in body.keys() - {"target", "stop"}
    ]
    target, stop = body.get("target"), body.get("stop", False)
    if target is not None and not (isinstance(target, str) and 0 < len(target.strip()) <= _LONGEST_TARGET):
        wrong.append("target is no folder, allowed is a path or a URI of a Hadoop file system")
    if not isinstance(stop, bool):
        wrong.append("stop is neither true nor false")
    if wrong:
        raise Refusal(400, f"{'; '.join(sorted(wrong))}: send {_EXAMPLE}")
    return target, stop


@frozen
class _Savepoint:
    """Checks that there is something to copy, and that it is not being copied."""

    query: str
    by: str
    target: str | None
    within: str | None
    stop: bool

    def __call__(self, queries: Mapping[str, QueryView]) -> MakeEvent:
        query = find(queries, self.query)
        allowed = (EXECUTING,) if self.stop else (EXECUTING, RESTARTING)
        if query.state not in allowed:
            what = "stopped with a savepoint" if self.stop else "saved"
            states = " or ".join(allowed)
            raise Refusal(409, f"the query is {query.state}, it can be {what} while it is {states}")
        if query.saving:
            raise Refusal(409, "a savepoint of the query is being taken: ask again when it is complete")
        id_ = query.facts.query
        return lambda id, at: SavepointRequested(
            id=id, at=at, query=id_, by=self.by, target=self.target, within=self.within, stop=self.stop
        )
