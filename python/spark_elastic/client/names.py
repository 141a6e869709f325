"""Find a query by what somebody types."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from spark_elastic.client.failures import UnknownQuery
from spark_elastic.client.source import Json, Source

_ENDED = "Finished"


def title(query: Json) -> str:
    """Return a query's name, or the beginning of its id if it has none."""
    return str(query["name"] or query["id"][:8])


def find_at(source: Source, wanted: str) -> Json:
    """Return the query of an application that `find` finds. Raises UnknownQuery, and what `source` raises."""
    return find(source.get("/queries")["queries"], wanted)


def find(queries: Sequence[Json], wanted: str) -> Json:
    """Return the query with this name, id (dashes may be left out) or beginning of an id.

    A query that lives goes before those of its name that have ended. Raises UnknownQuery.
    """
    for found in (_named(queries, wanted), _begins(queries, wanted)):
        living = [query for query in found if query["state"] != _ENDED]
        chosen = living or found[:1]
        if len(chosen) == 1:
            return chosen[0]
        if chosen:
            listed = ", ".join(f"{query['id']} ({title(query)})" for query in chosen)
            raise UnknownQuery(f"'{wanted}' can be any of {len(chosen)} queries: name one of {listed}")
    raise UnknownQuery(_unknown(queries, wanted))


def _named(queries: Sequence[Json], wanted: str) -> list[Json]:
    exact = [query for query in queries if _bare(query["id"]) == _bare(wanted)]
    return exact or [query for query in queries if query["name"] == wanted]


def _begins(queries: Sequence[Json], wanted: str) -> list[Json]:
    begin = _bare(wanted)
    return [query for query in queries if begin and _bare(query["id"]).startswith(begin)]


def _bare(id: str) -> str:
    return id.replace("-", "").lower()


def _unknown(queries: Sequence[Json], wanted: str) -> str:
    if not queries:
        return f"no query is called '{wanted}': the application has no streaming query"
    names = list(dict.fromkeys(title(query) for query in queries))
    near = get_close_matches(wanted, names, 1, cutoff=0.5)
    hint = f"did you mean '{near[0]}'? " if near else ""
    return f"no query is called '{wanted}': {hint}there are {', '.join(names)}"
