"""Measure TPC-H or TPC-DS: Spark as shipped, with the best fixed partitions per query, with the plugin.

usage: python -m integration.bench.batch [--suite tpcds] [--quick] [--queries q1,q3] [--sf SCALE] ...

Three applications run at the same time and take turns with each query, so that other activity on the machine
affects all alike, and none profits from code generated just before. Before the measurement, each runs every
query six times over the tables in another folder: a JVM needs that long to become fast. In that time, the one
with fixed counts tries each count once; then it measures the two fastest counts of each query in turn. The
plugin is measured with plans that it has never seen, in each round over one more folder, and with plans that
it knows. The last line printed is one JSON object. A whole run also writes it to results/VERSION/batch.json
(batch-skewed.json, batch-tpcds.json), with a picture next to it.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from integration.batch import tpcds, tpch
from integration.batch.plans import decisions
from integration.batch.skewed import skew
from integration.bench.batch_driver import BatchDriver, Run, batch_driver
from integration.bench.batch_picture import draw
from integration.bench.batch_summary import first_executions, machine, summary
from integration.bench.results import keep
from integration.streaming.launch import WITH_PLUGIN

# The first one runs on a cold JVM, so it is one that is rarely the best.
FIXED = (200, 4, 64, 8, 32, 16)
_CANDIDATES = 2

Counts = Mapping[str, int | None]
"""The number of initial shuffle partitions to set for each query, or None to leave it unset."""

_SUITES = {"tpch": tpch, "tpcds": tpcds}
_QUICK = {"tpch": ("q1", "q3", "q13", "q18"), "tpcds": ("q3", "q18", "q47", "q95")}
# All queries of TPC-DS take as long in a round as those of TPC-H in many.
_ROUNDS = {"tpch": 8, "tpcds": 2}


def main() -> int:
    """Run all queries, write and print the result."""
    arguments = _arguments()
    # As with Ctrl-C, the started processes must end too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    suite = _SUITES[arguments.suite]
    texts = suite.queries()
    names = arguments.queries or (_QUICK[arguments.suite] if arguments.quick else texts)
    if unknown := [name for name in names if name not in texts]:
        print(f"{', '.join(unknown)}: there are {', '.join(texts)}", file=sys.stderr)
        return 2
    texts = {name: texts[name] for name in names}
    with tempfile.TemporaryDirectory(prefix="bench-") as name, ExitStack() as stack:
        folder = Path(name)
        tables = arguments.tables or folder / "generated"
        if not arguments.tables:
            suite.generate(tables, arguments.sf)
        if arguments.skew:
            skew(tables, folder / "tables", arguments.skew)
        else:
            (folder / "tables").symlink_to(tables.resolve())
        # The same files under other names: other plans over the same bytes.
        others = [folder / f"tables{number}" for number in range(arguments.rounds + 1)]
        for other in others:
            other.mkdir()
            for table in (folder / "tables").glob("*.parquet"):
                (other / table.name).symlink_to(table.resolve())
        (folder / "queries.json").write_text(json.dumps(texts), encoding="utf-8")
        journal = folder / "journal"
        conf = {**WITH_PLUGIN, "spark.elastic.journal.dir": str(journal)}
        shipped = stack.enter_context(batch_driver(folder / "shipped", folder, {}))
        fixed = stack.enter_context(batch_driver(folder / "fixed", folder, {}))
        elastic = stack.enter_context(batch_driver(folder / "elastic", folder, conf))
        nothing_set: Counts = dict.fromkeys(texts)
        for driver in (shipped, fixed, elastic):
            driver.read(others[-1])
        for driver in (shipped, elastic):
            for _ in FIXED:
                _work(driver, nothing_set)
            _say("warm")
        tries = [_work(fixed, dict.fromkeys(texts, count)) for count in FIXED]
        _say("warm")
        chosen = candidates(tries)
        first: dict[BatchDriver, list[Run]] = {shipped: [], elastic: []}
        for number, other in enumerate(others[:-1]):
            for driver in first:
                driver.read(other)
            for place, query in enumerate(texts):
                for driver in _turned([*first], number + place):
                    first[driver].append(driver.run(query, None))
            _say(f"round {number + 1} of first executions done")
        for driver in (shipped, fixed, elastic):
            driver.read(folder / "tables")
            for _ in range(2):
                _work(driver, nothing_set)
        before = [driver.cost() for driver in (shipped, fixed, elastic)]
        runs: dict[BatchDriver, list[Run]] = {driver: [] for driver in (shipped, fixed, elastic)}
        for number in range(arguments.rounds):
            counts = {shipped: nothing_set, fixed: chosen[number % len(chosen)], elastic: nothing_set}
            for place, query in enumerate(texts):
                # Each driver comes first, second and last in turn.
                for driver in _turned([*runs], number + place):
                    runs[driver].append(driver.run(query, counts[driver][query]))
            _say(f"round {number + 1} done")
        after = [driver.cost() for driver in runs]
        for driver in runs:
            driver.end()
        decided = [entry.written for entry in decisions(journal)]
        scale = {"suite": arguments.suite, "sf": arguments.sf, "skew": arguments.skew}
        measured = summary(runs[shipped], runs[fixed], runs[elastic], decided)
        measured |= first_executions(first[shipped], first[elastic])
        result = {**scale, **measured, "machine": machine(before, after)}
    if not (arguments.quick or arguments.queries):
        name = "batch-tpcds" if suite is tpcds else "batch-skewed" if arguments.skew else "batch"
        draw(result, keep(name, result).with_suffix(".svg"))
    print(json.dumps(result))
    return 0


def _work(driver: BatchDriver, counts: Counts) -> list[Run]:
    """Run each query once, with its count."""
    return [driver.run(query, count) for query, count in counts.items()]


def _turned(drivers: list[BatchDriver], places: int) -> list[BatchDriver]:
    first = places % len(drivers)
    return drivers[first:] + drivers[:first]


def candidates(tries: Sequence[Sequence[Run]]) -> list[Counts]:
    """Return the fastest counts of each query, then the second fastest."""
    ranked = [sorted(runs, key=lambda run: run.seconds) for runs in zip(*tries, strict=True)]
    return [{runs[place].query: runs[place].partitions for runs in ranked} for place in range(_CANDIDATES)]


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def _names(text: str) -> list[str]:
    return text.split(",")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m integration.bench.batch")
    parser.add_argument("--suite", choices=_SUITES, default="tpch", help="the queries and their tables")
    parser.add_argument("--quick", action="store_true", help="four queries, small")
    parser.add_argument("--queries", type=_names, help="only these; the result is printed, not written")
    parser.add_argument("--sf", type=float, help="scale, 1 = 1 GB (default 1; quick: 0.05)")
    parser.add_argument("--tables", type=Path, help="a folder that has the tables at this scale already")
    parser.add_argument(
        "--skew", type=float, help="draw the order of each line by Zipf's law, with this exponent"
    )
    parser.add_argument("--rounds", type=int, help="measured runs of each query (8; tpcds, quick: 2)")
    arguments = parser.parse_args()
    if arguments.skew and arguments.suite != "tpch":
        parser.error("--skew: the order lines of TPC-H are skewed; leave it out, or --suite")
    arguments.sf = arguments.sf or (0.05 if arguments.quick else 1.0)
    arguments.rounds = arguments.rounds or (2 if arguments.quick else _ROUNDS[arguments.suite])
    return arguments


if __name__ == "__main__":
    sys.exit(main())
