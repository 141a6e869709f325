"""Bounds as a body in Flink's form: {"shuffle": {"parallelism": {"lowerBound": 1, "upperBound": 8}}}.

In addition to the two there may be a `target`, which Flink does not have. A vertex has a name, and an id for
Flink's REST client, which reads only 32 hexadecimal digits as keys.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from spark_elastic.core.bounds.declared import ALLOWED, NO_BOUND, Problem, Refused, WantedBounds, shortened
from spark_elastic.core.bounds.requirements import SHUFFLE, Bounds, Requirements
from spark_elastic.core.query_view import QueryView
from spark_elastic.http.errors import LARGEST, as_json
from spark_elastic.http.shapes import Json, Member, Object, Shape, said

# ---- The ids of vertices. An id follows from the query's id and the vertex's name: nothing has to be stored
# here, and a client may store it as long as the query's id stays.


_BYTES = 16
VERTEX_ID = Shape[str]({"type": "string", "pattern": "^[0-9a-f]{32}$"})
VERTEX_NAME = Shape[str]({"type": "string", "pattern": "^(shuffle|source-[0-9]+)$"})


def vertex_id(query: str, vertex: str) -> str:
    """Return the id of a vertex: 32 hexadecimal digits, in lower case."""
    return hashlib.blake2b(f"{query}/{vertex}".encode(), digest_size=_BYTES).hexdigest()


def vertex_ids(query: str, vertices: Iterable[str]) -> Mapping[str, str]:
    """Return the ids of vertices, by name."""
    return {vertex: vertex_id(query, vertex) for vertex in vertices}


def by_name(
    ids: Mapping[str, str], wanted: Mapping[str, WantedBounds]
) -> Mapping[str, WantedBounds] | Refused:
    """Return bounds by vertex name; each vertex may be given by its name or by its id.

    `ids` are those of the query's vertices, by name. An unknown key stays as it is, for `declare` to refuse.
    """
    names = {id: name for name, id in ids.items()}
    named: dict[str, WantedBounds] = {}
    problems: list[Problem] = []
    for key, bounds in wanted.items():
        name = names.get(key.lower(), key)
        if name in named:
            message = f"vertex {name} is there twice, by its name or id {ids[name]}: keep one of them"
            problems.append(Problem(code="vertex_said_twice", where=name, message=message))
        named[name] = bounds
    return Refused(problems=tuple(problems)) if problems else named


# ---- The form.


_TARGET = "target"
_BOUND = said(
    Shape[int]({"type": "integer", "minimum": -1, "maximum": LARGEST}),
    "A whole number from 1 up, or -1 for no bound.",
)
_LOWER: Member[Bounds | WantedBounds] = _BOUND.of(lambda bounds: bounds.lower)
_UPPER: Member[Bounds | WantedBounds] = _BOUND.of(lambda bounds: bounds.upper)
_WANTED = said(_BOUND, "Partitions wanted where no policy decides; -1: no target; left out: unchanged.")
_SHUFFLE = Object[Bounds | WantedBounds](
    parallelism=Object[Bounds | WantedBounds](
        lowerBound=_LOWER, upperBound=_UPPER, target=_WANTED.may(lambda bounds: bounds.target)
    ).of(lambda bounds: bounds)
)
# Flink's clients read no other fields, and only the shuffle has a target.
_VERTEX = Object[Bounds](
    parallelism=Object[Bounds](lowerBound=_LOWER, upperBound=_UPPER).of(lambda bounds: bounds)
)


def read_body(body: object) -> Mapping[str, WantedBounds] | Refused:
    """Read a body in Flink's form, as parsed from JSON. The values are not checked: see `declare`."""
    problems: list[Problem] = []
    wanted: dict[str, WantedBounds] = {}
    vertices = _object("$", body, problems)
    if vertices == {}:
        message = '$ is {}, allowed is one entry for each vertex: write {"shuffle": {"parallelism": …}}'
        problems.append(Problem(code="empty_body", where="$", message=message))
    for vertex, value in (vertices or {}).items():
        entry_path = _member("$", vertex)
        entry = _object(entry_path, value, problems, "parallelism")
        if entry is None or "parallelism" not in entry:
            continue
        path = _member(entry_path, "parallelism")
        bounds = _object(
            path, entry["parallelism"], problems, "lowerBound", "upperBound", optional=(_TARGET,)
        )
        if bounds is None:
            continue
        wanted[vertex] = WantedBounds(
            lower=_whole(_member(path, "lowerBound"), bounds.get("lowerBound", NO_BOUND), problems),
            upper=_whole(_member(path, "upperBound"), bounds.get("upperBound", NO_BOUND), problems),
            target=_whole(_member(path, _TARGET), bounds[_TARGET], problems) if _TARGET in bounds else None,
        )
    return Refused(problems=tuple(problems)) if problems else wanted


