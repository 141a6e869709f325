"""Measure what the plugin adds to planning: a query with many shuffles, and a scan of very many files.

usage: python -m integration.bench.planning [--quick] [--rounds N]

One JVM starts applications with and without the plugin in turn. Each plans both queries once to warm up, then
measures them several times. The last line printed is one JSON object, with medians in ms and the ratio (with
/ without).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial, reduce
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from integration.batch.plans import PLAIN
from integration.streaming.driver import driver
from integration.streaming.launch import WITH_PLUGIN

_REPEATS = 5
# File systems limit the hard links to one file; ext4 allows 65,000.
_LINKS = 10_000


def main() -> int:
    """Run all rounds and print the result."""
    arguments = _arguments()
    times: dict[str, dict[bool, list[float]]] = {}
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        with driver(folder / "driver") as jvm:
            with jvm.session({}) as spark:
                _write_files(spark, folder / "files", arguments.files)
            for number in range(arguments.rounds):
                for plugin in (False, True) if number % 2 == 0 else (True, False):
                    with jvm.session({**PLAIN, **(WITH_PLUGIN if plugin else {})}) as spark:
                        wide = _many_shuffles(spark, arguments.shuffles)
                        files = spark.read.schema("id long").parquet(str(folder / "files"))
                        plans = {"shuffles": partial(_plan, wide), "files": partial(_scan, files)}
                        for what, plan in plans.items():
                            times.setdefault(what, {False: [], True: []})[plugin] += _times(plan)
                print(f"{time.strftime('%H:%M:%S')} round {number + 1}", file=sys.stderr, flush=True)
    result: dict[str, object] = {"shuffles": arguments.shuffles, "files": arguments.files}
    for what, measured in times.items():
        plain, ours = (statistics.median(measured[key]) for key in (False, True))
        result[what] = {
            "plain_ms": round(plain),
            "plugin_ms": round(ours),
            "ratio": round(ours / plain, 3),
        }
    print(json.dumps({"planning": result}))
    return 0


def _times(plan: Callable[[], object]) -> list[float]:
    """Return the duration (ms) of each planning except the first."""
    taken = []
    for _ in range(_REPEATS + 1):
        began = time.perf_counter()
        plan()
        taken.append((time.perf_counter() - began) * 1_000)
    return taken[1:]


def _many_shuffles(spark: SparkSession, shuffles: int) -> DataFrame:
    """Build a union of aggregations, one per shuffle, each over different rows."""
    parts = [
        spark.range(number, 1_000 + number).groupBy((F.col("id") % 10).alias("k")).agg(F.sum("id"))
        for number in range(shuffles)
    ]
    return reduce(DataFrame.union, parts)


def _plan(result: DataFrame) -> None:
    """Plan an analyzed query again, down to the initial plan of adaptive execution."""
    result.select("*")._jdf.queryExecution().executedPlan()


def _scan(files: DataFrame) -> None:
    """Plan a scan and split its files; they are listed only once, when the table is first read."""
    files.select("*")._jdf.queryExecution().toRdd().getNumPartitions()


def _write_files(spark: SparkSession, folder: Path, many: int) -> None:
    spark.range(10).coalesce(1).write.parquet(str(folder))
    (first,) = folder.glob("*.parquet")
    for number in range(many - 1):
        other = folder / f"{number:06d}.parquet"
        if number % _LINKS == 0:
            first = Path(shutil.copy(first, other))
        else:
            os.link(first, other)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m integration.bench.planning")
    parser.add_argument("--quick", action="store_true", help="fewer shuffles and files, one round")
    parser.add_argument("--rounds", type=int, help="applications of each kind (4; quick: 1)")
    arguments = parser.parse_args()
    arguments.rounds = arguments.rounds or (1 if arguments.quick else 4)
    arguments.shuffles, arguments.files = (20, 2_000) if arguments.quick else (200, 200_000)
    return arguments


if __name__ == "__main__":
    sys.exit(main())
