"""The resources of the API, except for resource requirements and rescales in Flink's form."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, get_args

import falcon
from attrs import frozen

from spark_elastic.core.actions import DecisionKind, StateFormat
from spark_elastic.core.events import CancelRequested, SavepointRequested
from spark_elastic.core.keys.application import SAVEPOINT_DIR, SAVEPOINT_PREFIXES
from spark_elastic.core.keys.key import Place
from spark_elastic.core.query_view import QueryView
from spark_elastic.core.transitions import EXECUTING, FINISHED, RESTARTING
from spark_elastic.http import present
from spark_elastic.http.errors import LARGEST, LATEST, Refusal, as_json, before, current, find, limit, whole
from spark_elastic.http.metrics import metrics
from spark_elastic.http.openapi import document
from spark_elastic.http.shapes import Json
from spark_elastic.http.writes import asker, carry_out, guard, may_write, read_json
from spark_elastic.runtime.decided_stages import STAGES_KEPT, DecidedStage
from spark_elastic.runtime.publisher import DECISIONS_KEPT, Publisher, View
from spark_elastic.runtime.request_queue import MakeEvent, RequestQueue
from spark_elastic.settings import Settings


@frozen
class Queries:
    """All queries, including the latest finished ones."""

    publisher: Publisher

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        """List queries with `search` in name or id, ended ones last: at most `limit`, from `offset` on."""
        queries = current(self.publisher).queries
        search = request.get_param("search") or ""
        offset, most = whole(request, "offset", 0, 0, LARGEST), limit(request, LARGEST, LARGEST)
        found = [query for query in queries.values() if _matches(query, search.lower())]
        found.sort(key=lambda query: query.state == FINISHED)
        shown = found[offset : offset + most]
        response.text = as_json(present.QUERIES.json((shown, len(found))))


def _matches(query: QueryView, search: str) -> bool:
    return search in (query.facts.name or "").lower() or search in query.facts.query


@frozen
class Query:
    """One query."""

    publisher: Publisher

    def on_get(self, _: falcon.Request, response: falcon.Response, query: str) -> None:
        """Show the query."""
        found = find(current(self.publisher).queries, query)
        response.text = as_json(present.QUERY.json(present.Shown(found, points=True)))


@frozen
class Rescales:
    """The outcome of each rescale of a query."""

    publisher: Publisher

    def on_get(self, request: falcon.Request, response: falcon.Response, query: str) -> None:
        """List the rescales, newest first: at most `limit`, with numbers below `before`."""
        history = find(current(self.publisher).queries, query).history
        last, most = before(request), limit(request, LARGEST, LARGEST)
        shown = islice((record for record in history if record.number < last), most)
        response.text = as_json(present.RESCALES.json(shown))


@frozen
class Timeline:
    """The recent history of a query, as series for a chart."""

    publisher: Publisher

    def on_get(self, request: falcon.Request, response: falcon.Response, query: str) -> None:
        """Show the micro-batches, the slots and the lost executors, all after `after` (epoch ms)."""
        id = find(current(self.publisher).queries, query).facts.query
        after = whole(request, "after", 0, 0, LATEST)
        response.text = as_json(present.TIMELINE.json(present.Since(self.publisher.timeline, id, after)))


@frozen
class Exceptions:
    """The failures of a query's runs."""

    publisher: Publisher

    def on_get(self, _: falcon.Request, response: falcon.Response, query: str) -> None:
        """List the failures, newest first."""
        failures = find(current(self.publisher).queries, query).exceptions
        response.text = as_json(present.EXCEPTIONS.json(failures))


# ---- GET /overview, and its recent history.


@frozen
class Overview:
    """The application at a glance."""

    publisher: Publisher

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        """Show mode, slots, executors, query states, and whether the client may change something."""
        view = current(self.publisher)
        response.text = as_json(present.OVERVIEW.json(present.Glance(view, may_write(request, view))))


QUERIES_CHARTED = 8
"""Number of queries in the application's chart, unless another number is requested."""


@frozen
class ApplicationTimeline:
    """The recent history of the application, as series for a chart."""

    publisher: Publisher

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        """Show slots, executors, and the queries that lag most, all after `after` (epoch ms)."""
        view = current(self.publisher)
        after, most = whole(request, "after", 0, 0, LATEST), limit(request, QUERIES_CHARTED, LARGEST)
        shown = present.Lately(self.publisher.timeline, view, after, most)
        response.text = as_json(present.APPLICATION_TIMELINE.json(shown))


