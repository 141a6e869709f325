"""Measure TPC-H: Spark as shipped, with the best fixed number of partitions per query, with the plugin.

usage: python -m integration.bench.batch [--quick] [--sf SCALE] [--turns N] [--rounds N]

The applications without and with the plugin take turns. The last line printed is one JSON object, which a
whole run also writes to results/batch.json, with a picture beside it.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from integration.batch.tpch import generate, queries
from integration.bench.batch_picture import draw
from integration.bench.figures import p50_p99
from integration.streaming.launch import WITH_PLUGIN
from spark_elastic.demo.cluster import isolated_environment, spark_home
from spark_elastic.demo.processes import LoggedProcess, ProcessFailure
from spark_elastic.jar import jar_path

FIXED = (4, 8, 16, 32, 64, 200)
_RESULT = Path(__file__).parent / "results" / "batch.json"
_APPLICATION = Path(__file__).with_name("batch_app.py")
_NOTHING_SET = "-"
_TIMEOUT_S = 7200.0

Run = Mapping[str, Any]
"""One run of a query: its name, the count that was set, when it began and ended (epoch ms)."""


def main() -> int:
    """Run all queries, write and print the result."""
    arguments = _arguments()
    plain: list[Run] = []
    elastic: list[Run] = []
    decided: list[Mapping[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        generate(folder / "tables", arguments.sf)
        texts = queries()
        if arguments.quick:
            texts = {query: texts[query] for query in ("q1", "q3", "q13", "q18")}
        (folder / "queries.json").write_text(json.dumps(texts), encoding="utf-8")
        for turn in range(arguments.turns):
            fixed = [str(count) for count in FIXED]
            plain += _runs(folder / f"plain-{turn}", folder, arguments.rounds, [_NOTHING_SET, *fixed], {})
            journal = folder / f"journal-{turn}"
            conf = {**WITH_PLUGIN, "spark.elastic.journal.dir": str(journal)}
            elastic += _runs(folder / f"elastic-{turn}", folder, arguments.rounds, [_NOTHING_SET], conf)
            decided += _decided(journal)
            print(f"{time.strftime('%H:%M:%S')} turn {turn + 1} done", file=sys.stderr, flush=True)
    result = {"sf": arguments.sf, **summary(plain, elastic, decided)}
    if not arguments.quick:
        _RESULT.parent.mkdir(exist_ok=True)
        _RESULT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        draw(result, _RESULT.with_suffix(".svg"))
    print(json.dumps(result))
    return 0


def summary(
    plain: Sequence[Run], elastic: Sequence[Run], decided: Sequence[Mapping[str, Any]]
) -> dict[str, object]:
    """Return medians per query in seconds, ratios (other / ours) and what the decisions took in ms."""
    ours = {query: median for (query, _), median in _medians(elastic).items()}
    theirs = _medians(plain)
    shown: dict[str, dict[str, object]] = {}
    shipped: list[float] = []
    best: list[float] = []
    for query, seconds in ours.items():
        as_shipped = theirs[query, _NOTHING_SET]
        fastest, count = min((theirs[query, str(count)], count) for count in FIXED)
        shipped.append(as_shipped / seconds)
        best.append(fastest / seconds)
        shown[query] = {
            "shipped_s": round(as_shipped, 3),
            "best_fixed_s": round(fastest, 3),
            "best_fixed_n": count,
            "elastic_s": round(seconds, 3),
            "max_over_mean_bytes": max(_evenness(elastic, query, decided), default=None),
        }
    return {
        "queries": shown,
        "geomean_vs_shipped": round(statistics.geometric_mean(shipped), 3),
        "worst_vs_shipped": round(min(shipped), 3),
        "geomean_vs_best_fixed": round(statistics.geometric_mean(best), 3),
        "decision_ms": p50_p99(stage["last_us"] / 1000 for stage in decided if stage["last_us"]),
        "unanswered": max((stage["unanswered"] for stage in decided), default=0),
    }


def _medians(runs: Sequence[Run]) -> dict[tuple[str, str], float]:
    seconds: defaultdict[tuple[str, str], list[float]] = defaultdict(list)
    for run in runs:
        seconds[run["query"], run["count"]].append((run["ended"] - run["began"]) / 1000)
    return {key: statistics.median(values) for key, values in seconds.items()}


def _evenness(runs: Sequence[Run], query: str, decided: Sequence[Mapping[str, Any]]) -> Iterator[float]:
    """Return the largest task's bytes by the mean for each stage of a query."""
    times = [(run["began"], run["ended"]) for run in runs if run["query"] == query]
    for stage in decided:
        numbers = stage["answer"]["record"]["numbers"]
        if "ratio" in numbers and any(began <= stage["at"] <= ended for began, ended in times):
            yield numbers["ratio"]


def _decided(journal: Path) -> list[Mapping[str, Any]]:
    lines = [line for file in sorted(journal.glob("*.jsonl*")) for line in file.read_text().splitlines()]
    return [json.loads(line)["stage"] for line in lines if line.startswith('{"stage":')]


def _runs(folder: Path, data: Path, rounds: int, counts: Sequence[str], conf: Mapping[str, str]) -> list[Run]:
    """Run an application of its own to its end. Raises ProcessFailure."""
    folder.mkdir()
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "4g",
        "spark.driver.extraClassPath": str(jar_path()),
        **conf,
    }
    command = [str(spark_home() / "bin" / "spark-submit"), "--master", "local[2]"]
    for key, value in settings.items():
        command += ["--conf", f"{key}={value}"]
    out = folder / "runs.jsonl"
    command += [
        *(str(_APPLICATION), str(data / "tables"), str(data / "queries.json"), str(out), str(rounds)),
        *counts,
    ]
    env = isolated_environment(folder / "conf", folder / "local")
    process = LoggedProcess("batch", command, env=env, log=folder / "driver.log", cwd=folder)
    try:
        code = process.wait(_TIMEOUT_S)
    finally:
        process.stop()
    if code != 0:
        raise ProcessFailure(f"the application ended with {code}\n{process.log_tail()}")
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m integration.bench.batch")
    parser.add_argument("--quick", action="store_true", help="four queries, one round")
    parser.add_argument("--sf", type=float, help="scale, 1 = 1 GB (default 1; quick: 0.05)")
    parser.add_argument("--turns", type=int, help="applications of each kind (default 2; quick: 1)")
    parser.add_argument(
        "--rounds", type=int, help="measured runs of each query per application (3; quick: 1)"
    )
    arguments = parser.parse_args()
    arguments.sf = arguments.sf or (0.05 if arguments.quick else 1.0)
    arguments.turns = arguments.turns or (1 if arguments.quick else 2)
    arguments.rounds = arguments.rounds or (1 if arguments.quick else 3)
    return arguments


if __name__ == "__main__":
    sys.exit(main())
