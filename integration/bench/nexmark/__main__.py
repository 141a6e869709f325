"""Run Nexmark's queries as streams: in Spark with the plugin, in plain Spark, and in Flink if asked for.

usage: python -m integration.bench.nexmark [--quick] [--queries q0,q5|all] [--variants plain,flink|all] ...
The last line printed is one JSON object. A whole run also writes it to results/VERSION/nexmark.json, with a
picture next to it.

The numbers of events arrive as files, at rates that step up and down, and the query computes the events from
them. Workers of one slot each come and go: one joins, one with an executor is killed, one joins in its place.
Each event also waits in its task, so that more slots make a micro-batch shorter on any machine. At the end
the output is compared with that of a batch over the same events.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from integration.bench.nexmark import flink
from integration.bench.nexmark.figures import IN_TIME_MS, compared
from integration.bench.nexmark.load import TRIGGER_MS, Trial
from integration.bench.nexmark.picture import draw
from integration.bench.nexmark.queries import QUERIES
from integration.bench.nexmark.run import VARIANTS, run
from integration.bench.nexmark.schedule import Schedule
from integration.bench.nexmark.streams import exact
from integration.bench.results import keep

_WHOLE = Schedule(rates=(1_000, 3_000, 5_000, 3_000, 1_000), step_s=40, settle_s=60)
_QUICK = Schedule(rates=(1_000, 4_000, 1_000), step_s=30, settle_s=30)
# One of each kind: a filter without state, a join, aggregations in a row, windows that are joined, sessions.
_QUERIES = ("q1", "q3", "q5", "q8", "q11")
_QUICK_QUERIES = ("q5",)
_FLINK = "flink"
_WORKERS = 4
_WAIT_US = 500


def main() -> int:
    """Run each query with each variant, write and print the result."""
    arguments = _arguments()
    # As with Ctrl-C, the started processes must end too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    schedule = _QUICK if arguments.quick else _WHOLE
    trial = Trial(schedule=schedule, workers=arguments.workers, wait_us=arguments.wait_us)
    result: dict[str, Any] = {
        "rates_per_s": schedule.rates,
        "step_s": schedule.step_s,
        "workers": trial.workers,
        "wait_us": trial.wait_us,
        "trigger_ms": TRIGGER_MS,
        "in_time_ms": IN_TIME_MS,
        "queries": {},
    }
    for query in arguments.queries or (_QUICK_QUERIES if arguments.quick else _QUERIES):
        variants = {}
        for variant in arguments.variants or VARIANTS:
            with tempfile.TemporaryDirectory(prefix="bench-") as folder:
                place = Path(folder, variant)
                if variant == _FLINK:
                    variants[variant] = flink.run(place, query, trial)
                else:
                    variants[variant] = run(place, query, variant, trial)
            said = f"{time.strftime('%H:%M:%S')} {query} {variant} {json.dumps(variants[variant])}"
            print(said, file=sys.stderr, flush=True)
        result["queries"][query] = {"variants": variants, "to_plain": compared(variants)}
    wrong = [
        f"{query} {name}"
        for query, one in result["queries"].items()
        for name, variant in one["variants"].items()
        if not exact(variant["output"])
    ]
    if arguments.whole:
        draw(result, keep("nexmark", result).with_suffix(".svg"))
    print(json.dumps(result))
    if wrong:
        print(f"the output differs from that of a batch: {', '.join(wrong)}", file=sys.stderr)
    return 1 if wrong else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m integration.bench.nexmark",
        description="Run Nexmark's queries in Spark, with the plugin and without, and in Flink if asked for.",
    )
    parser.add_argument("--quick", action="store_true", help="one query, half the time")
    parser.add_argument("--queries", type=_queries, help=f"of {','.join(QUERIES)}, or all of them (all)")
    variants = f"of {','.join(VARIANTS)} (these by default) and {_FLINK}, or the four of them (all)"
    parser.add_argument("--variants", type=_variants, help=variants)
    parser.add_argument("--workers", type=int, default=_WORKERS, help="most workers, of one slot each")
    parser.add_argument("--wait-us", type=int, default=_WAIT_US, help="how long an event waits, 0 to 1000 µs")
    arguments = parser.parse_args()
    if arguments.workers < 2:
        parser.error(f"--workers {arguments.workers}: one of them is killed, so there must be 2 or more")
    if not 0 <= arguments.wait_us <= 1_000:
        parser.error(f"--wait-us {arguments.wait_us}: it is between 0 and 1000")
    if _FLINK in (arguments.variants or ()):
        asked = arguments.queries or ()
        if missing := [name for name in asked if name not in flink.QUERIES]:
            parser.error(f"{', '.join(missing)}: Flink runs {', '.join(flink.QUERIES)} only")
    chosen = (arguments.queries, arguments.variants)
    usual = (arguments.workers, arguments.wait_us) == (_WORKERS, _WAIT_US)
    arguments.whole = not arguments.quick and usual and not any(chosen)
    return arguments


def _queries(text: str) -> list[str]:
    known = [*QUERIES]
    return known if text == "all" else _known(text, known)


def _variants(text: str) -> list[str]:
    known = [*VARIANTS, _FLINK]
    return known if text == "all" else _known(text, known)


def _known(text: str, known: list[str]) -> list[str]:
    names = text.split(",")
    if unknown := [name for name in names if name not in known]:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: there are {', '.join(known)}")
    return names


if __name__ == "__main__":
    sys.exit(main())