# ---- GET /stages, /stages/{number} and /executions.


_USUAL_STAGES = 100


@frozen
class Stages:
    """The last decisions about batch stages."""

    publisher: Publisher

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        """List the decisions, newest first; `unanswered` counts the questions left to Spark's own rules."""
        current(self.publisher)
        last, most = before(request), limit(request, _USUAL_STAGES, STAGES_KEPT)
        response.text = as_json(
            present.STAGES.json(present.Decided(self.publisher.stages.newest_first(), last, most))
        )


@frozen
class Stage:
    """One decision about a batch stage."""

    publisher: Publisher

    def on_get(self, _: falcon.Request, response: falcon.Response, number: str) -> None:
        """Show the decision with everything that led to it."""
        current(self.publisher)
        stages = self.publisher.stages.newest_first()
        found = next((stage for stage in stages if str(stage.number) == number), None)
        if found is None:
            kept = f"{stages[-1].number} to {stages[0].number}" if stages else "none"
            raise Refusal(404, f"no decision about a stage has the number '{number[:60]}', kept are {kept}")
        response.text = as_json(present.STAGE.json(found))


@frozen
class Executions:
    """The last decisions about batch stages, by SQL execution."""

    publisher: Publisher

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        """List the executions, newest first: one `execution`, or those `before` a number of a decision.

        `query` leaves those of one streaming query, or with `none` those of no streaming query.
        """
        current(self.publisher)
        last, most = before(request), limit(request, _USUAL_STAGES, STAGES_KEPT)
        wanted, query = request.get_param("execution"), request.get_param("query")
        found = (
            stages
            for stages in self.publisher.stages.by_execution()
            if stages[0].number < last
            and (wanted is None or stages[0].execution == wanted)
            and (query is None or (stages[0].query or "none") == query)
        )
        response.text = as_json(present.EXECUTIONS.json(islice(found, most)))


# ---- POST /queries/{id}/stop, and the same as a PUT, since YARN's proxy does not forward POST.


@frozen
class Stop:
    """Stops a query, as its own application would."""

    publisher: Publisher
    requests: RequestQueue

    def on_post(self, request: falcon.Request, response: falcon.Response, query: str) -> None:
        """Stop the query permanently; the order is journaled when the answer arrives, the stop follows."""
        view = current(self.publisher)
        guard(request, view)
        find(view.queries, query)
        if request.content_length and read_json(request) != {}:
            raise Refusal(400, "the body says something, allowed is nothing or {}: send {}")
        carry_out(self.requests, request, _Stop(query, asker(request)))
        response.status = falcon.HTTP_202
        response.text = "{}"

    on_put = on_post


@frozen
class _Stop:
    """Checks that the query has not ended yet."""

    query: str
    by: str

    def __call__(self, queries: Mapping[str, QueryView]) -> MakeEvent:
        query = find(queries, self.query)
        if query.state == FINISHED:
            raise Refusal(409, "the query has ended already")
        id_ = query.facts.query
        return lambda id, at: CancelRequested(id=id, at=at, query=id_, by=self.by)


# ---- GET /elastic/metrics: metrics in Prometheus' text format.


_TEXT = "text/plain; version=0.0.4; charset=utf-8"


@frozen
class Metrics:
    """The metrics for a monitoring system."""

    publisher: Publisher

    def on_get(self, _: falcon.Request, response: falcon.Response) -> None:
        """Show all metrics."""
        response.content_type = _TEXT
        response.text = "".join(_lines(current(self.publisher)))


def _lines(view: View) -> Iterator[str]:
    for metric in metrics(view):
        name = metric.name
        yield f"# HELP spark_elastic_{name} {metric.doc}\n# TYPE spark_elastic_{name} {metric.kind}\n"
        histogram = metric.kind == "histogram"
        for labels, value in metric.samples:
            yield _sample(f"{name}_bucket" if histogram else name, labels, value)
        if histogram:
            yield _sample(f"{name}_sum", {}, metric.total)
            yield _sample(f"{name}_count", {}, metric.samples[-1][1])


def _sample(name: str, labels: Mapping[str, str], value: float) -> str:
    pairs = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"spark_elastic_{name}{{{pairs}}} {value}\n" if pairs else f"spark_elastic_{name} {value}\n"


def _escaped(text: str) -> str:
    # A lone surrogate, which Java allows in a name, is not valid text outside Java.
    whole = text.encode("utf-8", "replace").decode()
    return whole.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


# ---- GET /openapi.json.


