"""Tests that dashboard and alert rules use metrics and labels that exist, and the dashboard all of them."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import yaml

from metrics_page import known_metrics
from spark_elastic.core.query.machine import STATES
from tests.unit.docs.pages import CHECKOUT

_NAME = re.compile(r"\bspark_elastic_(\w+)")
METRICS = {metric.name: metric.kind for metric in known_metrics()}
DASHBOARD = json.loads((CHECKOUT / "conf" / "monitoring" / "dashboard.json").read_text())


def rules() -> Iterator[dict[str, Any]]:
    found = yaml.safe_load((CHECKOUT / "conf" / "monitoring" / "alerts.yml").read_text())
    for group in found["groups"]:
        yield from group["rules"]


def expressions() -> list[str]:
    shown = [target["expr"] for panel in DASHBOARD["panels"] for target in panel.get("targets", ())]
    return [*shown, *(rule["expr"] for rule in rules())]


def used() -> Counter[str]:
    names = [name for expression in expressions() for name in _NAME.findall(expression)]
    return Counter(name.removesuffix("_bucket") if name not in METRICS else name for name in names)


def test_each_metric_is_shown_and_no_other() -> None:
    assert set(used()) == set(METRICS)


def test_counters_are_rates_and_gauges_are_not() -> None:
    for expression in expressions():
        (name,) = _NAME.findall(expression)
        is_rate = re.search(r"\b(rate|increase)\(", expression) is not None
        counts = METRICS.get(name.removesuffix("_bucket"), "gauge") != "gauge"
        assert is_rate == counts or name == "policy_restarts_total", expression


def test_states_in_rules_exist() -> None:
    named = {state for expression in expressions() for state in re.findall(r'state="(\w+)"', expression)}
    assert named
    assert named <= {state.__name__ for state in STATES.values()} | set(STATES)


def test_each_rule_says_what_it_means_and_what_to_do() -> None:
    found = list(rules())
    assert len({rule["alert"] for rule in found}) == len(found) > 4
    for rule in found:
        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert set(rule["annotations"]) == {"summary", "description"}


def test_panels_do_not_overlap() -> None:
    places = [
        (place["x"] + dx, place["y"] + dy)
        for place in (panel["gridPos"] for panel in DASHBOARD["panels"])
        for dx in range(place["w"])
        for dy in range(place["h"])
    ]
    assert len(set(places)) == len(places)
    assert max(x for x, _ in places) < 24
