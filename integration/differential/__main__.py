"""Run random programs without and with the plugin, and compare the results.

usage: python -m integration.differential --seed S --minutes M [--programs N] [--only HALF] [--folder DIR]
The batch half and the streaming half share the time. A program that differs is shrunk to a few lines and
written as a separate script. In the half `large`, programs need much memory, and the applications have
little; in the half `executors`, streams run with the plugin on a cluster that loses executors; in the half
`tables`, programs read and write Delta Lake tables. The last line printed is one JSON object; the exit code
is 1 if a finding was reproduced.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import tempfile
from pathlib import Path

from integration.differential.half import BATCH, EXECUTORS, LARGE, STREAMING, TABLES, Half
from integration.differential.measure import jar
from integration.differential.run import Search

_HALVES = {"batch": BATCH, "streaming": STREAMING, "large": LARGE, "executors": EXECUTORS, "tables": TABLES}
_BOTH = ("batch", "streaming")


def main() -> int:
    """Search, and print the result."""
    arguments = _arguments()
    # As with Ctrl-C, the started processes must end too. (Hypothesis treats an exit as an ordinary failure.)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="differential-"))
    folder.mkdir(parents=True, exist_ok=True)
    print(f"seed {arguments.seed}, everything is in {folder}", file=sys.stderr, flush=True)
    measuring = jar()
    jars = [measuring] if measuring else []
    names = [arguments.only] if arguments.only else _BOTH
    found = {}
    for name in names:
        minutes = arguments.minutes / len(names)
        search = _searched(_HALVES[name], arguments.seed, folder / name, jars, minutes, arguments.programs)
        found[name] = search.result()
    print(json.dumps(found))
    return int(any(finding["again"] for half in found.values() for finding in half["findings"]))


def _searched(
    half: Half, seed: int, folder: Path, jars: list[Path], minutes: float, programs: int | None
) -> Search:
    """Search in one half, with its own two applications."""
    with half.applications(folder, jars) as pair:
        search = Search(pair, half, seed, folder)
        search.last(minutes, programs)
    return search


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m integration.differential",
        description="Compare programs that chance has made, without the plugin and with it.",
    )
    parser.add_argument("--seed", type=int, default=1, help="chooses the programs (default 1)")
    parser.add_argument("--minutes", type=float, default=10, help="none begins later (default 10)")
    parser.add_argument("--programs", type=int, help="no more than so many of a half")
    parser.add_argument(
        "--only",
        choices=_HALVES,
        help="one half alone; large: much memory; executors: streams that lose some; tables: Delta Lake",
    )
    parser.add_argument("--folder", type=Path, help="a new folder for all that is written")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
