"""GET /elastic/metrics: metrics in Prometheus' text format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import falcon
from attrs import frozen

from spark_elastic.rest.lookup import current
from spark_elastic.rest.metrics import metrics
from spark_elastic.runtime.board import Board
from spark_elastic.runtime.view import View

_TEXT = "text/plain; version=0.0.4; charset=utf-8"


@frozen
class Metrics:
    """What a monitoring system collects."""

    board: Board

    def on_get(self, _: falcon.Request, response: falcon.Response) -> None:
        """Show all metrics."""
        response.content_type = _TEXT
        response.text = "".join(_lines(current(self.board)))


def _lines(view: View) -> Iterator[str]:
    for metric in metrics(view):
        name = metric.name
        yield f"# HELP spark_elastic_{name} {metric.doc}\n# TYPE spark_elastic_{name} {metric.kind}\n"
        histogram = metric.kind == "histogram"
        for labels, value in metric.samples:
            yield _sample(f"{name}_bucket" if histogram else name, labels, value)
        if histogram:
            yield _sample(f"{name}_sum", {}, metric.total)
            yield _sample(f"{name}_count", {}, metric.samples[-1][1])


def _sample(name: str, labels: Mapping[str, str], value: float) -> str:
    pairs = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"spark_elastic_{name}{{{pairs}}} {value}\n" if pairs else f"spark_elastic_{name} {value}\n"


def _escaped(text: str) -> str:
    # A lone half of a surrogate pair, which Java allows in a name, is no text outside of Java.
    whole = text.encode("utf-8", "replace").decode()
    return whole.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
