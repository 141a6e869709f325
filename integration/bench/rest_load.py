"""Measure the cost of reads of the REST API, and of Spark's own, for a running query, with and without.

usage: python -m integration.bench.rest_load [--quick] [--rounds N] [--rate N]
The last line printed is one JSON object. A whole run also writes it to results/VERSION/rest_load.json.
Clients, driver and executors share the machine, so the clients' own work is part of the measurement.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

from attrs import frozen

from integration.bench.application import Application, Variant, now_ms
from integration.bench.batches import Batch
from integration.bench.figures import p50_p95, p50_p99
from integration.bench.readers import Readers, reads_of, reads_of_spark
from integration.bench.results import keep
from spark_elastic_lab.demo.cluster import Cluster

_START_TIMEOUT_S = 300.0
# While the driver's code is still being compiled, the first rounds would be slower than the others.
_WARM_UP_BATCHES = 100
_WARM_UP_READS = 200
_NOTHING = "nothing"


@frozen(kw_only=True)
class _Window:
    """A stretch of the run with or without readers; times in epoch ms."""

    read: str
    begin: int
    end: int

    def holds(self, batch: Batch) -> bool:
        return self.begin <= batch.started and batch.output <= self.end


def main() -> int:
    """Run the rounds, write and print the result."""
    parser = argparse.ArgumentParser(prog="python -m integration.bench.rest_load", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few rounds; the result is not written")
    parser.add_argument(
        "--rounds", type=int, help="stretches of each kind: with reads of ours, of Spark's, without"
    )
    parser.add_argument("--rate", type=int, default=200, help="reads per second (default 200)")
    arguments = parser.parse_args()
    # As with Ctrl-C, the started processes must end too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    rounds = arguments.rounds or (2 if arguments.quick else 10)
    result = _measure(rounds, batches=20, rate=arguments.rate)
    if not arguments.quick:
        keep("rest_load", result)
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
            readers = {"elastic": Readers(reads_of(ui), rate), "spark": Readers(reads_of_spark(ui), rate)}
            for one in readers.values():
                one.read(_WARM_UP_READS)
            windows = []
            kinds = [_NOTHING, *readers]
            for round_ in range(rounds):
                # The first kind may meet a different state of the machine, so the order rotates.
                turn = round_ % len(kinds)
                for kind in kinds[turn:] + kinds[:turn]:
                    windows.append(_window(application, kind, readers.get(kind), batches))
            return _summary(windows, application.batches(), readers, rate)


def _window(application: Application, kind: str, readers: Readers | None, batches: int) -> _Window:
    known = len(application.batches())
    with readers or nullcontext():
        begin = now_ms()
        application.wait_for_batches(known + batches)
        return _Window(read=kind, begin=begin, end=now_ms())


def _summary(
    windows: Sequence[_Window], batches: Sequence[Batch], readers: Mapping[str, Readers], rate: int
) -> dict[str, object]:
    by_kind = {kind: [window for window in windows if window.read == kind] for kind in (_NOTHING, *readers)}
    times = {kind: _durations(those, batches) for kind, those in by_kind.items()}
    found = {kind: p50_p95(durations) for kind, durations in times.items()}
    # Differences between stretches of the same kind are noise.
    quiet = by_kind[_NOTHING]
    halves = [p50_p95(_durations(half, batches)) for half in (quiet[::2], quiet[1::2])]
    return {
        "ratio": {kind: _ratio(found[kind], found[_NOTHING]) for kind in readers},
        "noise": _ratio(*sorted(halves, key=lambda half: half["p50"], reverse=True)),
        "batch_ms": found,
        "batches": {kind: len(durations) for kind, durations in times.items()},
        "rounds": len(quiet),
        "reads_per_s": rate,
        "reads": {kind: _answers(one, by_kind[kind]) for kind, one in readers.items()},
    }


def _answers(readers: Readers, windows: Sequence[_Window]) -> dict[str, object]:
    seconds = sum(window.end - window.begin for window in windows) / 1_000
    return {
        "answered_per_s": round(len(readers.took_ms) / seconds, 1),
        "ms": p50_p99(readers.took_ms),
        "refused": readers.refused,
    }


def _durations(windows: Sequence[_Window], batches: Sequence[Batch]) -> list[int]:
    return [batch.duration_ms for batch in batches if any(window.holds(batch) for window in windows)]


def _ratio(one: dict[str, float], other: dict[str, float]) -> dict[str, float]:
    return {name: round(one[name] / other[name], 3) if other[name] else 0.0 for name in one}


if __name__ == "__main__":
    sys.exit(main())