class Document:
    """The OpenAPI description of this API."""

    def on_get(self, _: falcon.Request, response: falcon.Response) -> None:
        """Show the description."""
        response.text = as_json(document())


# ---- GET /decisions and /decisions/{number}.


_USUAL_DECISIONS = 100


@frozen
class Decisions:
    """The last decisions."""

    publisher: Publisher

    def on_get(self, request: falcon.Request, response: falcon.Response) -> None:
        """List the decisions, newest first: those of a `query`, of a `kind`, `after` or `before` a number."""
        decisions = current(self.publisher).decisions
        query, kind = request.get_param("query"), request.get_param("kind")
        if kind is not None and kind not in get_args(DecisionKind):
            allowed = ", ".join(get_args(DecisionKind))
            raise Refusal(400, f"kind is '{kind[:60]}', allowed is {allowed}: write kind=held")
        after, last = whole(request, "after", 0, 0, LARGEST), before(request)
        most = limit(request, _USUAL_DECISIONS, DECISIONS_KEPT)
        found = (
            decision
            for decision in reversed(decisions)
            if after < decision.number < last
            and (query is None or decision.query == query)
            and (kind is None or decision.kind == kind)
        )
        response.text = as_json(present.DECISIONS.json(islice(found, most)))


@frozen
class Decision:
    """One decision."""

    publisher: Publisher

    def on_get(self, _: falcon.Request, response: falcon.Response, number: str) -> None:
        """Show the decision with everything that led to it."""
        decisions = current(self.publisher).decisions
        found = next((d for d in decisions if str(d.number) == number), None)
        if found is None:
            kept = f"{decisions[0].number} to {decisions[-1].number}" if decisions else "none"
            raise Refusal(404, f"no decision has the number '{number[:60]}', kept are {kept}")
        response.text = as_json(present.DECISION.json(found))


# ---- GET /archive, which only the shim can request: what the History Server shows of an application.


# The archive becomes one line of the event log.
MOST_CHARACTERS = 8 << 20
# The journal has the older decisions.
_STAGES = 200


@frozen
class Archive:
    """Answers of the API by their path, with complete lists."""

    publisher: Publisher
    most: int

    def on_get(self, _: falcon.Request, response: falcon.Response) -> None:
        """Show the answers; if they are too long, details of queries are left out, the last queries first."""
        answers, room = {}, self.most
        for path, answer in self._answers(current(self.publisher)):
            text = as_json(answer)
            room -= len(text)
            if room < 0:
                break
            answers[path] = text
        response.text = as_json({"answers": answers})

    def _answers(self, view: View) -> Iterator[tuple[str, Json]]:
        yield "overview", present.OVERVIEW.json(present.Glance(view, ended=True))
        yield "queries", present.QUERIES.json((view.queries.values(), len(view.queries)))
        yield "decisions", present.DECISIONS.json(reversed(view.decisions))
        yield (
            "stages",
            present.STAGES.json(present.Decided(self.publisher.stages.newest_first(), most=_STAGES)),
        )
        yield "executions", present.EXECUTIONS.json(self._executions())
        timeline = present.Lately(self.publisher.timeline, view, 0, QUERIES_CHARTED)
        yield "timeline", present.APPLICATION_TIMELINE.json(timeline)
        for id, query in view.queries.items():
            yield f"queries/{id}", present.QUERY.json(present.Shown(query, points=True))
            yield f"queries/{id}/rescales", present.RESCALES.json(query.history)
            yield f"queries/{id}/exceptions", present.EXCEPTIONS.json(query.exceptions)
            since = present.Since(self.publisher.timeline, id, 0)
            yield f"queries/{id}/timeline", present.TIMELINE.json(since)

    def _executions(self) -> Iterator[Sequence[DecidedStage]]:
        """Return the newest executions with as many decisions as the list of these has.

        Micro-batches come last, so that a busy stream leaves no batch query out.
        """
        room = _STAGES
        for stages in sorted(
            self.publisher.stages.by_execution(), key=lambda them: them[0].query is not None
        ):
            room -= len(stages)
            if room < 0:
                return
            yield stages


# ---- Where a savepoint may be written: the request becomes a write with the driver's credentials. The
# settings name the folders, and the client may choose one below them. A refusal names these folders, and
# reveals nothing about the content of the requested place.


