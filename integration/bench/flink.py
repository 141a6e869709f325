"""Compare rescales of Spark with the plugin with those of Apache Flink in reactive mode, in one run.

usage: python -m integration.bench.flink [--quick] [--sizes MB,...] [--rounds N] [--only SYSTEM] ...
A Markdown table and one JSON object, which is the last line, are printed. A whole run also writes the object
to results/VERSION/flink.json, size by size.

For each size of the state, each system runs it on two workers with one slot. A third joins, is stopped in the
system's orderly way, joins again and is killed with SIGKILL, in each round. A gap is the longest time without
an output that ends between the start of the worker's process, or the signal, and the time at which all has
settled. For Spark that is the time between the ends of two micro-batches, so the trigger interval is part of
it. In Flink rows arrive at the sink one by one; the time counts in which a range of keys has no output, since
a micro-batch has those of all ranges. After a restart Flink's sink first gets rows again which it had since
the last checkpoint: `new_gap_ms` ends with a row that it never had.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import attrs

from integration.bench.application import TRIGGER_MS
from integration.bench.figures import p50_max
from integration.bench.flink_sides import ROWS_PER_S, Change, FlinkSide, Side, SparkSide, run
from integration.bench.results import keep
from integration.bench.rounds import WARM_UP_BATCHES
from integration.flink.jars import CLUSTER
from spark_elastic.installation import installed_pyspark

_SYSTEMS = ("spark", "flink")
_CASES = ("steady", "join", "stop", "kill")
_GAPS = ("gap_ms", "new_gap_ms")
_SIZES_MB = (50, 1_200, 5_000)
_QUICK_SIZES_MB = (50, 200)
_ROUNDS, _QUICK_ROUNDS = 5, 1
_QUICK_WARM_UP = 20
# Logs, those of executors too; journals, event logs, micro-batches and Flink's outputs.
_TELLING = ("*/*.log", "spark/worker-*/*/*/stderr", "*.journal/*", "*.events/*", "*.progress", "outputs/*")
# A key has about 1 KB of text, and its share of the files.
_BYTES_PER_KEY = 1_200


def main() -> int:
    """Run both systems with each size, write and print the result."""
    arguments = _arguments()
    # As with Ctrl-C, the started processes must end too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    result: dict[str, Any] = {
        "spark": getattr(installed_pyspark(), "version", None),
        "flink": CLUSTER,
        "rows_per_s": ROWS_PER_S,
        "trigger_ms": TRIGGER_MS,
        "checkpoint_ms": arguments.checkpoint_ms,
        "sizes": {},
    }
    for size in arguments.sizes:
        measured = {name: _measure(name, size, arguments) for name in arguments.only or _SYSTEMS}
        result["sizes"][str(size)] = measured | ratios(measured)
        if not arguments.only:
            keep("flink", result)
    print(table(result["sizes"]))
    print(json.dumps(result))
    return 0


def _measure(name: str, size_mb: int, arguments: argparse.Namespace) -> dict[str, Any]:
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as folder,
        _side(name, Path(folder), size_mb, arguments) as side,
    ):
        try:
            summary = summarized(side, run(side, arguments.rounds))
        finally:
            if arguments.keep:
                _keep(Path(folder), arguments.keep / f"{name}-{size_mb}")
    print(
        f"{time.strftime('%H:%M:%S')} {name} {size_mb} MB {json.dumps(summary)}", file=sys.stderr, flush=True
    )
    return summary


def _keep(folder: Path, to: Path) -> None:
    """Copy what tells how a run went, not its state."""
    for file in (found for pattern in _TELLING for found in folder.glob(pattern)):
        copy = to / file.relative_to(folder)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)


def _side(
    name: str, folder: Path, size_mb: int, arguments: argparse.Namespace
) -> AbstractContextManager[Side]:
    keys = size_mb * 1_000_000 // _BYTES_PER_KEY
    warm_up = _QUICK_WARM_UP if arguments.quick else WARM_UP_BATCHES
    if name == "spark":
        return SparkSide(folder, keys, warm_up)
    interval = {"execution.checkpointing.interval": f"{arguments.checkpoint_ms} ms"}
    return FlinkSide(folder, keys, warm_up, interval | dict(arguments.flink_conf))


# ---- Figures


def summarized(side: Side, changes: Sequence[Change]) -> dict[str, Any]:
    """Return the figures of a system: of each case, gaps and times until a change was in force (ms).

    `changes` has each of them, with what the side tells of its gaps.
    """
    summary: dict[str, Any] = {"state_mb": side.state_mb()}
    gaps_of = [side.gaps(change.began, change.ended) for change in changes]
    for case in _CASES:
        of_case = [change for change in changes if change.case == case]
        gaps = [gap for change, gap in zip(changes, gaps_of, strict=True) if change.case == case]
        summary[case] = {"rounds": len(of_case)} | {
            kind: p50_max(gap[kind] for gap in gaps) for kind in _GAPS
        }
        if case != "steady":
            followed = [one.in_force - one.began for one in of_case if one.in_force is not None]
            summary[case] |= {
                "in_force_ms": p50_max(followed),
                "not_in_force": len(of_case) - len(followed),
            }
    summary["changes"] = [attrs.asdict(one) | dict(gap) for one, gap in zip(changes, gaps_of, strict=True)]
    return summary


def ratios(measured: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return Spark's median gaps divided by Flink's, of each case; nothing if one of them is missing."""
    if not all(name in measured for name in _SYSTEMS):
        return {}
    spark, flink = (measured[name] for name in _SYSTEMS)
    return {
        "spark_to_flink": {
            case: {kind: _ratio(spark[case][kind], flink[case][kind]) for kind in _GAPS} for case in _CASES
        }
    }


