"""The dashboard for Grafana, generated from the metrics: each of them is on one of its panels."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from metrics_page import known_metrics

Json = dict[str, Any]
# Unit, title, and the queries of each panel with their legends. `$query` has the chosen names.
_CHOSEN = '{name=~"$query"}'
_ROWS: Mapping[str, Sequence[tuple[str, str, Mapping[str, str]]]] = {
    "Application": (
        ("none", "Slots", {"slots": "there", "desired_slots": "desired"}),
        ("none", "Executors", {"executors": "there", "desired_executors": "desired"}),
        ("percentunit", "Busy share of the slots", {"busy_ratio": "busy"}),
        (
            "none",
            "Rescales that ended in an hour",
            {"increase(rescales_total[1h])": "{{cause}}, {{status}}"},
        ),
        ("s", "Pause of queries in an hour", {"increase(paused_seconds_total[1h])": "{{cause}}"}),
        (
            "s",
            "Time to decide (99 %)",
            {"histogram_quantile(0.99, sum by (le) (rate(decision_seconds_bucket[5m])))": "99 %"},
        ),
        ("none", "Policy processes that failed", {"policy_restarts_total": "restarts"}),
        (
            "none",
            "Custom policies: answers in an hour",
            {
                "increase(custom_policy_answers_total[1h])": "{{policy}}: used",
                "increase(custom_policy_failures_total[1h])": "{{policy}}: failed",
            },
        ),
    ),
    "Queries": (
        ("percentunit", "Load", {f"query_load_ratio{_CHOSEN}": "{{name}}"}),
        (
            "s",
            "Micro-batches and their triggers",
            {
                f"query_batch_seconds{_CHOSEN}": "{{name}}",
                f"query_trigger_interval_seconds{_CHOSEN}": "{{name}}: interval",
            },
        ),
        (
            "none",
            "Partitions and bounds",
            {
                f"query_partitions{_CHOSEN}": "{{name}}",
                f"query_lower_bound{_CHOSEN}": "{{name}}: lower bound",
                f"query_upper_bound{_CHOSEN}": "{{name}}: upper bound",
            },
        ),
        (
            "none",
            "Slots of each query",
            {
                f"query_desired_slots{_CHOSEN}": "{{name}}: desired",
                f"query_granted_slots{_CHOSEN}": "{{name}}: granted",
            },
        ),
        (
            "rowsps",
            "Rows",
            {
                f"query_input_rows_per_second{_CHOSEN}": "{{name}}: input",
                f"query_processed_rows_per_second{_CHOSEN}": "{{name}}: processed",
            },
        ),
        (
            "none",
            "Records not read yet",
            {
                f"query_backlog_records{_CHOSEN}": "{{name}}: all partitions",
                f"query_records_behind{_CHOSEN}": "{{name}}: furthest behind",
            },
        ),
        ("s", "Lag of event time", {f"query_event_time_lag_seconds{_CHOSEN}": "{{name}}"}),
        (
            "percentunit",
            "Share of time in each state",
            {f"rate(query_state_seconds_total{_CHOSEN}[5m])": "{{name}}: {{state}}"},
        ),
        (
            "none",
            "Rescales and restarts in an hour",
            {
                f"increase(query_rescales_total{_CHOSEN}[1h])": "{{name}}: rescales",
                f"increase(query_restarts_total{_CHOSEN}[1h])": "{{name}}: restarts",
            },
        ),
        ("s", "Pause in an hour", {f"increase(query_paused_seconds_total{_CHOSEN}[1h])": "{{name}}"}),
    ),
}
_COLUMNS, _WIDTH, _HEIGHT = 3, 8, 7
PREFIX = "spark_elastic_"
# The longest first: some are the end of another.
_NAMES = sorted((metric.name for metric in known_metrics()), key=len, reverse=True)
_SOURCE = {"type": "prometheus", "uid": "${source}"}


def dashboard() -> str:
    """Return the dashboard as JSON, which Grafana 10 and later import."""
    found = {
        "title": "spark-elastic",
        "uid": "spark-elastic",
        "tags": ["spark"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {
            "list": [
                {"name": "source", "label": "Prometheus", "type": "datasource", "query": "prometheus"},
                {
                    "name": "query",
                    "label": "Query",
                    "type": "query",
                    "datasource": _SOURCE,
                    "query": {
                        "query": "label_values(spark_elastic_query_partitions, name)",
                        "refId": "names",
                    },
                    "refresh": 2,
                    "multi": True,
                    "includeAll": True,
                    "allValue": ".*",
                    "current": {"text": "All", "value": "$__all"},
                },
            ]
        },
        "panels": list(_panels()),
    }
    return json.dumps(found, indent=1, ensure_ascii=False) + "\n"


def _panels() -> Iterator[Json]:
    top, number = 0, 0
    for title, panels in _ROWS.items():
        number += 1
        yield {"id": number, "type": "row", "title": title, "gridPos": _place(0, top, 24, 1), "panels": []}
        top += 1
        for place, (unit, name, queries) in enumerate(panels):
            number += 1
            left, line = place % _COLUMNS * _WIDTH, top + place // _COLUMNS * _HEIGHT
            yield {
                "id": number,
                "type": "timeseries",
                "title": name,
                "datasource": _SOURCE,
                "gridPos": _place(left, line, _WIDTH, _HEIGHT),
                "fieldConfig": {"defaults": {"unit": unit, "min": 0}, "overrides": []},
                "targets": [
                    {
                        "refId": chr(ord("A") + at),
                        "datasource": _SOURCE,
                        "expr": _named(expression),
                        "legendFormat": legend,
                    }
                    for at, (expression, legend) in enumerate(queries.items())
                ],
            }
        top += -(-len(panels) // _COLUMNS) * _HEIGHT


def _named(expression: str) -> str:
    """Return an expression with the full name of its metric."""
    for name in _NAMES:
        if name in expression:
            return expression.replace(name, f"{PREFIX}{name}", 1)
    raise ValueError(f"{expression} names no metric")


def _place(x: int, y: int, width: int, height: int) -> Json:
    return {"x": x, "y": y, "w": width, "h": height}
