"""A picture of the Nexmark benchmark's result: how late events are read, and by how many executors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

_WIDTH_IN, _ROW_IN = 8, 0.5
_NAMES = {
    "plain": "Spark with dynamic allocation",
    "reactive": "spark-elastic, reactive",
    "autoscale": "spark-elastic, autoscale",
    "flink": "Flink, reactive",
}


def draw(result: Mapping[str, Any], file: Path) -> None:
    """Write `result`, as bench-nexmark prints it, as an SVG."""
    queries = result["queries"]
    variants = list(dict.fromkeys(name for query in queries.values() for name in query["variants"]))
    height = 0.8 / len(variants)
    # The same figures give the same file; text stays text.
    with mpl.rc_context({"svg.hashsalt": "bench", "svg.fonttype": "none"}):
        figure = Figure(figsize=(_WIDTH_IN, _ROW_IN * len(queries) + 1.2), layout="constrained")
        late, hours = figure.subplots(1, 2, sharey=True)
        for number, name in enumerate(variants):
            there = {place: query["variants"][name] for place, query in enumerate(queries.values())}
            places = [place + height * (number - (len(variants) - 1) / 2) for place in there]
            seconds = [one["late_ms"]["p99"] / 1_000 for one in there.values()]
            late.barh(places, seconds, height=0.9 * height, label=_NAMES[name])
            means = [one["executors"]["mean"] for one in there.values()]
            hours.barh(places, means, height=0.9 * height)
        late.set_yticks(range(len(queries)), labels=list(queries))
        late.invert_yaxis()
        late.set_xlabel("99 % of events read within (s)")
        hours.set_xlabel("executors, on average")
        figure.legend(loc="outside upper center", ncols=len(variants), fontsize="small")
        figure.savefig(file, format="svg", metadata={"Date": None})