def write_body(vertices: Mapping[str, Bounds | WantedBounds]) -> Json:
    """Write bounds as a body in Flink's form; `read_body` reads it back."""
    return {vertex: _SHUFFLE.json(bounds) for vertex, bounds in vertices.items()}


def _object(
    path: str, value: object, problems: list[Problem], *fields: str, optional: tuple[str, ...] = ()
) -> Mapping[str, Any] | None:
    """Return `value` if it is an object; `fields` must be in it, and other names must be `optional`."""
    if not isinstance(value, Mapping):
        message = f"{path} is {_shown(value)}, allowed is an object: write {{…}}"
        problems.append(Problem(code="wrong_type", where=path, message=message))
        return None
    for name in value if fields else ():
        if name not in (*fields, *optional):
            where = _member(path, name)
            message = f"{where} is no field, allowed is {_listed(*fields, *optional)}: remove it"
            problems.append(Problem(code="unknown_field", where=where, message=message))
    for name in fields:
        if name not in value:
            where = _member(path, name)
            wanted = '{"lowerBound": -1, "upperBound": -1}' if name == "parallelism" else "-1"
            message = f'{where} is not there, but has to be: write "{name}": {wanted} for no bound'
            problems.append(Problem(code="missing_field", where=where, message=message))
    return value


def _listed(*names: str) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def _whole(path: str, value: object, problems: list[Problem]) -> int:
    """Return `value` if it is a whole number of 32 bits; True and False are not."""
    if type(value) is int and -LARGEST <= value <= LARGEST:
        return value
    message = f"{path} is {_shown(value)}, allowed is {ALLOWED}: write -1"
    problems.append(Problem(code="wrong_type", where=path, message=message))
    return NO_BOUND


def _member(path: str, name: str) -> str:
    """Return the JSON path of a member of the object at `path`."""
    if re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
        return f"{path}.{name}"
    escaped = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"{path}['{escaped}']"


def _shown(value: object) -> str:
    """Return a value in the terms of JSON, shortened."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list):
        return "an array"
    if type(value) is int and abs(value) > LARGEST:
        return "a number of more than 32 bits"
    return shortened(value) if isinstance(value, str) else str(value)


# ---- The bodies of a query's bounds.


def _requirements(value: Requirements) -> Json:
    return write_body({vertex.id: vertex.bounds for vertex in value.vertices})


def _by_id(query: QueryView) -> Json:
    id = query.facts.query
    return {vertex_id(id, vertex.id): _VERTEX.json(vertex.bounds) for vertex in query.declared.vertices}


BOUNDS = Shape[Requirements](
    {
        "type": "object",
        "description": "Bounds by vertex, in Flink's form: the query's shuffle, and in adaptive mode its "
        "sources, source-0 and so on.",
        "properties": {SHUFFLE: _SHUFFLE.schema},
        "patternProperties": {"^source-[0-9]+$": _VERTEX.schema},
        "required": [SHUFFLE],
        "additionalProperties": False,
    },
    _requirements,
    "ResourceRequirements",
)
JOB_BOUNDS = Shape[QueryView](
    {
        "type": "object",
        "description": "The same with the ids of the vertices, which Flink's own clients want.",
        "patternProperties": {VERTEX_ID.described["pattern"]: _VERTEX.schema},
        "minProperties": 1,
        "additionalProperties": False,
    },
    _by_id,
    "JobResourceRequirements",
)
WANTED_BOUNDS = Shape[Any](
    {
        "type": "object",
        "description": "Bounds by vertex, each called by its name or by its id. The query's shuffle has to "
        "be there; a source that is left out keeps its bounds.",
        "patternProperties": {"^(shuffle|source-[0-9]+|[0-9a-fA-F]{32})$": _SHUFFLE.schema},
        "minProperties": 1,
        "additionalProperties": False,
    },
    name="WantedRequirements",
)


def etag(value: Requirements) -> str:
    """Return the entity tag of bounds: equal for equal bounds."""
    return f'"{hashlib.sha256(as_json(BOUNDS.json(value)).encode()).hexdigest()[:16]}"'
