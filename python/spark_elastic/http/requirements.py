"""GET, PUT and DELETE /queries/{id}/resource-requirements, and the same at Flink's path, /jobs/{id}/….

GET returns what PUT accepts, and its ETag. A PUT or DELETE with `If-Match` is refused if the bounds have
changed since. A PUT may name vertices by name or by id. GET returns names, but ids at Flink's path, since
Flink's own clients read no other keys. They also read no refusals with other fields than `errors`. DELETE,
which Flink does not have, takes back the bounds that were set.
"""

from __future__ import annotations

from collections.abc import Mapping

import falcon
from attrs import evolve, frozen

from spark_elastic.core.bounds.declared import Refused, WantedBounds, declare
from spark_elastic.core.bounds.requirements import SHUFFLE, Bounds
from spark_elastic.core.declarations import max_parallelism
from spark_elastic.core.events import RequirementsDropped, RequirementsRequested
from spark_elastic.core.keys.rescaling import MODE
from spark_elastic.core.query_view import QueryView
from spark_elastic.core.transitions import CANCELING, FAILING, FINISHED
from spark_elastic.http.bounds_body import BOUNDS, JOB_BOUNDS, by_name, etag, read_body, vertex_ids
from spark_elastic.http.errors import Refusal, as_json, current, find
from spark_elastic.http.writes import asker, carry_out, guard, read_json, refused
from spark_elastic.runtime.publisher import Publisher, View
from spark_elastic.runtime.request_queue import MakeEvent, RequestQueue


@frozen
class ResourceRequirements:
    """The bounds of a query; with `for_flink`, in the form that Flink's own clients read."""

    publisher: Publisher
    requests: RequestQueue
    for_flink: bool = False

    def on_get(self, _: falcon.Request, response: falcon.Response, query: str) -> None:
        """Show the declared bounds, independent of a policy."""
        view = find(current(self.publisher).queries, query)
        response.set_header("ETag", etag(view.declared))
        shown = JOB_BOUNDS.json(view) if self.for_flink else BOUNDS.json(view.declared)
        response.text = as_json(shown)

    def on_put(self, request: falcon.Request, response: falcon.Response, query: str) -> None:
        """Set other bounds; they are in the journal and in force when the answer arrives."""
        try:
            self._change(request, query, has_body=True)
        except Refusal as refusal:
            if self.for_flink:
                refusal.problems = ()
            raise
        response.text = "{}"

    def on_delete(self, request: falcon.Request, response: falcon.Response, query: str) -> None:
        """Take back the requested bounds; the configured ones are in force when the answer arrives."""
        self._change(request, query, has_body=False)
        response.text = "{}"

    def _change(self, request: falcon.Request, query: str, *, has_body: bool) -> None:
        view = current(self.publisher)
        guard(request, view, has_body=has_body)
        # Refused whatever the body is. The loop checks this again, and the bounds.
        _can_be_changed(find(view.queries, query), view)
        wanted = read_body(read_json(request)) if has_body else None
        if isinstance(wanted, Refused):
            raise refused(*wanted.problems)
        change = _Change(query, wanted, request.get_header("If-Match"), asker(request), view)
        carry_out(self.requests, request, change)


@frozen
class _Change:
    """Checks a change of bounds against the current queries; `wanted` None takes back what was set."""

    query: str
    wanted: Mapping[str, WantedBounds] | None
    if_match: str | None
    by: str
    view: View

    def __call__(self, queries: Mapping[str, QueryView]) -> MakeEvent:
        query = find(queries, self.query)
        _can_be_changed(query, self.view)
        bounds = None if self.wanted is None else _declared(query, self.wanted)
        _match(self.if_match, etag(query.declared))
        id_ = query.facts.query
        if bounds is None:
            return lambda id, at: RequirementsDropped(id=id, at=at, query=id_, by=self.by)
        both = {vertex: (bound.lower, bound.upper) for vertex, bound in bounds.items()}
        targets = {vertex: bound.target for vertex, bound in bounds.items() if bound.target is not None}
        return lambda id, at: RequirementsRequested(
            id=id, at=at, query=id_, bounds=both, targets=targets, by=self.by
        )


def _declared(query: QueryView, wanted: Mapping[str, WantedBounds]) -> Mapping[str, Bounds]:
    """Return the bounds of all vertices that a body requests. Raises Refusal with all problems."""
    known = max_parallelism(query.facts, query.settings)
    named = by_name(vertex_ids(query.facts.query, known), wanted)
    declared = named if isinstance(named, Refused) else declare(known, {**_sources(query), **named})
    if isinstance(declared, Refused):
        raise refused(*declared.problems)
    # If a client sends no target, as Flink's clients do, the present one stays if the new bounds allow it.
    kept = query.declared.shuffle.bounds.target
    bounds = declared.vertices[SHUFFLE]
    if not isinstance(named, Refused) and named[SHUFFLE].target is None and bounds.holds(kept):
        bounds = evolve(bounds, target=kept)
    return {**declared.vertices, SHUFFLE: bounds}


def _sources(query: QueryView) -> Mapping[str, WantedBounds]:
    """Return the present bounds of the sources, which sources missing from a body keep."""
    return {
        vertex.id: WantedBounds(lower=vertex.bounds.lower, upper=vertex.bounds.upper)
        for vertex in query.declared.vertices
        if vertex.id != SHUFFLE
    }


def _can_be_changed(query: QueryView, view: View) -> None:
    mode = query.settings.mode
    if mode == "reactive" and view.settings[MODE] == mode:
        raise Refusal(
            409,
            "reactive mode uses all slots that are there, bounds are not declared: "
            "set spark.elastic.schedulerMode=adaptive",
        )
    if mode != "adaptive":
        why = "it is left to Spark" if mode == "off" else "it uses all slots that are there"
        name = query.facts.name or "NAME"
        raise Refusal(
            409,
            f"the {MODE.name} of this query is {mode}: {why}, bounds are not declared: "
            f"set spark.elastic.query.{name}.{MODE.name}=adaptive and start it again",
        )
    if query.state in (CANCELING, FAILING, FINISHED):
        raise Refusal(409, f"the query is {query.state}, its bounds cannot be changed any more")


def _match(wanted: str | None, now: str) -> None:
    if wanted is None or wanted.strip() == "*" or now in (tag.strip() for tag in wanted.split(",")):
        return
    raise Refusal(412, f"the bounds have been changed, their ETag is {now}: GET them and decide again")
