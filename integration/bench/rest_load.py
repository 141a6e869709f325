"""Measure what reads of the REST API cost a running query: 200 a second, and none, taking turns.

usage: python -m integration.bench.rest_load [--quick] [--rounds N] [--rate N]
The last line printed is one JSON object. A whole run also writes it to results/rest_load.json. Clients,
driver and executors share the machine, so the clients' own work is part of what is measured.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from attrs import frozen

from integration.bench.application import Application, Variant, now_ms
from integration.bench.batches import Batch
from integration.bench.figures import p50_p95, p50_p99
from integration.bench.readers import Readers, reads_of
from spark_elastic.demo.cluster import Cluster

_RESULT = Path(__file__).parent / "results" / "rest_load.json"
_START_TIMEOUT_S = 300.0
# A driver that still compiles would make the first rounds slower than the others.
_WARM_UP_BATCHES = 100
_WARM_UP_READS = 200


@frozen(kw_only=True)
class _Window:
    """A stretch of the run with readers or without; times in epoch ms."""

    loaded: bool
    begin: int
    end: int

    def holds(self, batch: Batch) -> bool:
        return self.begin <= batch.started and batch.output <= self.end


def main() -> int:
    """Run the rounds, write and print the result."""
    parser = argparse.ArgumentParser(prog="python -m integration.bench.rest_load", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds; the result is not written")
    parser.add_argument("--rounds", type=int, help="pairs of a stretch with readers and one without")
    parser.add_argument("--rate", type=int, default=200, help="reads per second (default 200)")
    arguments = parser.parse_args()
    # As at Ctrl-C: what was started is to end too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    rounds = arguments.rounds or (2 if arguments.quick else 10)
    result = _measure(rounds, batches=20, rate=arguments.rate)
    if not arguments.quick:
        _RESULT.parent.mkdir(exist_ok=True)
        _RESULT.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result))
    return 0


def _measure(rounds: int, *, batches: int, rate: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory(prefix="bench-") as name, Cluster(Path(name, "cluster")) as cluster:
        for _ in range(2):
            cluster.add_worker()
        variant = Variant(name="read", kind="stateful_small", plugin=True, conf={})
        with Application(cluster, Path(name), variant) as application:
            application.wait_for_executors(2)
            application.wait_for_batches(_WARM_UP_BATCHES)
            ui = application.driver.wait_for_line(r"UI: (http\S+)", _START_TIMEOUT_S)[1]
            readers = Readers(reads_of(ui), rate)
            readers.read(_WARM_UP_READS)
            windows = []
            for round_ in range(rounds):
                # Whoever comes first may meet another machine: they take turns in that, too.
                for loaded in (False, True) if round_ % 2 == 0 else (True, False):
                    windows.append(_window(application, readers, batches, loaded=loaded))
            return _summary(windows, application.batches(), readers, rate)


def _window(application: Application, readers: Readers, batches: int, *, loaded: bool) -> _Window:
    known = len(application.batches())
    if not loaded:
        begin = now_ms()
        application.wait_for_batches(known + batches)
        return _Window(loaded=False, begin=begin, end=now_ms())
    with readers:
        begin = now_ms()
        application.wait_for_batches(known + batches)
        return _Window(loaded=True, begin=begin, end=now_ms())


def _summary(
    windows: Sequence[_Window], batches: Sequence[Batch], readers: Readers, rate: int
) -> dict[str, object]:
    quiet, loaded = [w for w in windows if not w.loaded], [w for w in windows if w.loaded]
    times = {"quiet": _durations(quiet, batches), "loaded": _durations(loaded, batches)}
    found = {name: p50_p95(durations) for name, durations in times.items()}
    # What differs between stretches that are alike is noise.
    halves = [p50_p95(_durations(half, batches)) for half in (quiet[::2], quiet[1::2])]
    seconds = sum(window.end - window.begin for window in loaded) / 1_000
    return {
        "ratio": _ratio(found["loaded"], found["quiet"]),
        "noise": _ratio(*sorted(halves, key=lambda half: half["p50"], reverse=True)),
        "batch_ms": found,
        "batches": {name: len(durations) for name, durations in times.items()},
        "rounds": len(quiet),
        "reads_per_s": {"wanted": rate, "answered": round(len(readers.took_ms) / seconds, 1)},
        "read_ms": p50_p99(readers.took_ms),
        "reads_refused": readers.refused,
    }


def _durations(windows: Sequence[_Window], batches: Sequence[Batch]) -> list[int]:
    return [batch.duration_ms for batch in batches if any(window.holds(batch) for window in windows)]


def _ratio(one: dict[str, float], other: dict[str, float]) -> dict[str, float]:
    return {name: round(one[name] / other[name], 3) if other[name] else 0.0 for name in one}


if __name__ == "__main__":
    sys.exit(main())
