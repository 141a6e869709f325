"""A picture of the batch benchmark's result: the other variants' time for each query, relative to ours."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

_WIDTH_IN, _ROW_IN = 8, 0.3
_SUITES = {"tpch": "TPC-H", "tpcds": "TPC-DS"}


def draw(result: Mapping[str, Any], file: Path) -> None:
    """Write `result`, as bench-batch prints it, as an SVG."""
    queries = result["queries"]
    places = range(len(queries))
    # The same figures give the same file; text stays text.
    with mpl.rc_context({"svg.hashsalt": "bench", "svg.fonttype": "none"}):
        figure = Figure(figsize=(_WIDTH_IN, _ROW_IN * len(queries) + 1), layout="constrained")
        axes = figure.subplots()
        for other, shift, label in (
            ("shipped_s", -0.2, f"Spark as shipped ({result['geomean_vs_shipped']} × in the geometric mean)"),
            (
                "best_fixed_s",
                0.2,
                f"best fixed count of each query ({result['geomean_vs_best_fixed']} ×)",
            ),
        ):
            ratios = [query[other] / query["elastic_s"] for query in queries.values()]
            axes.barh([place + shift for place in places], ratios, height=0.36, label=label)
        axes.axvline(1, color="black", linewidth=1)
        axes.set_yticks(list(places), labels=list(queries))
        axes.invert_yaxis()
        axes.set_xlabel(f"time / time with spark-elastic, {_SUITES[result['suite']]} scale {result['sf']:g}")
        axes.legend(loc="lower right")
        figure.savefig(file, format="svg", metadata={"Date": None})
