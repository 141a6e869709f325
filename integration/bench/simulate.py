"""Compare policies on simulated days: their cost, and how long rows wait under each.

usage: python -m integration.bench.simulate [--quick | --held-back]
The last line printed is one JSON object. A whole run also writes it to results/VERSION/simulate.json, a run
of the held-back loads to results/VERSION/simulate-held-back.json.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping
from statistics import fmean, geometric_mean
from typing import Any

from attrs import evolve

from integration.bench.results import keep
from integration.bench.simulate_loads import HELD_BACK, LOADS, BenchLoad
from spark_elastic_lab.simulator.cluster import ClusterSpec
from spark_elastic_lab.simulator.demand import demand
from spark_elastic_lab.simulator.query import QuerySpec
from spark_elastic_lab.simulator.run_metrics import RunMetrics
from spark_elastic_lab.simulator.scenario import Scenario
from spark_elastic_lab.simulator.simulation import simulate
from spark_elastic_lab.simulator.source import SourceSpec
from spark_elastic_lab.simulator.table import as_data, table

_OURS, _ORACLE, _FLINK, _SPARK = "autoscale", "oracle", "flink", "dynamic-allocation"
_POLICIES = (_OURS, _FLINK, _SPARK, "streaming-allocation", "hpa", "keda", "ds2", "fixed", _ORACLE)
_MAX_LAG_S = 30.0
_HOURS_BY_ORACLE = 1.15
_MOST_OUTSIDE = 1.0
_QUICK = ("cosine", "step")
_BACKLOG = {"backlog": 30 * 60 * 60_000}
_MOST_ROWS = 5_000_000


def main() -> int:
    """Run every load with every policy, write and print the result."""
    given = _arguments()
    quick, loads = given.quick, HELD_BACK if given.held_back else LOADS
    found: dict[str, Mapping[str, RunMetrics]] = {}
    details: dict[str, Any] = {}
    for name in _QUICK if quick else loads:
        results = list(simulate(_scenario(name, loads[name], quick=quick), _POLICIES))
        found[name] = {result.policy: result.metrics for result in results}
        details[name] = {"tuned": loads[name].tuned, **as_data(results)}
        print(f"{time.strftime('%H:%M:%S')} {name}\n{table(results)}\n", file=sys.stderr, flush=True)
    policies = overall(found)
    print(f"all loads\n{_table(policies)}", file=sys.stderr, flush=True)
    result = {**summary(found), "policies": policies, "loads": details}
    if not quick:
        keep("simulate-held-back" if given.held_back else "simulate", result)
    print(json.dumps(result))
    return 0


def summary(found: Mapping[str, Mapping[str, RunMetrics]]) -> dict[str, Any]:
    """Compare our policy with the others over all loads, and return which goals are met.

    A rival is beaten on a load if it uses more executor-hours or leaves rows waiting for longer.
    """
    ours = {load: policies[_OURS] for load, policies in found.items()}
    by_oracle = [mine.executor_hours / found[load][_ORACLE].executor_hours for load, mine in ours.items()]
    beaten_by = {
        load: [rival for rival in (_FLINK, _SPARK) if _beats(policies[rival], policies[_OURS])]
        for load, policies in found.items()
    }
    rescales = {
        policy: sum(metrics[policy].rescales for metrics in found.values()) for policy in (_OURS, _FLINK)
    }
    worst = max(mine.outside_percent for mine in ours.values())
    swings = sum(mine.oscillations for mine in ours.values())
    return {
        "executor_hours_by_oracle": round(geometric_mean(by_oracle), 3),
        "outside_percent": {load: round(mine.outside_percent, 2) for load, mine in ours.items()},
        "rescales": rescales,
        "oscillations": swings,
        "beaten_by": {load: rivals for load, rivals in beaten_by.items() if rivals},
        "goals_met": {
            "executor_hours_by_oracle": geometric_mean(by_oracle) <= _HOURS_BY_ORACLE,
            "outside_percent": worst <= _MOST_OUTSIDE,
            "rescales": 2 * rescales[_OURS] <= rescales[_FLINK],
            "oscillations": swings == 0,
            "beaten_by": not any(beaten_by.values()),
        },
    }


def overall(found: Mapping[str, Mapping[str, RunMetrics]]) -> dict[str, dict[str, float]]:
    """Combine the results of each policy over all loads.

    Executor-hours are the geometric mean of the ratios to the oracle's. Time outside the objective is the
    mean of the loads (percent) and the maximum of one load; `drain_s` is its longest stretch. The rest is
    summed up.
    """
    return {
        policy: {
            "executor_hours_by_oracle": round(
                geometric_mean(
                    metrics[policy].executor_hours / metrics[_ORACLE].executor_hours
                    for metrics in found.values()
                ),
                2,
            ),
            "outside_percent": round(fmean(metrics[policy].outside_percent for metrics in found.values()), 2),
            "most_outside_percent": round(
                max(metrics[policy].outside_percent for metrics in found.values()), 1
            ),
            "drain_s": round(max(metrics[policy].drain_s for metrics in found.values())),
            "moves": sum(metrics[policy].rescales for metrics in found.values()),
            "steps": sum(metrics[policy].steps for metrics in found.values()),
            "oscillations": sum(metrics[policy].oscillations for metrics in found.values()),
        }
        for policy in next(iter(found.values()))
    }


def _table(policies: Mapping[str, Mapping[str, float]]) -> str:
    """Format one line per policy."""
    rows = [["policy", *next(iter(policies.values()))]]
    rows += [[policy, *map(str, of_policy.values())] for policy, of_policy in policies.items()]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]) for row in rows
    )


def _beats(rival: RunMetrics, mine: RunMetrics) -> bool:
    """Return whether a rival uses fewer executor-hours without leaving rows waiting for longer."""
    return rival.executor_hours < mine.executor_hours and rival.outside_percent <= mine.outside_percent


def _scenario(name: str, load: BenchLoad, *, quick: bool) -> Scenario:
    """Return two queries, one with a fifth of the load, on a cluster that starts with enough executors.

    Both limit the rows of a micro-batch, as queries on Kafka do to survive an outage.
    """
    backlog = _BACKLOG.get(name, 0)
    counts = SourceSpec(partitions=64, backlog=backlog, most_rows=_MOST_ROWS)
    enrich = SourceSpec(backlog=backlog // 5, most_rows=_MOST_ROWS // 5)
    scenario = Scenario(
        queries=(
            QuerySpec(name="counts", load=load.text, source=counts),
            QuerySpec(name="enrich", load=_scaled(load.text, 0.2), source=enrich, stateful=False),
        ),
        cluster=ClusterSpec(quota=32),
        settings={"spark.elastic.schedulerMode": "adaptive"},
        hours=min(load.hours, 0.5) if quick else load.hours,
        max_lag_s=_MAX_LAG_S,
    )
    needed = demand(scenario, scenario.loads()).executors[0]
    return evolve(scenario, cluster=evolve(scenario.cluster, initial=needed))


def _scaled(text: str, scale: float) -> str:
    return f"{text},scale={scale:g}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m integration.bench.simulate", description="Compare policies on simulated days."
    )
    only = parser.add_mutually_exclusive_group()
    only.add_argument("--quick", action="store_true", help="two loads for half an hour; writes nothing")
    only.add_argument("--held-back", action="store_true", help="the loads that nothing is tuned on")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
