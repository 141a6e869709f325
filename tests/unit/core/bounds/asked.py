"""Requested bounds and the errors that they cause."""

from __future__ import annotations

from spark_elastic.core.bounds.declared import Problem, Refused, WantedBounds


def pair(lower: int = -1, upper: int = -1) -> WantedBounds:
    return WantedBounds(lower=lower, upper=upper)


def problems(result: object) -> tuple[Problem, ...]:
    assert isinstance(result, Refused)
    return result.problems


def codes(result: object) -> list[tuple[str, str]]:
    return [(problem.code, problem.where) for problem in problems(result)]


def message(result: object) -> str:
    (problem,) = problems(result)
    return problem.message