def _ratio(spark: Mapping[str, float], flink: Mapping[str, float]) -> float | None:
    return round(spark["p50"] / flink["p50"], 2) if flink["p50"] else None


def table(sizes: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the gaps as a table in Markdown."""
    lines = [
        "| median (maximum), ms | Spark with the plugin | Flink | Flink, until a new row | Spark / Flink |",
        "|---|---|---|---|---|",
    ]
    for size, measured in sizes.items():
        for case in _CASES:
            spark, flink = (measured.get(name, {}).get(case, {}) for name in _SYSTEMS)
            ratio = measured.get("spark_to_flink", {}).get(case, {})
            cells = [_cell(spark.get("gap_ms")), *(_cell(flink.get(kind)) for kind in _GAPS)]
            cells.append(" / ".join(str(ratio[kind]) for kind in _GAPS) if ratio else "–")
            lines.append(f"| {int(size):,} MB, {case} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(times: Mapping[str, float] | None) -> str:
    return f"{times['p50']:,.0f} ({times['max']:,.0f})" if times else "–"


# ---- Options


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m integration.bench.flink",
        description="Compare rescales of Spark with the plugin with those of Flink in reactive mode.",
    )
    parser.add_argument("--quick", action="store_true", help="small states, one round, a short warm-up")
    parser.add_argument("--sizes", type=_sizes, help="sizes of the state in MB (default 50,1200,5000)")
    parser.add_argument("--rounds", type=int, help=f"rounds of each size (default {_ROUNDS})")
    parser.add_argument("--checkpoint-ms", type=int, default=TRIGGER_MS, help="Flink's checkpoint interval")
    parser.add_argument(
        "--flink-conf", type=_setting, action="append", default=[], metavar="KEY=VALUE", help="of Flink"
    )
    parser.add_argument(
        "--only", action="append", choices=_SYSTEMS, help="one system; the result is printed, not written"
    )
    parser.add_argument("--keep", type=Path, help="folder for logs, journals and outputs; they are lost else")
    arguments = parser.parse_args()
    arguments.sizes = arguments.sizes or (_QUICK_SIZES_MB if arguments.quick else _SIZES_MB)
    arguments.rounds = arguments.rounds or (_QUICK_ROUNDS if arguments.quick else _ROUNDS)
    return arguments


def _sizes(text: str) -> list[int]:
    return [int(size) for size in text.split(",")]


def _setting(text: str) -> tuple[str, str]:
    key, _, value = text.partition("=")
    return key, value


if __name__ == "__main__":
    sys.exit(main())
