"""Compare the simulator with a cluster: two loads under the policy `autoscale`, on both.

usage: python -m integration.bench.autoscale [--quick] [--again]
The last line printed is one JSON object. A whole run also writes it to results/VERSION/autoscale.json, with
the journals next to it; `--again` repeats the simulations from these, without a cluster.

The cluster has at most six executors with one slot each, and a row waits for 5 ms after a shuffle. So more
slots make a micro-batch shorter on any machine. The simulator gets the load as its text, the settings, and
the number of executors at the start. The cost of a micro-batch and the startup time of an executor are
measured on the run under the other load. So a simulation knows nothing about the run it is compared with, as
if it were made before the load arrived. Random quantities (the duration of a micro-batch, the startup time of
an executor) are drawn for 20 simulations, and their mean is compared with the run.

Each load holds its first rate for 90 s at the start, in both. These seconds are not compared, as code on the
cluster is cold. For the rest, three errors are shares of the values on the cluster; the goal for each is 15
%. executors: the integral of |real - simulated| executors, divided by the integral of the real ones. lag: the
same for the waiting time of the oldest uncommitted row, averaged over each 15 s. rescales: |real - simulated|
/ real, for the changes of the query's number of partitions.

`chance_percent` is the deviation of the simulations from their own mean (the median). However accurate the
simulator is, a run cannot be expected to come closer to it than that.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from attrs import evolve, frozen

from integration.bench.apart import Course, Span, apart, course, mean
from integration.bench.results import file_of, keep
from integration.cluster.application import application
from integration.cluster.lines import autoscaled
from integration.cluster.loaded import heard_of, run_load
from integration.streaming.driver import driver
from spark_elastic_lab.demo.cluster import Cluster
from spark_elastic_lab.demo.data import generate
from spark_elastic_lab.simulator.heard import Heard
from spark_elastic_lab.simulator.load import Load, load_of
from spark_elastic_lab.simulator.recorded import scenario_of
from spark_elastic_lab.simulator.recorded_run import recorded_run
from spark_elastic_lab.simulator.scenario import Scenario
from spark_elastic_lab.simulator.simulation import simulate

_NAME = "autoscale"
_GOAL_PERCENT = 15
_WORKERS = 6
# Longer than the outage, as with the defaults: the query must not be idle for all of the window.
_WINDOW_S = 45
_SETTLE_S = 90
_SEED = "1"
_SIMULATIONS = 20
_QUERY = "slow"


@frozen
class BenchLoad:
    """A load for `seconds` seconds, after a time in which its first rate is held."""

    text: str
    seconds: int

    @property
    def load(self) -> Load:
        """The whole load."""
        rates = load_of(self.text, self.seconds, _SEED).rates
        return Load([*[rates[0]] * _SETTLE_S, *rates])

    @property
    def compared(self) -> Span:
        """The seconds in which the cluster and the simulator are compared."""
        return Span(_SETTLE_S, _SETTLE_S + self.seconds)


LOADS = {
    "ramp": BenchLoad("ramp:start=100,slope=130", 195),
    "outage": BenchLoad("outage:rate=250,at=0.5,length=0.3,release=0.2", 195),
}
_QUICK = {
    "ramp": BenchLoad("ramp:start=100,slope=260", 90),
    "outage": BenchLoad("outage:rate=250,at=0.25,length=0.3,release=0.2", 90),
}


def main() -> int:
    """Run the loads, simulate them, write and print the result."""
    arguments = _arguments()
    # As with Ctrl-C, the started processes must end too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    loads = _QUICK if arguments.quick else LOADS
    if arguments.again:
        runs = dict(_kept(loads))
    else:
        with tempfile.TemporaryDirectory(prefix="bench-") as name:
            runs = dict(_run(Path(name), loads, keep=not arguments.quick))
    result = summary(runs, loads)
    if not arguments.quick:
        keep(_NAME, result)
    print(json.dumps(result))
    return 0


def summary(runs: Mapping[str, Heard], loads: Mapping[str, BenchLoad]) -> dict[str, Any]:
    """Simulate each of two loads with the measurements under the other one, and return the errors."""
    found = {}
    for name, other in zip(runs, reversed([*runs]), strict=True):
        run, load = runs[name], loads[name]
        scenario = _scenario(scenario_of(runs[other]), load, run.initial)
        was = course(recorded_run(run, scenario).notes, _QUERY, load.compared)
        found[name] = {
            "load": load.text,
            "begin": run.begin,
            "given": _given(scenario),
            **_compared(was, _simulated(scenario, load.compared)),
        }
    errors = {name: one["error_percent"] for name, one in found.items()}
    return {
        "error_percent": errors,
        "goal_percent": _GOAL_PERCENT,
        "goals_met": {
            kind: all(of_load[kind] <= _GOAL_PERCENT for of_load in errors.values())
            for kind in ("executors", "lag", "rescales")
        },
        "loads": found,
    }


def _scenario(measured: Scenario, load: BenchLoad, initial: int) -> Scenario:
    """Return the scenario to simulate, with the costs and startup times of a measured scenario."""
    (query,) = measured.queries
    return evolve(
        measured,
        queries=(evolve(query, load=load.load),),
        cluster=evolve(measured.cluster, initial=initial, recorded=()),
        # Other properties of the measured run do not apply to this one.
        recorded=None,
        hours=load.compared.until / 3_600,
    )


def _simulated(scenario: Scenario, span: Span) -> list[Course]:
    """Simulate a scenario repeatedly, each time with another seed."""
    return [
        course(result.notes, _QUERY, span)
        for seed in range(_SIMULATIONS)
        for result in simulate(evolve(scenario, seed=seed), ["as-set"])
    ]


def _given(scenario: Scenario) -> dict[str, float]:
    (query,) = scenario.queries
    return {
        "fixed_ms": round(query.cost.fixed_ms),
        "row_us": round(query.cost.read_us + query.cost.work_us),
        "jitter": round(query.cost.jitter, 3),
        "startup_s": round(scenario.cluster.startup_s, 1),
        "executors": scenario.cluster.initial,
    }


def _compared(was: Course, simulated: Sequence[Course]) -> dict[str, Any]:
    would = mean(simulated)
    chance = [apart(would, one) for one in simulated]
    return {
        "error_percent": _percent(apart(was, would)),
        "chance_percent": _percent({kind: median(one[kind] for one in chance) for kind in chance[0]}),
        "real": _figures(was),
        "simulated": _figures(would),
    }


def _percent(shares: Mapping[str, float]) -> dict[str, float]:
    return {kind: round(100 * share, 1) for kind, share in shares.items()}


def _figures(what: Course) -> dict[str, Any]:
    """Return a course with the executors in the middle of each window of its lag."""
    windows = len(what.lag_s)
    each = len(what.executors) // max(1, windows)
    return {
        "executors": [round(what.executors[each * place + each // 2], 1) for place in range(windows)],
        "lag_s": [round(lag, 1) for lag in what.lag_s],
        "rescales": round(what.rescales, 1),
        "requests": round(what.requests, 1),
    }


def _run(folder: Path, loads: Mapping[str, BenchLoad], *, keep: bool) -> Iterator[tuple[str, Heard]]:
    """Run each load on the cluster, each in its own application."""
    tables = generate(folder / "tables", scale=0.01, parts=1)
    conf = autoscaled(_WORKERS, _WINDOW_S)
    with Cluster(folder / "cluster") as cluster, driver(folder / "driver") as jvm:
        for name, load in loads.items():
            (folder / name).mkdir()
            with application(cluster, jvm, tables, folder / name, conf) as app:
                begin = run_load(app, _QUERY, load.load, _WORKERS)
            print(
                f"{time.strftime('%H:%M:%S')} {name} is over, begun at {begin}", file=sys.stderr, flush=True
            )
            if keep:
                _journal(name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(app.journal, _journal(name))
            yield name, heard_of(app.journal, load.load, begin)


def _kept(loads: Mapping[str, BenchLoad]) -> Iterator[tuple[str, Heard]]:
    """Read the journals of the last whole run."""
    before = json.loads(file_of(_NAME).read_text(encoding="utf-8"))
    for name, one in before["loads"].items():
        yield name, heard_of(_journal(name), loads[name].load, one["begin"])


def _journal(load: str) -> Path:
    return file_of(_NAME).with_name(f"autoscale-{load}.jsonl")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m integration.bench.autoscale",
        description="Hold the simulator against a cluster.",
    )
    parser.add_argument("--quick", action="store_true", help="half the time; the result is printed only")
    parser.add_argument("--again", action="store_true", help="simulate the last whole run, without a cluster")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
