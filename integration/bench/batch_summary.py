"""Summaries of the batch benchmark's runs."""

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
    """Return medians per query (s), ratios (other / ours) and the durations of decisions (ms)."""
    as_shipped = _medians(shipped)
    shown: dict[str, dict[str, object]] = {}
    by_shipped: list[float] = []
    by_best: list[float] = []
    for query, seconds in _medians(elastic).items():
        fastest, count = _best([run for run in fixed if run.query == query])
        by_shipped.append(as_shipped[query] / seconds)
        by_best.append(fastest / seconds)
        shown[query] = {
            "shipped_s": round(as_shipped[query], 3),
            "best_fixed_s": round(fastest, 3),
            "best_fixed_n": count,
            "elastic_s": round(seconds, 3),
            "max_over_mean_bytes": max(_evenness(elastic, query, decided), default=None),
        }
    # The decisions during the warm-up count as well: users wait for them too.
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


def first_executions(shipped: Sequence[Run], elastic: Sequence[Run]) -> dict[str, object]:
    """Return per query the medians (s) of first executions of a plan, and their ratios."""
    before, ours = _medians(shipped), _medians(elastic)
    ratios = {query: before[query] / seconds for query, seconds in ours.items()}
    return {
        "first_queries": {
            query: {"shipped_s": round(before[query], 3), "elastic_s": round(seconds, 3)}
            for query, seconds in ours.items()
        },
        "first_geomean_vs_shipped": round(statistics.geometric_mean(ratios.values()), 3),
        "first_worst_vs_shipped": round(min(ratios.values()), 3),
    }


def machine(
    before: Sequence[Mapping[str, int]], after: Sequence[Mapping[str, int]]
) -> dict[str, dict[str, float]]:
    """Return the machine cost of the measured runs: less time must not mean a higher cost.

    The order is shipped, fixed, elastic; the one with fixed counts ran the candidates for the best in turn.
    """
    found = {}
    for name, first, last in zip(("shipped", "fixed", "elastic"), before, after, strict=True):
        spent = {what: last[what] - first[what] for what in first}
        found[name] = {
            "cpu_s": round(spent.pop("cpu_ns") / 1e9, 1),
            "slots_s": round(spent.pop("slots_ms") / 1e3, 1),
            **spent,
        }
    return found


def _medians(runs: Sequence[Run]) -> dict[str, float]:
    queries = dict.fromkeys(run.query for run in runs)
    return {query: statistics.median(r.seconds for r in runs if r.query == query) for query in queries}


def _best(runs: Sequence[Run]) -> tuple[float, int | None]:
    """Return the time (s) with the best count, and that count.

    One half of the runs selects the best count and the other half measures it, and vice versa: the minimum of
    several medians would be too low because of noise. A single run of a count serves as both halves.
    """
    by_count: defaultdict[int | None, list[float]] = defaultdict(list)
    for run in runs:
        by_count[run.partitions].append(run.seconds)
    halves = [
        {count: statistics.median(seconds[half::2] or seconds) for count, seconds in by_count.items()}
        for half in (0, 1)
    ]
    chosen = [min(half, key=lambda count: half[count]) for half in halves]
    whole = {count: statistics.median(seconds) for count, seconds in by_count.items()}
    taken = statistics.mean((halves[1][chosen[0]], halves[0][chosen[1]]))
    return taken, min(whole, key=lambda count: whole[count])


def _noise(runs: Sequence[Run]) -> dict[str, float] | None:
    """Return the ratio of the medians of each query's two halves of runs; None with a single run."""
    ratios = []
    for query in dict.fromkeys(run.query for run in runs):
        seconds = [run.seconds for run in runs if run.query == query]
        if len(seconds) == 1:
            return None
        one, other = statistics.median(seconds[::2]), statistics.median(seconds[1::2])
        ratios.append(max(one, other) / min(one, other))
    return {"geomean": round(statistics.geometric_mean(ratios), 3), "worst": round(max(ratios), 3)}


def _evenness(runs: Sequence[Run], query: str, decided: Sequence[Mapping[str, Any]]) -> Iterator[float]:
    """Yield the bytes of the largest task relative to the mean for each stage of a query."""
    times = [(run.began, run.ended) for run in runs if run.query == query]
    for stage in decided:
        numbers = stage["answer"]["record"]["numbers"]
        if "ratio" in numbers and any(began <= stage["at"] <= ended for began, ended in times):
            yield numbers["ratio"]
