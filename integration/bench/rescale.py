"""Measure rescaling on a real cluster: its delay, the gap in the output, and its cost.

usage: python -m integration.bench.rescale [--quick] [--rounds N] [--large-rounds N] [--only PART]...
The last line printed is one JSON object. A whole run also writes it to results/VERSION/rescale.json, part
by part.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from collections.abc import Callable

from integration.bench.application import Variant
from integration.bench.changelogs import changelogs
from integration.bench.figures import p50_max
from integration.bench.old_checkpoint import old_checkpoint
from integration.bench.overhead import overhead, startup_extra_ms
from integration.bench.results import keep
from integration.bench.rounds import Rounds, run_rounds
from integration.bench.stream_app import KEYS_PER_BATCH_AT_FIRST
from integration.bench.untuned import untuned
from integration.streaming.launch import AT_ONCE

# Each key has about 1 KB of state.
_STATE_KEYS = 1_000_000
# The settings of the tuned peer.
_EAGER = {
    **AT_ONCE,
    "spark.elastic.adaptiveScheduler.rescalePolicy": "always",
}


def main() -> int:
    """Run the requested parts, write and print the result."""
    arguments = _arguments()
    # As with Ctrl-C, the started processes must end too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    parts = _parts(arguments)
    result: dict[str, object] = {}
    for name in arguments.only or parts:
        part = parts[name]()
        print(f"{time.strftime('%H:%M:%S')} {name} {json.dumps(part)}", file=sys.stderr, flush=True)
        result |= part
        if not arguments.only:
            keep("rescale", result)
    print(json.dumps(result))
    return 0


def _parts(arguments: argparse.Namespace) -> dict[str, Callable[[], dict[str, object]]]:
    quick: bool = arguments.quick
    rounds = arguments.rounds or (2 if quick else 10)
    keys = _STATE_KEYS // (10 if quick else 1)
    large_rounds = arguments.large_rounds or (1 if quick else rounds)
    return {
        "stateless": lambda: {"stateless": _elastic("stateless", rounds).summary()},
        "stateful_small": lambda: _small_and_kill(rounds),
        "stateful_large": lambda: {"stateful_large": _large(large_rounds, keys)},
        "old_checkpoint": lambda: {"old_checkpoint": old_checkpoint(batches=10 if quick else 40, keys=keys)},
        "changelogs": lambda: {"changelogs": changelogs(large_rounds, keys)},
        "untuned": lambda: {"untuned_ms": untuned(batches=10 if quick else 40)},
        "overhead": lambda: overhead(pairs=1 if quick else 3, batches=20 if quick else 60),
        "startup": lambda: {"startup_extra_ms": startup_extra_ms(pairs=1 if quick else 5)},
    }


def _elastic(kind: str, rounds: int) -> Rounds:
    return run_rounds(Variant(name="elastic", kind=kind, plugin=True, conf=_EAGER), rounds)


def _small_and_kill(rounds: int) -> dict[str, object]:
    """Run the small state with the plugin, then the same rounds in plain Spark with three partitions."""
    elastic = _elastic("stateful_small", rounds)
    conf = {"spark.sql.shuffle.partitions": "3"}
    plain = run_rounds(Variant(name="plain", kind="stateful_small", plugin=False, conf=conf), rounds)
    return {
        "stateful_small": elastic.summary(),
        "kill_to_output_ms": {
            "elastic": p50_max(elastic.kill_to_output_ms()),
            "plain": p50_max(plain.kill_to_output_ms()),
        },
        "plain_rounds": plain.summary(),
    }


def _large(rounds: int, keys: int) -> dict[str, object]:
    variant = Variant(name="elastic", kind="stateful_large", plugin=True, conf=_EAGER, state_keys=keys)
    preload = -(-keys // KEYS_PER_BATCH_AT_FIRST)
    return run_rounds(variant, rounds, preload_batches=preload, patience_s=180).summary()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m integration.bench.rescale",
        description="Measure rescaling on a real cluster.",
    )
    parser.add_argument("--quick", action="store_true", help="few rounds, a tenth of the large state")
    parser.add_argument("--rounds", type=int, help="rounds of 2 -> 3 -> 2 executors (default 10)")
    parser.add_argument("--large-rounds", type=int, help="rounds with the large state (default: as many)")
    parser.add_argument(
        "--only",
        action="append",
        choices=[
            "stateless",
            "stateful_small",
            "stateful_large",
            "old_checkpoint",
            "changelogs",
            "untuned",
            "overhead",
            "startup",
        ],
        help="one part; the result is printed, not written",
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
