"""What the runs of the bench of batch queries say together."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from integration.bench.batch_driver import Run
from integration.bench.figures import p50_p99


def summary(
    shipped: Sequence[Run], fixed: Sequence[Run], elastic: Sequence[Run], decided: Sequence[Mapping[str, Any]]
) -> dict[str, object]:
    """Return medians per query in seconds, ratios (other / ours) and what decisions took in ms."""
    as_shipped = _medians(shipped)
    counts: defaultdict[str, list[tuple[float, int | None]]] = defaultdict(list)
    for (query, count), seconds in _medians(fixed).items():
        counts[query].append((seconds, count))
    shown: dict[str, dict[str, object]] = {}
    by_shipped: list[float] = []
    by_best: list[float] = []
    for (query, _), seconds in _medians(elastic).items():
        fastest, count = min(counts[query])
        by_shipped.append(as_shipped[query, None] / seconds)
        by_best.append(fastest / seconds)
        shown[query] = {
            "shipped_s": round(as_shipped[query, None], 3),
            "best_fixed_s": round(fastest, 3),
            "best_fixed_n": count,
            "elastic_s": round(seconds, 3),
            "max_over_mean_bytes": max(_evenness(elastic, query, decided), default=None),
        }
    # The decisions are those of warming up too: a user has to wait for them as well.
    return {
        "queries": shown,
        "geomean_vs_shipped": round(statistics.geometric_mean(by_shipped), 3),
        "worst_vs_shipped": round(min(by_shipped), 3),
        "geomean_vs_best_fixed": round(statistics.geometric_mean(by_best), 3),
        "noise": _noise(shipped),
        "decisions": len(decided),
        "decision_ms": p50_p99(stage["last_us"] / 1000 for stage in decided if stage["last_us"]),
        "unanswered": max((stage["unanswered"] for stage in decided), default=0),
    }


def _medians(runs: Sequence[Run]) -> dict[tuple[str, int | None], float]:
    seconds: defaultdict[tuple[str, int | None], list[float]] = defaultdict(list)
    for run in runs:
        seconds[run.query, run.partitions].append(run.seconds)
    return {key: statistics.median(values) for key, values in seconds.items()}


def _noise(runs: Sequence[Run]) -> dict[str, float] | None:
    """Return how many times as long a query takes in one half of its runs as in the other; None with one."""
    ratios = []
    for query in dict.fromkeys(run.query for run in runs):
        seconds = [run.seconds for run in runs if run.query == query]
        if len(seconds) == 1:
            return None
        one, other = statistics.median(seconds[::2]), statistics.median(seconds[1::2])
        ratios.append(max(one, other) / min(one, other))
    return {"geomean": round(statistics.geometric_mean(ratios), 3), "worst": round(max(ratios), 3)}


def _evenness(runs: Sequence[Run], query: str, decided: Sequence[Mapping[str, Any]]) -> Iterator[float]:
    """Return the largest task's bytes by the mean for each stage of a query."""
    times = [(run.began, run.ended) for run in runs if run.query == query]
    for stage in decided:
        numbers = stage["answer"]["record"]["numbers"]
        if "ratio" in numbers and any(began <= stage["at"] <= ended for began, ended in times):
            yield numbers["ratio"]
