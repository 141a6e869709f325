"""Scenarios in YAML.

    hours: 24
    seed: 1
    maxLagSeconds: 30            # the objective
    cluster: {cores: 4, initial: 2, quota: 64, startup_s: 30}
    defaults: {trigger_s: 10}    # for every query
    queries:
      counts:
        load: two-peaks:first=50000
        stateful: true
        source: {partitions: 16, hot: 0.2}
        cost: {fixed_ms: 300, work_us: 80}
    batch:
      report: {at_s: 3600, every_s: 14400, stages: 3, tasks: 400, task_s: 12}
    settings:
      spark.elastic.query.counts.upperBound: 16

Omitted values have their defaults. The names are those of the fields of `ClusterSpec`, `QuerySpec`,
`SourceSpec`, `BatchCost` and `BatchSpec`.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import attrs
import yaml

from spark_elastic_lab.simulator.batches import BatchCost, BatchSpec
from spark_elastic_lab.simulator.cluster import ClusterSpec
from spark_elastic_lab.simulator.query import QuerySpec
from spark_elastic_lab.simulator.scenario import Scenario
from spark_elastic_lab.simulator.source import SourceSpec

Spec = TypeVar("Spec")

_TOP = ("hours", "seed", "maxLagSeconds", "cluster", "defaults", "queries", "batch", "settings")
_NUMBERS = {"hours": "hours", "seed": "seed", "maxLagSeconds": "max_lag_s"}


class ScenarioError(ValueError):
    """An invalid scenario; the message says what was found, what is allowed and what to type."""


def read_scenario(text: str) -> Scenario:
    """Read a scenario. Raises ScenarioError."""
    try:
        tree = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ScenarioError(f"this is no YAML ({_in_one_line(error)}): repair it there") from error
    top = _mapping(tree, "the scenario", _TOP)
    numbers = {
        field: _value(top[name], attrs.fields_dict(Scenario)[field], name)
        for name, field in _NUMBERS.items()
        if name in top
    }
    settings = _any_mapping(top.get("settings", {}), "settings")
    queries = _any_mapping(top.get("queries", {}), "queries")
    batch = _any_mapping(top.get("batch", {}), "batch")
    defaults = top.get("defaults", {})
    try:
        return Scenario(
            queries=tuple(
                _query(name, _merged(defaults, tree or {}, name), f"queries.{name}")
                for name, tree in queries.items()
            ),
            batch=tuple(_spec(BatchSpec, tree, f"batch.{name}", name=name) for name, tree in batch.items()),
            cluster=_spec(ClusterSpec, top.get("cluster", {}), "cluster"),
            settings={name: _text(value, f"settings.{name}") for name, value in settings.items()},
            **numbers,
        )
    except ScenarioError:
        raise
    except ValueError as error:
        raise ScenarioError(str(error.args[0])) from error


def _query(name: str, tree: Mapping[str, Any], where: str) -> QuerySpec:
    inner: dict[str, Callable[[Any, str], Any]] = {
        "source": lambda part, place: _spec(SourceSpec, part, place),
        "cost": lambda part, place: _spec(BatchCost, part, place),
    }
    return _spec(QuerySpec, tree, where, inner, name=name)


def _spec(
    kind: Callable[..., Spec],
    tree: Any,
    where: str,
    inner: Mapping[str, Callable[[Any, str], Any]] | None = None,
    **given: Any,
) -> Spec:
    """Create a spec from a part of the tree whose names are its fields."""
    assert isinstance(kind, type)
    fields = {one.name: one for one in attrs.fields(kind) if one.name not in given}
    values = {
        name: inner[name](part, f"{where}.{name}")
        if inner is not None and name in inner
        else _value(part, fields[name], f"{where}.{name}")
        for name, part in _mapping(tree, where, tuple(fields)).items()
    }
    try:
        made: Spec = kind(**values, **given)
    except ScenarioError:
        raise
    except ValueError as error:
        raise ScenarioError(f"{where}: {error.args[0]}") from error
    return made


def _value(found: Any, field: attrs.Attribute[Any], where: str) -> Any:
    """Return a value if it has the type of a field. Raises ScenarioError otherwise."""
    kind = str(field.type)
    if found is None and "None" in kind:
        return None
    if "bool" in kind:
        return _of_kind(found, bool, isinstance(found, bool), "true or false", where)
    is_number = isinstance(found, int | float) and not isinstance(found, bool)
    if "float" in kind:
        return _of_kind(found, float, is_number and math.isfinite(found), "a finite number", where)
    if "int" in kind:
        return _of_kind(found, int, is_number and isinstance(found, int), "a whole number", where)
    return _of_kind(found, str, isinstance(found, str), "a text", where)


def _of_kind(found: Any, kind: Callable[[Any], Any], fits: bool, allowed: str, where: str) -> Any:
    if not fits:
        raise ScenarioError(f"{where} is {found!r}: write {allowed}")
    return kind(found)


def _merged(defaults: Any, tree: Any, name: str) -> dict[str, Any]:
    """Merge a query's values over the defaults, one level deeper as well."""
    merged = _any_mapping(defaults, "defaults")
    for key, value in _any_mapping(tree, f"queries.{name}").items():
        both = isinstance(value, dict) and isinstance(merged.get(key), dict)
        merged[key] = {**merged[key], **value} if both else value
    return merged


def _any_mapping(tree: Any, where: str) -> dict[str, Any]:
    if not isinstance(tree, dict) or not all(isinstance(name, str) for name in tree):
        raise ScenarioError(f"{where} is {tree!r}: write names with values under it")
    return dict(tree)


def _mapping(tree: Any, where: str, allowed: tuple[str, ...]) -> dict[str, Any]:
    found = _any_mapping(tree, where)
    for name in found:
        if name not in allowed:
            near = difflib.get_close_matches(name, allowed, 1)
            advice = f"write {near[0]}" if near else "leave it out"
            raise ScenarioError(f"{where} has no '{name}', but {', '.join(allowed)}: {advice}")
    return found


def _text(value: Any, where: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int | float):
        raise ScenarioError(f"{where} is {value!r}: write one value")
    return str(value)


def _in_one_line(error: yaml.YAMLError) -> str:
    return " ".join(str(error).split())
