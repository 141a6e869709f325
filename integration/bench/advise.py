"""Compare what `spark-elastic advise` says with what comes of it: plain Spark first, then the plugin.

usage: python -m integration.bench.advise [--quick] [KIND...]
The last line printed is one JSON object. A whole run also writes it to results/VERSION/advise.json.

Each kind of query runs on a Standalone cluster of three executors with one slot each: first with plain Spark
and Spark's own 200 partitions, and then, in a new application with a checkpoint of its own, with the plugin
in reactive mode. `advise` is given the event log of the first run; the event log of the second one, read by
the same code, shows what came of it. Compared are the median duration of micro-batches, without the first
ones, and executor-hours for each hour, which differ if executors came late. The error is a share of the
measured value; the goal for its mean is 15 %.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from integration.bench.application import Application, Variant
from integration.bench.results import keep
from spark_elastic_lab.demo.cluster import Cluster
from spark_elastic_lab.demo.processes import ProcessFailure

_KINDS = ("stateless", "stateful_small", "stateful_large")
_GOAL_PERCENT = 15
_WORKERS = 3
_TIMEOUT_S = 900.0
_KEYS = 20_000


def main() -> int:
    """Run all kinds, compare them, write and print the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("kinds", nargs="*", choices=[[], *_KINDS], help="only these kinds of query")
    parser.add_argument("--quick", action="store_true", help="fewer micro-batches")
    arguments = parser.parse_args()
    # As with Ctrl-C, the started processes must end too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    batches, seconds = (14, 90) if arguments.quick else (40, 240)
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        found = {kind: _kind(Path(name), kind, batches, seconds) for kind in arguments.kinds or _KINDS}
    result = summary(found)
    if not arguments.quick and not arguments.kinds:
        keep("advise", result)
    print(json.dumps(result))
    return 0


def summary(found: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the mean errors (%) and the comparison by kind of query."""
    means = {
        what: sum(one["error_percent"][what] for one in found.values()) / len(found)
        for what in ("batch", "executor_hours")
    }
    return {"mean_error_percent": means, "goal_percent": _GOAL_PERCENT, "kinds": dict(found)}


def compared(plain: Mapping[str, Any], plugin: Mapping[str, Any]) -> dict[str, Any]:
    """Compare the advice on a run of plain Spark with the one on the run with the plugin that followed."""
    (before,), (after,) = plain["queries"], plugin["queries"]
    outcomes = {one["policy"]: one for one in plain["whatIf"]["outcomes"]}
    (predicted_ms,) = outcomes["reactive"]["medianBatchMs"].values()
    predicted = outcomes["reactive"]["executorHours"] / plain["hours"]
    measured = plugin["executorHours"] / plugin["hours"]
    return {
        "plain_batch_ms": before["medianMs"],
        "predicted_batch_ms": predicted_ms,
        "measured_batch_ms": after["medianMs"],
        "predicted_executors": predicted,
        "measured_executors": measured,
        "plain_partitions": before["partitions"],
        "plugin_partitions": after["partitions"],
        "batches": [before["batches"], after["batches"]],
        "error_percent": {
            "batch": _error(predicted_ms, after["medianMs"]),
            "executor_hours": _error(predicted, measured),
        },
    }


def _error(predicted: float, measured: float) -> float:
    return 100 * abs(predicted - measured) / measured


def _kind(folder: Path, kind: str, batches: int, seconds: int) -> dict[str, Any]:
    advice = {}
    for name, plugin in (("plain", False), ("plugin", True)):
        # A cluster each: no executor is warm from the other run.
        place = folder / f"{kind}-{name}"
        with Cluster(place) as cluster:
            for _ in range(_WORKERS):
                cluster.add_worker()
            variant = Variant(name=name, kind=kind, plugin=plugin, conf={}, state_keys=_KEYS)
            with Application(cluster, place, variant) as application:
                _wait(application, batches, seconds)
        advice[name] = _advice(place / f"{name}.events")
    return compared(advice["plain"], advice["plugin"])


def _wait(application: Application, batches: int, seconds: int) -> None:
    """Return once there are enough micro-batches, and the first one began long enough ago.

    Short micro-batches need the same time until the code is compiled.
    """

    def enough() -> bool | None:
        found = application.batches()
        return (len(found) >= batches and found[-1].started - found[0].started >= seconds * 1_000) or None

    if application.poll(enough, _TIMEOUT_S) is None:
        raise ProcessFailure(f"no {batches} micro-batches in {_TIMEOUT_S:g} s")


def _advice(logs: Path) -> dict[str, Any]:
    command: Sequence[str] = [sys.executable, "-m", "spark_elastic_tools.cli", "advise", "--json", str(logs)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found: dict[str, Any] = json.loads(printed)[0]
    return found


if __name__ == "__main__":
    sys.exit(main())
