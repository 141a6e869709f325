"""A first configuration for an application: settings, and a policy file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from attrs import frozen

from spark_elastic_lab.advice.told import Told
from spark_elastic_lab.advice.what_if import Outcome, WhatIf

_SAVES = 0.9
"""Executors are asked for only if that takes at most this share of the executor-hours."""
_WORSE = 1.0
"""Points of percent by which a run may be outside its objective more than the recorded one."""
_LEAST_H = 0.5
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_-]+")


@frozen(kw_only=True)
class Proposal:
    """Settings in addition to those of `spark-elastic conf`, a policy file, and why.

    `policy_file` is None if no query has bounds to declare. `notes` are things to do or to know first.
    """

    mode: str
    settings: Mapping[str, str]
    policy_file: str | None
    why: str
    notes: tuple[str, ...]


def propose(told: Told, what: WhatIf | None) -> Proposal:
    """Propose what to begin with."""
    notes = list(_notes(told, what))
    if what is None:
        return Proposal(
            mode="reactive",
            settings={},
            policy_file=None,
            why="reactive mode uses the executors that are there, and needs no numbers",
            notes=tuple(notes),
        )
    outcomes = {one.policy: one for one in what.outcomes}
    was, scaled = what.outcomes[0], outcomes["autoscale"]
    file = _policy_file(told, what.bounds)
    if why_not := _why_not(told, was, scaled):
        why = f"reactive mode uses the executors that are there, and needs no numbers; {why_not}"
        return Proposal(mode="reactive", settings={}, policy_file=file, why=why, notes=tuple(notes))
    settings = {
        "spark.elastic.policy": "autoscale",
        "spark.elastic.autoscale.maxLag": f"{what.objective_s:g}s",
        **{
            f"spark.elastic.query.{name}.upperBound": str(most)
            for name, most in _named(told, what.bounds).items()
        },
    }
    saved = 1 - scaled.executor_hours / was.executor_hours
    notes.append("begin with spark.elastic.adviseOnly true: it then decides and reports, but changes nothing")
    return Proposal(
        mode="adaptive",
        settings=settings,
        policy_file=file,
        why=f"autoscale would have taken {saved:.0%} fewer executor-hours, and kept the objective as well",
        notes=tuple(notes),
    )


def _why_not(told: Told, was: Outcome, scaled: Outcome) -> str:
    """Return why autoscale is not proposed, "" if it is."""
    if told.conf.get("spark.master", "").startswith("local"):
        return "a local master has no executors to ask for"
    if told.hours < _LEAST_H:
        return f"a log of less than {_LEAST_H:g} h is too short to show how its load rises and falls"
    if scaled.outside_percent > was.outside_percent + _WORSE:
        return "with autoscale it would have been behind its objective for longer"
    if scaled.executor_hours > _SAVES * was.executor_hours:
        return "autoscale would not have taken many fewer executor-hours"
    return ""


def _notes(told: Told, what: WhatIf | None) -> Sequence[str]:
    found = []
    unnamed = [query.query for query in told.queries.values() if query.name is None and query.batches]
    if unnamed:
        found.append(
            f"{len(unnamed)} of its queries have no name, by which bounds are declared: add .queryName(…)"
        )
    if told.conf.get("spark.dynamicAllocation.enabled", "false").lower() == "true":
        found.append(
            "spark.dynamicAllocation.enabled is true: queries then keep Spark's own partition count, and the "
            "plugin asks for no executors; turn it off for both"
        )
    if told.has_plugin:
        found.append("spark-elastic was on in this run: spark-elastic simulate --journal knows more about it")
    if any(query.stateful and query.batches for query in told.queries.values()) and what is not None:
        found.append(
            "a checkpoint of plain Spark has its state in Spark's own store: spark-elastic checkpoint "
            "inspect says whether it can be converted"
        )
    return found


def _named(told: Told, bounds: Mapping[str, int]) -> Mapping[str, int]:
    """Return the bounds of the queries whose names can be part of a setting."""
    names = {query.name for query in told.queries.values() if query.name}
    return {name: most for name, most in bounds.items() if name in names and _PLAIN_NAME.fullmatch(name)}


def _policy_file(told: Told, bounds: Mapping[str, int]) -> str | None:
    names = {query.name for query in told.queries.values() if query.name}
    lines = [
        f"  {json.dumps(name, ensure_ascii=False)}:\n    lowerBound: 1\n    upperBound: {most}\n"
        for name, most in bounds.items()
        if name in names
    ]
    return "version: 1\nqueries:\n" + "".join(lines) if lines else None
