"""Declared bounds: checked against the vertices of a query, stored, and the defaults."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from spark_elastic import wire
from spark_elastic.core.bounds.declared import Refused, WantedBounds, declare
from spark_elastic.core.declarations import adaptive_requirements
from spark_elastic.core.events import PolicyFileChanged
from spark_elastic.core.settings import CoreSettings
from spark_elastic.http.bounds_body import read_body, write_body
from tests.unit.core.builder import STATEFUL
from tests.vectors.adapters import http
from tests.vectors.adapters.fields import Fields

JOB = "job"


def resource_requirements_validation(given: Fields) -> Fields:
    if "max_parallelism" in given:
        return {"errors": validate(given["max_parallelism"], given["requirements"])}
    if "stored" in given:
        return {"read_back": store(given["stored"])}
    if "parallelism" in given:
        return {"requirements": {"v": default_bounds(given["parallelism"])}}
    return http.put(given)


def validate(known: Mapping[str, int], asked: Mapping[str, list[int]]) -> list[str]:
    """Return the codes of the errors, in alphabetical order as in the vectors."""
    result = declare(known, pairs(asked))
    return sorted(problem.code for problem in result.problems) if isinstance(result, Refused) else []


def store(asked: Mapping[str, list[int]] | None) -> Mapping[str, list[int]] | None:
    """Write bounds as a body and into a journal, and read them back."""
    bounds = {}
    if asked is not None:
        body = read_body(write_body(pairs(asked)))
        assert not isinstance(body, Refused), body.problems
        bounds[JOB] = body
    written = wire.encode_event(PolicyFileChanged(id="r1", at=1, path="policy.yaml", bounds=bounds))
    event = wire.decode_event(written)
    assert isinstance(event, PolicyFileChanged)
    kept = event.bounds.get(JOB)
    return None if kept is None else {vertex: [pair.lower, pair.upper] for vertex, pair in kept.items()}


def default_bounds(parallelism: int) -> list[int]:
    """Return the default bounds of a query configured with `parallelism` in adaptive mode."""
    facts = evolve(STATEFUL, session_partitions=parallelism, explicit_partitions=parallelism)
    (vertex,) = adaptive_requirements(facts, CoreSettings(explicit_parallelism="upperBound"), None).vertices
    return [vertex.bounds.lower, vertex.bounds.upper]


def pairs(asked: Mapping[str, list[int]]) -> dict[str, WantedBounds]:
    return {vertex: WantedBounds(lower=lower, upper=upper) for vertex, (lower, upper) in asked.items()}
