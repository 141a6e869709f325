"""The ids of vertices for clients of Flink, which know a vertex by 32 hexadecimal digits.

A vertex has the same id as long as its query has: it follows from the query's id and the vertex' name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping

from spark_elastic.core.bounds.declared import Problem, Refused, WantedBounds

_BYTES = 16


def vertex_id(query: str, vertex: str) -> str:
    """Return the id of a vertex: 32 hexadecimal digits, in lower case."""
    return hashlib.blake2b(f"{query}/{vertex}".encode(), digest_size=_BYTES).hexdigest()


def vertex_ids(query: str, vertices: Iterable[str]) -> Mapping[str, str]:
    """Return the ids of vertices, by their names."""
    return {vertex: vertex_id(query, vertex) for vertex in vertices}


def by_name(
    ids: Mapping[str, str], wanted: Mapping[str, WantedBounds]
) -> Mapping[str, WantedBounds] | Refused:
    """Return bounds by the names of vertices; each may be called by its name or by its id.

    `ids` are those of the query's vertices, by name. What is neither stays as it is, for `declare` to refuse.
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