def permitted(target: str, settings: Settings) -> tuple[str, str]:
    """Return the requested folder, and the folder that permits it. Raises Refusal (400)."""
    folder, allowed = settings[SAVEPOINT_DIR], tuple(_allowed(settings))
    if folder is not None and target == folder:
        return folder, folder  # not checked, because only the settings can have chosen it
    try:
        place = Place.parse(target)
    except ValueError as error:
        raise Refusal(400, f"target is no folder that can be written to, {error}: {_say(allowed)}") from None
    if folder is not None and [place] == list(_places([folder])):
        return folder, folder  # as spelled in the settings: older savepoints may be removed there
    for prefix in allowed:
        if place.is_within(prefix):
            return str(place), str(prefix)
    raise Refusal(400, f"target is not below a folder that savepoints may be written to: {_say(allowed)}")


def _allowed(settings: Settings) -> Iterator[Place]:
    return _places((settings[SAVEPOINT_DIR] or "", *settings[SAVEPOINT_PREFIXES]))


def _places(texts: Iterable[str]) -> Iterator[Place]:
    for text in texts:
        # The folder in the settings may be relative, and then cannot be compared.
        with suppress(ValueError):
            yield Place.parse(text)


def _say(allowed: tuple[Place, ...]) -> str:
    places = " and ".join(map(str, allowed)) or "nothing, since no such folder is set"
    return f"allowed is what is below {places} ({SAVEPOINT_DIR.full_name}, {SAVEPOINT_PREFIXES.full_name})"


# ---- GET and POST /queries/{id}/savepoints; PUT does the same as POST, since YARN's proxy does not forward
# POST.


_LONGEST_TARGET = 4096
_EXAMPLE = '{"target": "hdfs://namenode/savepoints", "stop": false}'
_FIELDS = ("target", "format", "stop")
_FORMATS = get_args(StateFormat)


@frozen
class Savepoints:
    """The savepoints of a query, and requests for another one."""

    publisher: Publisher
    requests: RequestQueue

    def on_get(self, request: falcon.Request, response: falcon.Response, query: str) -> None:
        """List the last completed savepoints, newest first.

        Whether they still exist is not checked: one may have been removed since.
        """
        found = find(current(self.publisher).queries, query)
        response.text = as_json(present.SAVEPOINTS.json(found.savepoints))

    def on_post(self, request: falcon.Request, response: falcon.Response, query: str) -> None:
        """Request a savepoint; the order is journaled when the answer arrives, and the savepoint follows."""
        view = current(self.publisher)
        guard(request, view)
        find(view.queries, query)
        target, format_, stop = _read(read_json(request) if request.content_length else {})
        within = None
        if target is not None:
            target, within = permitted(target, view.settings)
        elif view.settings[SAVEPOINT_DIR] is None:
            raise Refusal(
                400,
                "there is no target, and spark.elastic.savepointDir is not set: "
                f"name the folder under which the savepoint is to stand, as in {_EXAMPLE}",
            )
        wish = _Savepoint(query, asker(request), target, within, format_, stop)
        carry_out(self.requests, request, wish)
        response.status = falcon.HTTP_202
        response.text = "{}"

    on_put = on_post


def _read(body: Any) -> tuple[str | None, StateFormat | None, bool]:
    if not isinstance(body, dict):
        raise Refusal(400, f"the body is no object: send {_EXAMPLE}")
    wrong = [
        f"'{name[:60]}' is no field, allowed are {', '.join(_FIELDS)}" for name in body.keys() - {*_FIELDS}
    ]
    target, format_, stop = body.get("target"), body.get("format"), body.get("stop", False)
    if target is not None and not (isinstance(target, str) and 0 < len(target.strip()) <= _LONGEST_TARGET):
        wrong.append("target is no folder, allowed is a path or a URI of a Hadoop file system")
    if format_ not in (None, *_FORMATS):
        wrong.append(f"format is none of {', '.join(_FORMATS)}")
    if not isinstance(stop, bool):
        wrong.append("stop is neither true nor false")
    if wrong:
        raise Refusal(400, f"{'; '.join(sorted(wrong))}: send {_EXAMPLE}")
    return target, format_, stop


@frozen
class _Savepoint:
    """Checks that the query can be saved, and that no savepoint of it is being taken."""

    query: str
    by: str
    target: str | None
    within: str | None
    format: StateFormat | None
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
        if self.format is not None and query.facts.stateful and not query.facts.moves_state:
            raise Refusal(409, "rewriting state needs Spark 4.2 or later: leave format out")
        return lambda id, at: SavepointRequested(
            id=id,
            at=at,
            query=query.facts.query,
            by=self.by,
            target=self.target,
            within=self.within,
            format=self.format,
            stop=self.stop,
        )
