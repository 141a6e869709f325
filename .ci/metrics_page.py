"""The reference of the metrics, generated from those of an application without queries."""

from __future__ import annotations

from spark_elastic.http.metrics import Metric, metrics
from spark_elastic.runtime.publisher import DECISION_BUCKETS, Totals, View
from spark_elastic.runtime.timeline import Usage
from spark_elastic.settings import Settings


def known_metrics() -> list[Metric]:
    """Return every metric of an application without queries."""
    empty = View(
        at=0,
        application="",
        application_name="",
        spark_version="",
        parts={},
        settings=Settings(),
        restarts=0,
        slots=0,
        wanted=0,
        usage=Usage(since=0),
        executors=(),
        usable={},
        exclusions={},
        usual_slots=1,
        queries={},
        custom_policies={},
        decisions=(),
        totals=Totals(
            rescales={},
            paused={},
            queries={},
            decision_buckets=(0,) * (len(DECISION_BUCKETS) + 1),
            decision_seconds=0.0,
        ),
    )
    return list(metrics(empty))


def metrics_tables() -> str:
    """List every metric by its name in Prometheus."""
    rows = [f"| `spark_elastic_{metric.name}` | {metric.kind} | {metric.doc} |" for metric in known_metrics()]
    return "\n".join(("| metric | kind | |", "|---|---|---|", *rows))
