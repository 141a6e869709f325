"""Measure the scheduler alone, on one core: events per second, the time of a decision, memory.

usage: python -m integration.bench.core [--quick]
The last line printed is one JSON object. A whole run also writes it to results/VERSION/core.json.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
import time
from typing import Any

import psutil
from attrs import evolve

from integration.bench.core_meter import Meter, decision_times
from integration.bench.core_world import Size, World
from integration.bench.figures import p50_p99
from integration.bench.results import keep
from spark_elastic.core.keys.policies import POLICY
from spark_elastic.core.keys.rescaling import MODE
from spark_elastic.core.scheduler import Scheduler
from spark_elastic.runtime.collector import collect_rarely
from spark_elastic.settings import load

_SECOND = 1_000
_HOUR = 3_600 * _SECOND
_DAY = 24 * _HOUR
_SETTINGS = {mode: load({MODE.full_name: mode}).core() for mode in ("reactive", "adaptive")}
_LARGE = Size(
    executors=10_000,
    queries=1_000,
    trigger_ms=_SECOND,
    executor_life_ms=8 * _HOUR,
    query_life_ms=8 * _HOUR,
    query_failure_ms=24 * _HOUR,
    bounds_pause_ms=30 * _SECOND,
)
# The same rate of changes with 200 times fewer events.
_FEW = evolve(_LARGE, executors=200, queries=40, executor_life_ms=_HOUR // 4, query_life_ms=_HOUR)
# Small, so that a week takes a minute, and short-lived, so that leaks add up.
_SMALL = Size(
    executors=20,
    queries=10,
    trigger_ms=20 * _SECOND,
    executor_life_ms=4 * _HOUR,
    query_life_ms=_HOUR,
    query_failure_ms=2 * _HOUR,
    bounds_pause_ms=_HOUR,
)
_DAYS = 7
# All queries start at once, and are rescaled at once where that pays, which does not represent later
# operation.
_SETTLE_MS = 90 * _SECOND
# A hundred queries under a policy; a fifth of them has a new micro-batch at each of its decisions.
_AUTOSCALED = Size(
    executors=100,
    queries=100,
    trigger_ms=5 * _SECOND,
    executor_life_ms=24 * _HOUR,
    query_life_ms=24 * _HOUR,
    query_failure_ms=24 * _HOUR,
)
_AUTOSCALE = load({MODE.full_name: "adaptive", POLICY.full_name: "autoscale"}).core()
_GOALS = {"events_per_s": 100_000, "decision_p99_ms": 5.0, "rss_growth_mb": 5.0, "policy_p50_ms": 5.0}


def main() -> int:
    """Measure both modes, write and print the result."""
    quick = _arguments().quick
    collect_rarely()  # as the policy process does
    size = _FEW if quick else _LARGE
    modes: dict[str, dict[str, Any]] = {}
    for mode in _SETTINGS:
        # The week comes first: memory once needed for something large must not hide its growth.
        modes[mode] = _live(mode, day_ms=_DAY // 200 if quick else _DAY)
        modes[mode] |= _measure(mode, size, events=2_000 if quick else 500_000)
        print(f"{time.strftime('%H:%M:%S')} {mode} {json.dumps(modes[mode])}", file=sys.stderr, flush=True)
    policy_ms = decision_times(World(_AUTOSCALED), Scheduler(_AUTOSCALE), 20 if quick else 1_000)
    result = _summary(size, list(modes.values()), p50_p99(policy_ms)) | {"modes": modes}
    if not quick:
        keep("core", result)
    print(json.dumps(result))
    return 0


def _summary(size: Size, modes: list[dict[str, Any]], policy_ms: dict[str, float]) -> dict[str, Any]:
    """Return the worse of both modes for each figure, and which goals are met.

    `policy_ms` are the times of a policy's decisions about a hundred queries.
    """
    slowest = max((part["decision_ms"] for part in modes), key=lambda times: float(times["p99"]))
    events_per_s = min(part["events_per_s"] for part in modes)
    growth = max(part["rss_growth_mb"] for part in modes)
    return {
        "executors": size.executors,
        "queries": size.queries,
        "events_per_s": events_per_s,
        "decision_ms": slowest,
        "policy_ms": policy_ms,
        "rss_growth_mb": growth,
        "decode_events_per_s": min(part["decode_events_per_s"] for part in modes),
        "goals_met": {
            "events_per_s": events_per_s >= _GOALS["events_per_s"],
            "decision_p99_ms": slowest["p99"] <= _GOALS["decision_p99_ms"],
            "policy_p50_ms": policy_ms["p50"] <= _GOALS["policy_p50_ms"],
            "rss_growth_mb": growth <= _GOALS["rss_growth_mb"],
        },
    }


def _measure(mode: str, size: Size, events: int) -> dict[str, Any]:
    meter = Meter(_world(mode, size), _SETTINGS[mode])
    meter.live(_SETTLE_MS)
    meter.measure(events)
    return meter.summary()


def _live(mode: str, day_ms: int) -> dict[str, Any]:
    """Run for a week; return the growth of the process since the end of the first day."""
    world, scheduler = _world(mode, _SMALL), Scheduler(_SETTINGS[mode])
    midnight, events = world.now, 0
    memory: list[int] = []
    batch = list(world.begin())
    while len(memory) < _DAYS:
        for event in batch:
            world.carry_out(scheduler.handle(event))
        events += len(batch)
        if world.now >= midnight + day_ms:
            midnight += day_ms
            scheduler.validate()
            gc.collect()
            memory.append(psutil.Process().memory_info().rss)
        batch = world.batch()
    return {"rss_growth_mb": round((memory[-1] - memory[0]) / 1e6, 1), "week_events": events}


def _world(mode: str, size: Size) -> World:
    return World(size if mode == "adaptive" else evolve(size, bounds_pause_ms=None))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m integration.bench.core", description="Measure the scheduler alone, on one core."
    )
    parser.add_argument("--quick", action="store_true", help="a small application, seconds; writes nothing")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
